"""Chunks of a table, written into the log among its changes (`snapshots`)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from contextlib import closing

import psycopg2
from psycopg2.extensions import cursor

from connect_core import clock
from connect_core.errors import ConfigError, Refused
from connect_core.sdk.plugin import RowsLeft
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.changes.chunk_rows import behind, last_key, rows_of, time_limit
from connect_core.systems.postgresql.changes.chunk_tables import ChunkTable, about_rows, described
from connect_core.systems.postgresql.changes.holders import NEWEST, who_has_locked, who_is_open
from connect_core.systems.postgresql.changes.messages import Relation
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.publications import tables_of
from connect_core.systems.postgresql.changes.slots import say
from connect_core.systems.postgresql.changes.snapshots import CHUNK, END, ROW, WATERMARK, Chunk, prefix
from connect_core.systems.postgresql.connecting import connected, transaction
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.tables.snapshots import (
    ChunksWritten,
    DueTable,
    Key,
    Place,
    Readable,
    SnapshotProgress,
    first_readable,
    not_given,
    still_to_come,
)

CHUNKS = 8
"""So many are written before they are read: until then the log keeps them, too."""
_WAIT_S, _AGAIN_S = 5.0, 0.01
"""How long a look waits for transactions that were open at the watermark."""

_WITHOUT_ROWS = "take the table out of `tables`"
_ONE_SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ"
_ARE_OVER = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint > %s"
"""Whether all up to this number have ended, for who looks from now on."""


_GONE = (
    psycopg2.errors.UndefinedTable,
    psycopg2.errors.InvalidSchemaName,
    psycopg2.errors.WrongObjectType,
    psycopg2.errors.InsufficientPrivilege,
)


class _Waits(Exception):
    """Why no chunk can be written now."""


def rows_left(options: PostgresChangesOptions, progress: SnapshotProgress | None) -> list[RowsLeft]:
    """As the server's planner estimates it, from the statistics of the tables. `progress` is None before there is a
    slot."""
    found, where = [], options.address
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        progress = progress or SnapshotProgress.of(tables_of(asking, options))
        after = progress.after
        for due in progress.tables:
            if options.wants(*due.place):
                found += _rows_left_of(asking, options, due, after, where)
            after = None
    return found


def _rows_left_of(
    asking: cursor, options: PostgresChangesOptions, due: DueTable, after: Key | None, where: str
) -> list[RowsLeft]:
    """Nothing of a table that is gone."""
    try:
        with transaction(asking, _ONE_SNAPSHOT):
            of = described(asking, options, due.place, where)
            rows = _estimated(asking, of, None) if of else 0
            left = min(rows, _estimated(asking, of, after)) if of else 0
    except (ConfigError, Refused, psycopg2.errors.LockNotAvailable):  # they come when the table can be read again
        rows = left = about_rows(asking, due.place) or 0
        return [RowsLeft(due.name, left, rows, due.where)]
    return [RowsLeft(due.name, left, rows, due.where)] if of else []


def _estimated(asking: cursor, of: ChunkTable, after: Key | None) -> int:
    """How many rows are behind a key."""
    within = behind(of, after)
    asking.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM {of.from_} {within.sql}", within.given)
    plans: list[list[Json]] = [one for (one,) in asking.fetchall()]
    return int(plans[0][0]["Plan"]["Plan Rows"])


def write_chunks(
    asking: cursor, options: PostgresChangesOptions, progress: SnapshotProgress, gone: Collection[Place], where: str
) -> ChunksWritten:
    """Writes the next chunks behind where the log has come to; fewer where others hold them up. A table that cannot be
    read is read behind the others, and so is one of `gone`, which may come back."""
    begun, unfit, written = progress, None, 0
    unreadable: dict[tuple[Place, str], Refused] = {}

    def look(due: DueTable) -> ChunkTable | None:
        if due.rows in unreadable:
            raise unreadable[due.rows]
        return described(asking, options, due.place, where) if options.wants(*due.place) else None

    while written < CHUNKS:
        due = [(number, one) for number, one in enumerate(progress.tables) if one.place not in gone]
        found, unfit = first_readable(due, look)
        if found is None:
            break
        try:
            progress = _write_chunk(asking, options, progress, found, where)
            written += 1
        except _Waits as why:
            waits = still_to_come(progress.later(found.before), str(why))
            return ChunksWritten(progress != begun, waits, unfit)
        except psycopg2.Error as error:
            if asking.connection.closed or error.pgcode is None:
                raise
            one = progress.tables[found.before]
            unreadable[one.rows] = not_given(one, f"{type(error).__name__} ({error.pgcode})", where, _WITHOUT_ROWS)
    return ChunksWritten(progress != begun, unfit=unfit)


def close_watermark(asking: cursor, options: PostgresChangesOptions) -> None:
    """Where no chunk follows one no place is kept behind it, and no look would know of a request that was read then."""
    say(asking, prefix(options.slot_name, END), json.dumps(None))


def _write_chunk(
    asking: cursor,
    options: PostgresChangesOptions,
    progress: SnapshotProgress,
    found: Readable[ChunkTable | None],
    where: str,
) -> SnapshotProgress:
    """How far the rows have come with it. Of a table that has none to come it says so."""
    later, slot = _later(progress, found), options.slot_name
    due = progress.later(later)
    place, condition = due.tables[0].place, due.tables[0].where
    watermark = secrets.token_hex(8)
    asking.execute("SELECT pg_logical_emit_message(false, %s, %s)", (prefix(slot, WATERMARK), watermark))
    _wait_for_others(asking)
    try:
        with transaction(asking, f"{_ONE_SNAPSHOT} READ ONLY" if condition else _ONE_SNAPSHOT):
            table = _held(asking, options, found.table, place, where) if found.table else None
            relation = table.relation if table else Relation(0, *place, 0, ())
            chunk = Chunk(watermark, relation, due.after, later, condition)
            say(asking, prefix(slot, CHUNK), chunk.text(table.names if table else {}))
            last = _write_rows(asking, options, table, due.after, condition) if table else None
            say(asking, prefix(slot, END), json.dumps(last))
    except psycopg2.errors.LockNotAvailable:
        raise _Waits(who_has_locked(asking, found.table.relation.oid if found.table else 0)) from None
    return due.behind(last)


def _later(progress: SnapshotProgress, found: Readable[ChunkTable | None]) -> int:
    """How many tables are put behind the others: all, and so none, where the first one is read from its begin again."""
    table, after = found.table, progress.after
    anew = not found.before and after is not None and table is not None and table.behind(after) is None
    return len(progress.tables) if anew else found.before


def _write_rows(
    asking: cursor, options: PostgresChangesOptions, table: ChunkTable, after: Key | None, condition: str
) -> Key | None:
    """The key of the last one; None where the table has no more."""
    row_prefix, most = prefix(options.slot_name, ROW), options.snapshot_rows
    if condition:
        asking.execute(time_limit(options.statement_timeout_s))
        return _write_some(asking, table, after, condition, row_prefix, most)
    asking.execute(*rows_of(table, row_prefix, behind(table, after), f"LIMIT {most}"))
    keys = asking.fetchall()
    return table.up_to(keys[-1][1:]) if len(keys) == most else None


def _write_some(
    asking: cursor, table: ChunkTable, after: Key | None, condition: str, row_prefix: str, most: int
) -> Key | None:
    """The same of rows that fulfil a condition: of the next so many rows, which may be none, so that a chunk takes no
    longer where few do."""
    stretch = behind(table, after)
    asking.execute(last_key(table, stretch, most), stretch.given)
    found = asking.fetchone()
    last = None if found is None else table.up_to(found)
    within = stretch if last is None else stretch.up_to(table, last)
    asking.execute(*rows_of(table, row_prefix, within.with_condition(condition)))
    return last


def _held(asking: cursor, options: PostgresChangesOptions, table: ChunkTable, place: Place, where: str) -> ChunkTable:
    """Nobody alters it until the end of the transaction. That has seen nothing before: to who has, a table that was
    written anew meanwhile looks empty."""
    try:
        asking.execute(f"LOCK TABLE {table.from_} IN ACCESS SHARE MODE")
        held = described(asking, options, place, where)
    except (*_GONE, ConfigError, Refused):
        held = None
    if held is None or held.key != table.key:
        raise _Waits("another session has altered it a moment ago")
    return held


def _wait_for_others(asking: cursor) -> None:
    """Until all transactions have ended that write, and were open at the watermark: a commit is in the log before
    others see it. Only what is in the log behind the watermark is unknown to who reads from now on."""
    asking.execute(NEWEST)
    [newest] = asking.fetchone() or (0,)
    until = clock.monotonic() + _WAIT_S
    while True:
        asking.execute(_ARE_OVER, (newest,))
        if asking.fetchone() == (True,):
            return
        if clock.monotonic() >= until:
            raise _Waits(who_is_open(asking, newest))
        clock.sleep(_AGAIN_S)
