"""Rows that come again among the changes of a connector."""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.config import reveal
from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.sdk.plugin import Plugin, SnapshotWish
from connect_core.sdk.values import LIVE, Json
from connect_core.service.opened import Opened
from connect_core.systems import SYSTEMS


def ask(opened: Opened, name: str, wish: SnapshotWish) -> Json:
    """Has rows of these tables come with the next runs: all, or those that fulfil a condition. Of all tables of the
    connector where none is named. Raises ConfigError for a source that has no changes, for a connector that has not
    begun, since nobody would hear of it, for a table that it does not read, and for a condition that is none."""
    connector = opened.ledger.connector(name)
    if wish.where is not None and len(wish.tables) != 1:
        step = "Name one table with --table (in a request: in `tables`)"
        raise ConfigError("A condition is of one table", where=f"connector {name}", next_step=step)
    plugin, options = _source(opened, connector)
    _evidence(opened, connector)
    assert plugin.snapshot is not None
    try:
        asked = plugin.snapshot(options, wish)
    except ConfigError as error:
        raise _named(error, name) from None
    opened.ledger.note_snapshot(connector.uid, asked, who=opened.settings.user, where=wish.where)
    return {"name": name, "tables": asked}


def cancel(opened: Opened, name: str, tables: Sequence[str]) -> Json:
    """Has nothing come of what was asked for of these tables, of all where none is named. Raises ConfigError as `ask`
    does, and for a table of which only rows are to come that the connector began with."""
    connector = opened.ledger.connector(name)
    plugin, options = _source(opened, connector)
    try:
        cancelled = plugin.cancel_snapshot(options, _evidence(opened, connector), tables)
    except ConfigError as error:
        raise _named(error, name) from None
    opened.ledger.note_cancelled_snapshot(connector.uid, cancelled, who=opened.settings.user)
    return {"name": name, "tables": cancelled}


def _source(opened: Opened, connector: Connector) -> tuple[Plugin, Json]:
    """With its options."""
    source = opened.resolved(connector).source
    plugin = SYSTEMS[source.system]
    if plugin.snapshot is None:
        able = ", ".join(sorted(one.name for one in SYSTEMS.values() if one.snapshot))
        raise ConfigError(
            f"A source of {source.system} has no snapshots",
            where=f"connector {connector.name}",
            next_step=f"Those that follow changes have them: {able}. To move records again: waybill backfill",
        )
    return plugin, reveal(source.options)


def _evidence(opened: Opened, connector: Connector) -> Json:
    """Of its position."""
    partitions = opened.ledger.assignment(connector.uid).shares
    begun = [at for at in opened.ledger.positions(connector.uid, LIVE, partitions).values() if at]
    if not begun:
        raise ConfigError(
            "The connector has not begun yet", where=f"connector {connector.name}", next_step="Run it once"
        )
    return begun[0].evidence


def _named(error: ConfigError, name: str) -> ConfigError:
    where = f"connector {name}, {error.where}" if error.where else f"connector {name}"
    return ConfigError(error.what, where=where, next_step=error.next_step)
