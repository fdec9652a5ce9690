"""Rows that come again among the changes of a connector."""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.config import reveal
from connect_core.errors import ConfigError
from connect_core.sdk.values import LIVE, Json
from connect_core.service.opened import Opened
from connect_core.systems import SYSTEMS


def ask(opened: Opened, name: str, tables: Sequence[str]) -> Json:
    """Has all rows of these tables come with the next runs, of all tables of the connector where none is named. Raises
    ConfigError for a source that has no changes, for a connector that has not begun, since nobody would hear of it, and
    for a table that it does not read."""
    connector = opened.ledger.connector(name)
    source = opened.resolved(connector).source
    snapshot = SYSTEMS[source.system].snapshot
    if snapshot is None:
        able = ", ".join(sorted(one.name for one in SYSTEMS.values() if one.snapshot))
        raise ConfigError(
            f"A source of {source.system} has no snapshots",
            where=f"connector {name}",
            next_step=f"Those that follow changes have them: {able}. To move records again: waybill backfill",
        )
    partitions = opened.ledger.assignment(connector.uid).shares
    if not any(opened.ledger.positions(connector.uid, LIVE, partitions).values()):
        raise ConfigError("The connector has not begun yet", where=f"connector {name}", next_step="Run it once")
    asked = snapshot(reveal(source.options), tables)
    opened.ledger.note_snapshot(connector.uid, asked, who=opened.settings.user)
    return {"name": name, "tables": asked}
