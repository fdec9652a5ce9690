"""What is said of snapshots, in a table of ours of which the log has each row (`snapshot_log`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError
from connect_core.systems.mysql.binlog.chunk_tables import DENIED, NO_TABLE
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.server_log import end_of
from connect_core.systems.mysql.binlog.snapshot_log import MAKE_NOTES, Note
from connect_core.systems.mysql.binlog.table_names import NOTES, OURS
from connect_core.systems.mysql.failures import number_of

RIGHTS = ("SELECT", "INSERT", "DELETE", "CREATE", "DROP")
"""On tables of ours."""
_LOCK_S = 5
"""How long a chunk of one row waits for who changes it, and any chunk for who alters the table."""
IDLE_S = 10
"""A process that stands still in the middle of a chunk is cut off by the server after so long, and holds no row any
more."""
_SETTINGS = """
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES,NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES',
  lock_wait_timeout = {0}, innodb_lock_wait_timeout = {0}, wait_timeout = {1}
"""
"""What a row has is copied as it is, also days that there are not; what would be changed is a warning."""
_AS_REQUIRED = ("ROW", 1, "FULL")


class WrittenNote(NamedTuple):
    """What is in our table, and may be in the log behind a position."""

    number: int
    at: int
    """Where the log ended before it was written."""
    note: Note


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
        numbers = ", ".join(str(one.number) for one in there)
        asking.execute(f"DELETE FROM {NOTES} WHERE connector = %s AND number IN ({numbers})", (options.uid,))


def set_up(asking: Cursor) -> None:
    """What a session needs by which rows are copied."""
    asking.execute(_SETTINGS.format(_LOCK_S, IDLE_S))


def prepare(asking: Cursor, options: MysqlChangesOptions, where: str) -> None:
    """Makes our table, and sees to it that the log has what is written now."""
    set_up(asking)
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


def say(asking: Cursor, options: MysqlChangesOptions, note: Note, at: int | None = None) -> None:
    at = end_of(asking).offset if at is None else at
    asking.execute(
        f"INSERT INTO {NOTES} (connector, written_at, said) VALUES (%s, %s, %s)", (options.uid, at, note.text())
    )
