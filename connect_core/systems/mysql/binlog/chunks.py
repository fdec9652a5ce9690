"""Chunks of a table, copied into the log among its changes (`snapshot_log`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

import pymysql
from pymysql.cursors import Cursor

from connect_core import clock
from connect_core.errors import ConfigError, Failure, Refused
from connect_core.sdk.plugin import RowsLeft
from connect_core.systems.mysql.binlog.chunk_tables import (
    DENIED,
    NO_TABLE,
    WITHOUT_ROWS,
    check_tables,
    check_writable,
    described,
    require_seen,
    tables_of,
)
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.server_log import end_of
from connect_core.systems.mysql.binlog.snapshot_keys import (
    between,
    copy_of,
    in_order,
    key_of,
    key_texts,
    until_of,
)
from connect_core.systems.mysql.binlog.snapshot_log import (
    MAKE_NOTES,
    Note,
    chunk_note,
    end_note,
    later_note,
    request_note,
)
from connect_core.systems.mysql.binlog.table_names import COPIES, NOTES, OURS, TableName
from connect_core.systems.mysql.catalog import MysqlTable, quoted, quoted_name
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import changing, is_of_rows, number_of, understood
from connect_core.systems.tables.snapshots import (
    ChunksWritten,
    Key,
    Place,
    SnapshotProgress,
    asked_of,
    first_readable,
    still_to_come,
)

MOST_S, MOST_ROWS = 2.0, 80_000
"""So long a look writes chunks, and so many rows, before they are read: until then the log and a table hold them."""
RIGHTS = ("SELECT", "INSERT", "DELETE", "CREATE", "DROP")
"""On tables of ours."""
_MOST_BYTES = 16 << 20
"""Of a chunk, as the server estimates the size of a row."""
_TURN_S = 3
"""How long a connector waits for another one of its database."""
_LOCK_S = 5
"""How long a chunk of one row waits for who changes it, and any chunk for who alters the table."""
IDLE_S = 10
"""A process that stands still in the middle of a chunk is cut off by the server after so long, and holds no row any
more."""
_BUSY = (1205, 1213, 3572)
"""Somebody has locked a row."""
_SMALLER, _LARGER = 8, 4
_SETTINGS = """
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES,NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES',
  lock_wait_timeout = {0}, innodb_lock_wait_timeout = {0}, wait_timeout = {1}
"""
"""What a row has is copied as it is, also days that there are not; what would be changed is a warning."""
_AS_REQUIRED = ("ROW", 1, "FULL")
_ROWS = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_ROW_BYTES = "SELECT AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"


class WrittenNote(NamedTuple):
    """What is in our table, and may be in the log behind a position."""

    number: int
    at: int
    """Where the log ended before it was written."""
    note: Note


class _Altered(Exception):
    """The table is another one than its copies are of."""


class _Unreadable(Exception):
    """Why rows of a table cannot be copied."""


def written(asking: Cursor, options: MysqlChangesOptions) -> list[WrittenNote]:
    """What our table has of this connector; nothing where nobody has made it."""
    try:
        asking.execute(f"SELECT number, written_at, said FROM {NOTES} WHERE connector = %s", (options.uid,))
    except pymysql.Error as error:
        if number_of(error) not in (NO_TABLE, *DENIED):
            raise
        return []
    return [WrittenNote(int(number), int(at), Note.parse(said)) for number, at, said in asking.fetchall()]


def tidy(asking: Cursor, options: MysqlChangesOptions, there: Sequence[WrittenNote]) -> None:
    """Takes out what has been read."""
    if there:
        highest = max(one.number for one in there)
        asking.execute(f"DELETE FROM {NOTES} WHERE connector = %s AND number <= %s", (options.uid, highest))


def forget(asking: Cursor, options: MysqlChangesOptions) -> None:
    """Of a connector that is deleted: what nobody reads any more, and copies that one left which was killed."""
    if there := written(asking, options):
        tidy(asking, options, there)
        with _alone(asking, options) as is_alone:
            if is_alone:  # else the other one drops them
                asking.execute(f"DROP TABLE IF EXISTS {COPIES}")


def request_snapshot(options: MysqlChangesOptions, tables: Sequence[str]) -> list[str]:
    """Says in the log that rows of these tables are to come, of all that the document names where none is given here.
    Who reads the log hears of it at this place. Raises ConfigError for one that cannot be read."""
    where, named = options.address, ", ".join(options.tables)
    asked = asked_of(tables, options.split, lambda *one: options.wants(TableName(*one)), where, named)
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        check_writable(asking, options, where)
        asked = asked or tables_of(asking, options)
        check_tables(asking, asked, where)
        _prepare(asking, options, where)
        _say(asking, options, request_note(tuple(asked)))
    return [f"{schema}.{table}" for schema, table in asked]


def rows_left(options: MysqlChangesOptions, progress: SnapshotProgress | None) -> list[RowsLeft]:
    """As the server estimates it. `progress` is None before the first run."""
    found, where = [], options.address
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        progress = progress or SnapshotProgress(tuple(tables_of(asking, options)))
        after = progress.after
        for place in progress.tables:
            found += _rows_left_of(asking, place, after, where)
            after = None
    return found


def _rows_left_of(asking: Cursor, place: Place, after: Key | None, where: str) -> list[RowsLeft]:
    """Nothing of a table that is gone, or that the user may not see."""
    try:
        table = described(asking, place, where)
    except ConfigError:  # all of its rows come when it can be read again
        asking.execute(_ROWS, place)
        return [RowsLeft(".".join(place), int(rows or 0), int(rows or 0)) for (rows,) in asking.fetchall()]
    if table is None:
        return []
    rows = _estimated(asking, table, None)
    return [RowsLeft(".".join(place), min(rows, _estimated(asking, table, after)), rows)]


def _estimated(asking: Cursor, table: MysqlTable, after: Key | None) -> int:
    """How many rows are behind a key."""
    asking.execute(f"EXPLAIN SELECT 1 FROM {_by_key(table)} WHERE {between(table, after, until_of(table, after))}")
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
        _prepare(asking, options, where)
        tidy(asking, options, written(asking, options))
        writer = _Writer(asking, options, incarnation, where)
        now = writer.write(progress)
        asking.execute("SET SESSION wait_timeout = DEFAULT")
        waits = still_to_come(now, "another session has locked the next row") if writer.is_busy else ""
        return ChunksWritten(now != progress, waits, writer.unfit)


class _Writer:
    def __init__(self, asking: Cursor, options: MysqlChangesOptions, incarnation: int, where: str) -> None:
        self._asking, self._options, self._incarnation, self._where = asking, options, incarnation, where
        self._copied: MysqlTable | None = None
        self._rows = options.snapshot_rows
        is_mariadb = server_of(asking.connection).is_mariadb
        self._shared = "LOCK IN SHARE MODE" if is_mariadb else "FOR SHARE"
        self._written, self._most = 0, options.snapshot_rows
        self._unreadable: dict[Place, Refused] = {}
        self.is_busy = False
        """Others hold the next row."""
        self.unfit: Failure | None = None

    def write(self, progress: SnapshotProgress) -> SnapshotProgress:
        """How far the rows have come then."""
        until = clock.monotonic() + MOST_S
        while progress.tables and self._written < MOST_ROWS and clock.monotonic() < until:
            try:
                if self._copied is None or progress.after is None:
                    begun = self._begin(progress)
                    if begun is None:
                        break
                    progress = begun
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

    def _begin(self, progress: SnapshotProgress) -> SnapshotProgress | None:
        """With the first table in front whose rows can be read: those before it are read later, and their changes come
        meanwhile. None where no table can be read now."""
        found, self.unfit = first_readable(enumerate(progress.tables), self._described)
        if found is None:
            return None
        self._copy(progress.tables[found.before], found.table)
        return self._turned(progress, found.before)

    def _described(self, place: Place) -> MysqlTable | None:
        """None for one that has no rows to come: it is gone, or the document does not name it any more."""
        if place in self._unreadable:
            raise self._unreadable[place]
        if not self._options.wants(TableName(*place)):
            return None
        require_seen(self._asking, place, self._where)
        return described(self._asking, place, self._where)

    def _turned(self, progress: SnapshotProgress, number: int) -> SnapshotProgress:
        for _ in range(number):
            _say(self._asking, self._options, later_note(progress, self._incarnation))
            progress = progress.later()
        return progress

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
        place, self._copied = progress.tables[0], None
        what = f"The server does not give rows of table {'.'.join(place)}: {why}"
        step = f"Look into the server's log; or {WITHOUT_ROWS}"
        self._unreadable[place] = Refused(what, where=self._where, next_step=step)
        return progress

    def _chunk(self, progress: SnapshotProgress) -> SnapshotProgress:
        """How far the rows have come with it. Whoever wants to change one of them waits until they are in the log."""
        asking, table, place = self._asking, self._copied, progress.tables[0]
        until = None if table is None else until_of(table, progress.after) or self._highest(table)
        at = end_of(asking).offset
        asking.execute("BEGIN")
        self._check(place)
        _say(asking, self._options, chunk_note(progress, self._incarnation), at)
        last = None if table is None or until is None else self._rows_of(table, progress.after, until)
        _say(asking, self._options, end_note(last), at)
        asking.execute("COMMIT")
        return progress.behind(last)

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
            f"SELECT {', '.join(key_texts(table))} FROM {_by_key(table)} WHERE {between(table, after, None)}"
            f" ORDER BY {in_order(table, descending=True)} LIMIT 1"
        )
        found = self._asking.fetchone()
        return None if found is None else [str(one) for one in found]

    def _check(self, place: Place) -> None:
        """Nobody alters the table until the end of the transaction."""
        try:
            now = self._described(place)
        except (ConfigError, Refused):
            raise _Altered from None
        if now != self._copied:
            raise _Altered

    def _rows_of(self, table: MysqlTable, after: Key | None, until: Sequence[str]) -> Key | None:
        """Copies them; the key of the last one, None where there is none behind it. A lock that others hold is not
        waited for by who holds some: so nobody waits for each other."""
        asking, columns = self._asking, ", ".join(quoted_name(one.name) for one in table.columns)
        wait = "" if self._rows == 1 else "NOWAIT"
        count = asking.execute(
            f"INSERT INTO {COPIES} ({columns}) SELECT {columns} FROM {_by_key(table)}"
            f" WHERE {between(table, after, until)} ORDER BY {in_order(table)} LIMIT {self._rows} {self._shared} {wait}"
        )
        asking.execute("SHOW WARNINGS")
        if changing([int(number) for _, number, _ in asking.fetchall()]):
            raise _Unreadable("it does not copy them as they are")
        self._written += count
        if count < self._rows:
            return None
        asking.execute(
            f"SELECT {', '.join(key_texts(table))} FROM {COPIES} ORDER BY {in_order(table, descending=True)} LIMIT 1"
        )
        last = [str(one) for one in asking.fetchone() or ()]
        return None if last == [*until] else key_of(table, last, until)


def _row_bytes(asking: Cursor, place: Place) -> int:
    """About how many bytes a row of the table has, as the server estimates it."""
    asking.execute(_ROW_BYTES, place)
    return max(1, int((asking.fetchone() or (0,))[0] or 0))


def _by_key(table: MysqlTable) -> str:
    return f"{quoted((table.database, table.name))} FORCE INDEX (PRIMARY)"


@contextmanager
def _alone(asking: Cursor, options: MysqlChangesOptions) -> Iterator[bool]:
    """Whether nobody else writes into our tables of this database."""
    name = f"waybill_snapshots {hashlib.blake2b(options.database.encode(), digest_size=8).hexdigest()}"
    asking.execute("SELECT GET_LOCK(%s, %s)", (name, _TURN_S))
    is_alone = asking.fetchone() == (1,)
    yield is_alone
    if is_alone:
        asking.execute("SELECT RELEASE_LOCK(%s)", (name,))


def _prepare(asking: Cursor, options: MysqlChangesOptions, where: str) -> None:
    """Makes our table, and sees to it that the log has what is written now."""
    asking.execute(_SETTINGS.format(_LOCK_S, IDLE_S))
    asking.execute("SELECT @@SESSION.binlog_format, @@SESSION.sql_log_bin, @@SESSION.binlog_row_image")
    if asking.fetchone() != _AS_REQUIRED:
        words = "The log would not have rows that this user writes: binlog_format, sql_log_bin or binlog_row_image"
        raise ConfigError(words, where=where, next_step="Sessions begin with another value: see init_connect")
    try:
        asking.execute(f"SELECT 1 FROM {NOTES} LIMIT 0")
    except pymysql.Error as error:
        if number_of(error) not in (NO_TABLE, *DENIED):
            raise
        _make_notes(asking, options, where)


def _make_notes(asking: Cursor, options: MysqlChangesOptions, where: str) -> None:
    try:
        asking.execute(MAKE_NOTES)
    except pymysql.Error as error:
        if number_of(error) not in DENIED:
            raise
        words = f"{options.user} may not make the tables by which rows come through the log"
        raise ConfigError(words, where=where, next_step=" ".join(grant(options, one) for one in sorted(OURS))) from None


def grant(options: MysqlChangesOptions, table: str) -> str:
    """What lets the user have this table of ours."""
    return f"GRANT {', '.join(RIGHTS)} ON {options.database}.{table} TO {options.user};"


def _say(asking: Cursor, options: MysqlChangesOptions, note: Note, at: int | None = None) -> None:
    at = end_of(asking).offset if at is None else at
    asking.execute(
        f"INSERT INTO {NOTES} (connector, written_at, said) VALUES (%s, %s, %s)", (options.uid, at, note.text())
    )
