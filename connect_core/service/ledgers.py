"""Create, upgrade and check the ledger's tables; mark a restored ledger."""

from __future__ import annotations

from connect_core import ledger
from connect_core.config import create_home, database_url, find_home
from connect_core.config.ledger_url import shown
from connect_core.sdk.values import Json
from connect_core.service.opened import AtWork


def upgrade() -> Json:
    """Makes the tables, or brings them up to this version; makes a home when there is none."""
    url = database_url(create_home())
    ledger.upgrade(url)
    return {"ledger": shown(url), "current": True}


def check() -> Json:
    """Whether the tables and this version go together; `faults` say why not."""
    url = database_url(find_home())
    faults = ledger.check(url)
    return {"ledger": shown(url), "current": not faults, "faults": faults}


def restored(opened: AtWork, why: str = "") -> Json:
    """Marks it as restored from a backup: every connector looks in its targets before it writes again. Runs that are
    under way lose their leases."""
    from connect_core.replication.driver.ledger_restore import told_restored

    floors = told_restored(opened.ledger, opened.home, opened.settings.user, why)
    connectors = [connector.name for connector in opened.ledger.connectors()]
    return {"ledger": shown(database_url(opened.home)), "floors": floors, "connectors": connectors}
