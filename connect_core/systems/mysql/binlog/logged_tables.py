"""Which table rows of the log are of, and what they mean: a change, a row of a snapshot, or something that is said of a
snapshot. Pure."""

from __future__ import annotations

import json
from typing import NamedTuple

from connect_core.errors import DataError
from connect_core.systems.mysql.binlog import log_events, table_maps
from connect_core.systems.mysql.binlog.log_events import LogEvent
from connect_core.systems.mysql.binlog.snapshot_log import SnapshotReader
from connect_core.systems.mysql.binlog.statements import Wants
from connect_core.systems.mysql.binlog.table_maps import Charsets, TableMap
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.binlog.undoing import RollsBack
from connect_core.systems.tables.snapshots import SnapshotProgress

_MOST_MAPS = 1_000
"""What is kept of tables that change their columns, and of very many."""


class WantedLog(NamedTuple):
    """What is read: `wants` says of which tables, but not of those that have a history of their rows where the log
    begins: it has old versions as rows of their own. Tables of ours, with rows of snapshots, are in the database
    `ours`; what is there for this connector names it. `schema_changes`: statements about the tables are read, too."""

    wants: Wants
    with_history: frozenset[TableName]
    charsets: Charsets
    rolls_back: RollsBack
    has_small_names: bool = False
    ours: str = ""
    connector: str = ""
    schema_changes: bool = False


class ChangedTable(NamedTuple):
    """Rows are of `table`, and the log has them as rows of the table that they are `stored_in`: a copy is in one of
    ours."""

    table: TableMap
    operation: str
    stored_in: TableName


class LoggedTables:
    """Those that the log has named since a transaction began."""

    def __init__(self, wanted: WantedLog, progress: SnapshotProgress) -> None:
        self._wanted = wanted
        self.snapshot = SnapshotReader(wanted.connector, wanted.ours, progress)
        self.with_history = set(wanted.with_history)
        self._known: dict[int, TableMap | None] = {}
        self._copies: dict[int, TableName] = {}
        self._maps: dict[bytes, TableMap] = {}
        """By what the log says of a table."""

    def forget(self) -> None:
        self._known.clear()
        self._copies.clear()

    def table(self, event: LogEvent, *, is_mariadb: bool) -> None:
        said, number = table_maps.said_of_table(event), table_maps.number_of(event)
        name = table_maps.name_of(said)
        origin = self.snapshot.origin(name)
        found = None
        wanted = self._wanted.wants(name) and name not in self.with_history
        if origin or name == self.snapshot.notes or wanted:
            found = self._map(said, event, is_mariadb)
        self._known[number] = found._replace(name=origin) if found and origin else found
        self._copies.pop(number, None)
        if origin:
            self._copies[number] = name

    def _map(self, said: bytes, event: LogEvent, is_mariadb: bool) -> TableMap:
        if said not in self._maps:
            if len(self._maps) >= _MOST_MAPS:
                self._maps.clear()
            self._maps[said] = table_maps.table_map(event, self._wanted.charsets, is_mariadb)
        return self._maps[said]

    def changed(self, event: LogEvent) -> ChangedTable | None:
        """None where nobody wants to know."""
        number = table_maps.number_of(event)
        if number == log_events.NO_TABLE:
            return None
        if number not in self._known:
            raise DataError("Rows of a table come before the table")
        table, operation = self._known[number], log_events.ROWS[event.kind]
        if table is not None and table.name == self.snapshot.notes:
            self._hear(table, event, operation)
            return None
        if table is None or number not in self._copies:
            return ChangedTable(table, operation, table.name) if table else None
        return ChangedTable(table, "r", self._copies[number]) if operation == "c" else None

    def _hear(self, table: TableMap, event: LogEvent, operation: str) -> None:
        """What cannot be read has not been said: the driver says it again."""
        rows = log_events.rows_of(event)
        if operation != "c" or table.unfit or not rows.is_whole:
            return
        places = {column.name: place for place, column in enumerate(table.columns)}
        for [values] in table.rows(rows):
            connector, said = (self._text(table, values[places[one]], places[one]) for one in ("connector", "said"))
            self.snapshot.hear(connector, said)

    @staticmethod
    def _text(table: TableMap, value: bytes | None, place: int) -> str:
        return str(json.loads(table.forms[place].to_json(value or b"")))
