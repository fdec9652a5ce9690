"""Chunks of a table, copied into the log among its changes (`snapshot_log`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pymysql
from pymysql.cursors import Cursor

from connect_core import clock
from connect_core.errors import ConfigError, Failure, Refused
from connect_core.sdk.plugin import RowsLeft
from connect_core.systems.mysql.binlog.chunk_tables import (
    WITHOUT_ROWS,
    check_writable,
    described,
    require_seen,
    tables_of,
)
from connect_core.systems.mysql.binlog.notes import prepare, say, tidy, written
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.server_log import end_of
from connect_core.systems.mysql.binlog.snapshot_keys import (
    between,
    by_key,
    copy_of,
    in_order,
    key_of,
    key_texts,
    rows_of,
    until_of,
)
from connect_core.systems.mysql.binlog.snapshot_log import chunk_note, end_note, later_note
from connect_core.systems.mysql.binlog.table_names import COPIES, TableName
from connect_core.systems.mysql.catalog import MysqlTable, quoted, quoted_name
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import changing, is_of_condition, is_of_rows, number_of, understood
from connect_core.systems.tables.row_conditions import CONDITION_S
from connect_core.systems.tables.snapshots import (
    ChunksWritten,
    DueTable,
    Key,
    Place,
    SnapshotProgress,
    first_readable,
    not_given,
    still_to_come,
)

MOST_S, MOST_ROWS = 2.0, 80_000
"""So long a look writes chunks, and so many rows, before they are read: until then the log and a table hold them."""
_MOST_BYTES = 16 << 20
"""Of a chunk, as the server estimates the size of a row."""
_TURN_S = 3
"""How long a connector waits for another one of its database."""
_BUSY = (1205, 1213, 3572)
"""Somebody has locked a row."""
_SMALLER, _LARGER = 8, 4
_ROWS = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_ROW_BYTES = "SELECT AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"


class _Altered(Exception):
    """The table is another one than its copies are of."""


class _Unreadable(Exception):
    """Why rows of a table cannot be copied."""


def forget(asking: Cursor, options: MysqlChangesOptions) -> None:
    """Of a connector that is deleted: what nobody reads any more, and copies that one left which was killed."""
    if there := written(asking, options):
        tidy(asking, options, there)
        with _alone(asking, options) as is_alone:
            if is_alone:  # else the other one drops them
                asking.execute(f"DROP TABLE IF EXISTS {COPIES}")


def rows_left(options: MysqlChangesOptions, progress: SnapshotProgress | None) -> list[RowsLeft]:
    """As the server estimates it. `progress` is None before the first run."""
    found, where = [], options.address
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        progress = progress or SnapshotProgress.of(tables_of(asking, options))
        after = progress.after
        for due in progress.tables:
            found += _rows_left_of(asking, due, after, where)
            after = None
    return found


def _rows_left_of(asking: Cursor, due: DueTable, after: Key | None, where: str) -> list[RowsLeft]:
    """Nothing of a table that is gone, or that the user may not see."""
    try:
        table = described(asking, due.place, where)
    except ConfigError:  # all of its rows come when it can be read again
        asking.execute(_ROWS, due.place)
        return [RowsLeft(due.name, int(rows or 0), int(rows or 0), due.where) for (rows,) in asking.fetchall()]
    if table is None:
        return []
    rows = _estimated(asking, table, None)
    return [RowsLeft(due.name, min(rows, _estimated(asking, table, after)), rows, due.where)]


def _estimated(asking: Cursor, table: MysqlTable, after: Key | None) -> int:
    """How many rows are behind a key."""
    rest = between(table, after, until_of(table, after))
    place = quoted((table.database, table.name))  # MySQL estimates nothing where an index is named
    asking.execute(f"EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM {place} WHERE {rest}")
    names = [one[0].lower() for one in asking.description]
    return sum(int(row[names.index("rows")] or 0) for row in asking.fetchall())


def write_chunks(
    asking: Cursor, options: MysqlChangesOptions, progress: SnapshotProgress, incarnation: int, where: str
) -> ChunksWritten:
    """Writes the next chunks behind where the log has come to; fewer where others hold rows, none where another
    connector of this database takes long. The next look tries again."""
    with _alone(asking, options) as is_alone:
        if not is_alone:
            waits = f"another connector of {options.database} copies rows"
            return ChunksWritten(False, still_to_come(progress, waits))
        check_writable(asking, options, where)
        prepare(asking, options, where)
        tidy(asking, options, [one for one in written(asking, options) if not one.note.is_request])
        writer = _Writer(asking, options, incarnation, where)
        now = writer.write(progress)
        asking.execute("SET SESSION wait_timeout = DEFAULT")
        waits = (
            still_to_come(now.later(writer.before), "another session has locked the next row") if writer.is_busy else ""
        )
        return ChunksWritten(now != progress, waits, writer.unfit)


class _Writer:
    def __init__(self, asking: Cursor, options: MysqlChangesOptions, incarnation: int, where: str) -> None:
        self._asking, self._options, self._incarnation, self._where = asking, options, incarnation, where
        self._copied: MysqlTable | None = None
        self._rows = options.snapshot_rows
        self._is_mariadb = server_of(asking.connection).is_mariadb
        self._shared = "LOCK IN SHARE MODE" if self._is_mariadb else "FOR SHARE"
        self._written, self._most = 0, options.snapshot_rows
        self._unreadable: dict[tuple[Place, str], Refused] = {}
        self.before = 0
        """So many tables are due before the one that is copied, and are read later: when its next rows have come."""
        self.is_busy = False
        """Others hold the next row."""
        self.unfit: Failure | None = None

    def write(self, progress: SnapshotProgress) -> SnapshotProgress:
        """How far the rows have come then."""
        until = clock.monotonic() + MOST_S
        while progress.tables and self._written < MOST_ROWS and clock.monotonic() < until:
            try:
                if self._copied is None and not self._begin(progress):
                    break
                progress = self._tried(progress)
                self._rows = min(self._most, self._rows * _LARGER)
            except _Altered:
                self._asking.execute("ROLLBACK")
                self._copied = None
            except pymysql.Error as error:
                if number_of(error) not in _BUSY:
                    raise
                self._asking.execute("ROLLBACK")
                if self._rows == 1:
                    self.is_busy = True
                    break
                self._rows = max(1, self._rows // _SMALLER)
        self._asking.execute(f"DROP TABLE IF EXISTS {COPIES}")
        return progress

    def _begin(self, progress: SnapshotProgress) -> bool:
        """With the first table in front whose rows can be read: those before it are read later, and their changes come
        meanwhile. False where no table can be read now."""
        found, self.unfit = first_readable(enumerate(progress.tables), self._described)
        if found is None:
            return False
        self.before = found.before
        self._copy(progress.tables[found.before].place, found.table)
        return True

    def _described(self, due: DueTable) -> MysqlTable | None:
        """None for one that has no rows to come: it is gone, or the document does not name it any more."""
        if due.rows in self._unreadable:
            raise self._unreadable[due.rows]
        if not self._options.wants(TableName(*due.place)):
            return None
        require_seen(self._asking, due.place, self._where)
        return described(self._asking, due.place, self._where)

    def _copy(self, place: Place, table: MysqlTable | None) -> None:
        self._asking.execute(f"DROP TABLE IF EXISTS {COPIES}")
        self._copied = table
        if table is not None:
            self._asking.execute(copy_of(table, COPIES))
            self._most = min(self._options.snapshot_rows, max(1, _MOST_BYTES // _row_bytes(self._asking, place)))
            self._rows = min(self._rows, self._most)

    def _tried(self, progress: SnapshotProgress) -> SnapshotProgress:
        """Rows that the server does not give hold up no other table."""
        try:
            return self._chunk(progress)
        except _Unreadable as error:
            why = str(error)
        except pymysql.Error as error:
            if not is_of_rows(error):
                raise
            why = f"error {number_of(error)}"
        self._asking.execute("ROLLBACK")
        due, self._copied = progress.tables[self.before], None
        self._unreadable[due.rows] = not_given(due, why, self._where, WITHOUT_ROWS)
        return progress

    def _chunk(self, progress: SnapshotProgress) -> SnapshotProgress:
        """How far the rows have come with it. Whoever wants to change one of them waits until they are in the log."""
        asking, table = self._asking, self._copied
        turned = progress.later(self.before)
        due, after = turned.tables[0], turned.after
        until = None if table is None else until_of(table, after) or self._highest(table)
        at = end_of(asking).offset
        asking.execute("BEGIN")
        self._check(due)
        for number in range(self.before):
            say(asking, self._options, later_note(progress.later(number), self._incarnation), at)
        say(asking, self._options, chunk_note(turned, self._incarnation), at)
        last = None if table is None or until is None else self._rows_of(table, after, until, due.where)
        say(asking, self._options, end_note(last), at)
        asking.execute("COMMIT")
        self.before, self._copied = 0, self._copied if last else None
        return turned.behind(last)

    def _highest(self, table: MysqlTable) -> Sequence[str] | None:
        """The key of the last row, up to which rows are read: those behind it are inserted later, and are changes. So
        nobody runs after who inserts. Rows count that are not committed yet, or not deleted yet: one may be in the log
        before the connector began, as one that is prepared is. Nobody is waited for: when a row that somebody waits for
        is rolled back, the server holds the place behind it for who waits, and all who insert there wait as well."""
        committed = self._last_row(table)
        self._asking.execute("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")  # of the next statement
        return self._last_row(table, committed) or committed

    def _last_row(self, table: MysqlTable, behind: Sequence[str] | None = None) -> Sequence[str] | None:
        """The key of the last one there is, or of the last one behind a key."""
        after = key_of(table, behind, behind) if behind else None
        self._asking.execute(
            f"SELECT {', '.join(key_texts(table))} FROM {by_key(table)} WHERE {between(table, after, None)}"
            f" ORDER BY {in_order(table, descending=True)} LIMIT 1"
        )
        found = self._asking.fetchone()
        return None if found is None else [str(one) for one in found]

    def _check(self, due: DueTable) -> None:
        """Nobody alters the table until the end of the transaction."""
        try:
            now = self._described(due)
        except (ConfigError, Refused):
            raise _Altered from None
        if now != self._copied:
            raise _Altered

    def _rows_of(self, table: MysqlTable, after: Key | None, until: Sequence[str], condition: str) -> Key | None:
        """Copies them; the key of the last one, None where there is none behind it. A lock that others hold is not
        waited for by who holds some: so nobody waits for each other."""
        if condition:
            return self._some_of(table, after, until, condition)
        count = self._copies(f"{rows_of(table, between(table, after, until))} LIMIT {self._rows}")
        self._written += count
        if count < self._rows:
            return None
        self._asking.execute(
            f"SELECT {', '.join(key_texts(table))} FROM {COPIES} ORDER BY {in_order(table, descending=True)} LIMIT 1"
        )
        return self._up_to(table, until)

    def _some_of(self, table: MysqlTable, after: Key | None, until: Sequence[str], condition: str) -> Key | None:
        """The same of rows that fulfil a condition: of the next so many rows, which may be none, so that a chunk takes
        no longer where few do."""
        within = between(table, after, until)
        self._asking.execute(
            f"SELECT {', '.join(key_texts(table))} FROM {by_key(table)} WHERE {within} ORDER BY {in_order(table)}"
            f" LIMIT 1 OFFSET {self._rows - 1}"
        )
        last = self._up_to(table, until)
        end = until if last is None else last[2:]
        rows = rows_of(table, between(table, after, end), condition)
        try:
            if not self._is_mariadb:  # MySQL ends a SELECT that takes too long, and no INSERT
                limit = f"/*+ MAX_EXECUTION_TIME({CONDITION_S * 1000:.0f}) */"
                self._asking.execute(f"SELECT {limit} COUNT(*) FROM ({rows}) one")
            self._copies(rows, condition)
        except pymysql.Error as error:
            if is_of_condition(error):
                raise _Unreadable(f"error {number_of(error)}") from None
            raise
        self._written += self._rows
        return last

    def _copies(self, rows: str, condition: str = "") -> int:
        """How many."""
        wait = "" if self._rows == 1 else "NOWAIT"
        columns = ", ".join(quoted_name(one.name) for one in self._copied.columns) if self._copied else ""
        limit = f"SET STATEMENT max_statement_time = {CONDITION_S} FOR " if condition and self._is_mariadb else ""
        count = self._asking.execute(f"{limit}INSERT INTO {COPIES} ({columns}) {rows} {self._shared} {wait}")
        if changing(self._asking):
            others = ", or the condition compares values of different types" if condition else ""
            raise _Unreadable(f"it does not copy them as they are{others}")
        return int(count)

    def _up_to(self, table: MysqlTable, until: Sequence[str]) -> Key | None:
        """The key that the server has given, None where none is behind it."""
        last = [str(one) for one in self._asking.fetchone() or until]
        return None if last == [*until] else key_of(table, last, until)


def _row_bytes(asking: Cursor, place: Place) -> int:
    """About how many bytes a row of the table has, as the server estimates it."""
    asking.execute(_ROW_BYTES, place)
    return max(1, int((asking.fetchone() or (0,))[0] or 0))


@contextmanager
def _alone(asking: Cursor, options: MysqlChangesOptions) -> Iterator[bool]:
    """Whether nobody else writes into our tables of this database."""
    name = f"waybill_snapshots {hashlib.blake2b(options.database.encode(), digest_size=8).hexdigest()}"
    asking.execute("SELECT GET_LOCK(%s, %s)", (name, _TURN_S))
    is_alone = asking.fetchone() == (1,)
    yield is_alone
    if is_alone:
        asking.execute("SELECT RELEASE_LOCK(%s)", (name,))
