"""Chunks of a table, written into the log among its changes (`snapshots`)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Sequence
from contextlib import closing

import psycopg2
from psycopg2.extensions import cursor

from connect_core import clock
from connect_core.errors import ConfigError, Refused
from connect_core.sdk.plugin import RowsLeft
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.changes.chunk_tables import ChunkTable, about_rows, check_tables, described
from connect_core.systems.postgresql.changes.holders import NEWEST, who_has_locked, who_is_open
from connect_core.systems.postgresql.changes.messages import Relation
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.publications import require_tables, tables_of, words
from connect_core.systems.postgresql.changes.slots import look_at_slot
from connect_core.systems.postgresql.changes.snapshots import (
    CHUNK,
    END,
    REQUEST,
    ROW,
    WATERMARK,
    Chunk,
    prefix,
)
from connect_core.systems.postgresql.connecting import connected, transaction
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.options import split_table
from connect_core.systems.tables.snapshots import (
    ChunksWritten,
    Key,
    Place,
    Readable,
    SnapshotProgress,
    asked_of,
    first_readable,
    still_to_come,
)

CHUNKS = 8
"""So many are written before they are read: until then the log keeps them, too."""
_WAIT_S, _AGAIN_S = 5.0, 0.01
"""How long a look waits for transactions that were open at the watermark."""

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


def request_snapshot(options: PostgresChangesOptions, tables: Sequence[str]) -> list[str]:
    """Says in the log that rows of these tables are to come, of all that the document names where none is given here.
    Who reads the log hears of it at this place. Raises ConfigError for one that cannot be read."""
    where = options.address
    asked = asked_of(tables, split_table, options.wants, where, ", ".join(options.tables))
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        if look_at_slot(asking, options, where) is None:
            raise ConfigError("The connector has not begun yet", where=where, next_step="Run it once")
        asking.execute("BEGIN")
        known = tables_of(asking, options)
        asked = [*dict.fromkeys(asked)] or known
        require_tables(asking, asked, where)
        if beside := [one for one in asked if one not in known]:
            what = f"Publication {options.publication_name} does not have table {words(beside[:1])}"
            raise ConfigError(what, where=where, next_step="Publish it: rows would come, and no changes")
        check_tables(asking, options, asked, where)
        say_request(asking, options, asked)
        asking.execute("COMMIT")
    return [f"{schema}.{table}" for schema, table in asked]


def say_request(asking: cursor, options: PostgresChangesOptions, tables: Sequence[Place]) -> None:
    """With the transaction that is open."""
    _say(asking, prefix(options.slot_name, REQUEST), json.dumps(SnapshotProgress(tuple(tables)).as_json()))


def rows_left(options: PostgresChangesOptions, progress: SnapshotProgress | None) -> list[RowsLeft]:
    """As the server's planner estimates it, from the statistics of the tables. `progress` is None before there is a
    slot."""
    found, where = [], options.address
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        progress = progress or SnapshotProgress(tuple(tables_of(asking, options)))
        after = progress.after
        for place in progress.tables:
            if options.wants(*place):
                found += _rows_left_of(asking, options, place, after, where)
            after = None
    return found


def _rows_left_of(
    asking: cursor, options: PostgresChangesOptions, place: Place, after: Key | None, where: str
) -> list[RowsLeft]:
    """Nothing of a table that is gone."""
    try:
        with transaction(asking, _ONE_SNAPSHOT):
            of = described(asking, options, place, where)
            rows = _estimated(asking, of, None) if of else 0
            left = min(rows, _estimated(asking, of, after)) if of else 0
    except (ConfigError, Refused, psycopg2.errors.LockNotAvailable):  # they come when the table can be read again
        rows = left = about_rows(asking, place) or 0
        return [RowsLeft(".".join(place), left, rows)]
    return [RowsLeft(".".join(place), left, rows)] if of else []


def _estimated(asking: cursor, of: ChunkTable, after: Key | None) -> int:
    """How many rows are behind a key."""
    within, given = _behind(of, after)
    asking.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM {of.from_} {within}", given)
    plans: list[list[Json]] = [one for (one,) in asking.fetchall()]
    return int(plans[0][0]["Plan"]["Plan Rows"])


def write_chunks(
    asking: cursor, options: PostgresChangesOptions, progress: SnapshotProgress, gone: Collection[Place], where: str
) -> ChunksWritten:
    """Writes the next chunks behind where the log has come to; fewer where others hold them up. A table that cannot be
    read is read behind the others, and so is one of `gone`, which may come back."""
    begun, unfit, written = progress, None, 0
    unreadable: dict[Place, Refused] = {}

    def look(place: Place) -> ChunkTable | None:
        if place in unreadable:
            raise unreadable[place]
        return described(asking, options, place, where) if options.wants(*place) else None

    while written < CHUNKS:
        due = [(number, one) for number, one in enumerate(progress.tables) if one not in gone]
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
            place = progress.tables[found.before]
            unreadable[place] = _unreadable(place, error, where)
    return ChunksWritten(progress != begun, unfit=unfit)


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
    place, watermark = due.tables[0], secrets.token_hex(8)
    asking.execute("SELECT pg_logical_emit_message(false, %s, %s)", (prefix(slot, WATERMARK), watermark))
    _wait_for_others(asking)
    try:
        with transaction(asking, _ONE_SNAPSHOT):
            table = _held(asking, options, found.table, place, where) if found.table else None
            relation = table.relation if table else Relation(0, *place, 0, ())
            chunk = Chunk(watermark, relation, due.after, later)
            _say(asking, prefix(slot, CHUNK), chunk.text(table.names if table else {}))
            last = _write_rows(asking, options, table, due.after) if table else None
            _say(asking, prefix(slot, END), json.dumps(last))
    except psycopg2.errors.LockNotAvailable:
        raise _Waits(who_has_locked(asking, found.table.relation.oid if found.table else 0)) from None
    return due.behind(last)


def _unreadable(place: Place, error: psycopg2.Error, where: str) -> Refused:
    """The server's own words may quote a row, its log has them."""
    what = f"The server does not give rows of table {words([place])}: {type(error).__name__} ({error.pgcode})"
    step = "Look into the server's log; or take the table out of `tables`"
    return Refused(what, where=where, next_step=step)


def _later(progress: SnapshotProgress, found: Readable[ChunkTable | None]) -> int:
    """How many tables are put behind the others: all, and so none, where the first one is read from its begin again."""
    table, after = found.table, progress.after
    anew = not found.before and after is not None and table is not None and table.behind(after) is None
    return len(progress.tables) if anew else found.before


def _write_rows(asking: cursor, options: PostgresChangesOptions, table: ChunkTable, after: Key | None) -> Key | None:
    """The key of the last one; None where the table has no more."""
    asking.execute(*_rows(table, prefix(options.slot_name, ROW), after, options.snapshot_rows))
    keys = asking.fetchall()
    return table.up_to(keys[-1][1:]) if len(keys) == options.snapshot_rows else None


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


def _rows(of: ChunkTable, row_prefix: str, after: Key | None, most: int) -> tuple[str, list[str]]:
    """SQL that writes the rows, and gives the key of each."""
    columns, keys = ", ".join(quoted_name(one.name) for one in of.relation.columns), of.key_columns
    key = ", ".join(map(quoted_name, keys))
    texts = ", ".join(f"{quoted_name(one)}::text" for one in keys)
    within, given = _behind(of, after)
    statement = (
        f"SELECT pg_logical_emit_message(true, %s, ROW({columns})::text), {texts}"
        f" FROM (SELECT {columns} FROM {of.from_} {within} ORDER BY {key} LIMIT {most}) c"
    )
    return statement, [row_prefix, *given]


def _behind(of: ChunkTable, after: Key | None) -> tuple[str, Sequence[str]]:
    """SQL of which rows come behind a key, all where there is none, and what it is given."""
    values, keys = of.behind(after), of.key_columns
    if values is None:
        return "", ()
    behind = ", ".join(f"%s::{of.kinds[one]}" for one in keys)
    return f"WHERE ({', '.join(map(quoted_name, keys))}) > ({behind})", values


def _say(asking: cursor, named: str, text: str) -> None:
    asking.execute("SELECT pg_logical_emit_message(true, %s, %s)", (named, text))
