"""Chunks of a table, written into the log among its changes (`snapshots`)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from psycopg2.extensions import cursor

from connect_core import clock
from connect_core.errors import ConfigError
from connect_core.sdk.plugin import RowsLeft
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.changes.messages import LoggedColumn, Relation
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.slots import look_at_slot, tables_of
from connect_core.systems.postgresql.changes.snapshots import (
    CHUNK,
    END,
    REQUEST,
    ROW,
    WATERMARK,
    Chunk,
    prefix,
)
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.options import split_table
from connect_core.systems.tables.snapshots import Key, SnapshotProgress, asked_of

CHUNKS = 8
"""So many are written before they are read: until then the log keeps them, too."""
_WAIT_S, _AGAIN_S = 5.0, 0.01
"""How long a look waits for transactions that were open at the watermark."""

_COLUMNS = """
SELECT a.attname, a.attnum = ANY (i.indkey), a.atttypid, a.atttypmod, format_type(a.atttypid, a.atttypmod),
       CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype <> 'd' THEN ''
            ELSE coalesce(b.typname, t.typname) END, c.relkind, c.oid
FROM pg_class c
JOIN pg_index i ON i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE c.oid = to_regclass(%s) ORDER BY a.attnum
"""
"""Of each column whether it is of the key, and its type's name where that is none of the server's own."""
_NEWEST = "SELECT pg_current_xact_id()::text::bigint"
"""Above the number of each transaction that had one before."""
_ARE_OVER = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint > %s"
"""Whether all up to this number have ended, for who looks from now on."""


class _Table(NamedTuple):
    """`names` are those of types that are not the server's own, `kinds` the whole types of columns."""

    relation: Relation
    names: dict[int, str]
    kinds: dict[str, str]
    from_: str
    """As SQL names where its own rows are: those of tables that inherit from it come under their own names, those of
    its partitions under its own."""


def request_snapshot(options: PostgresChangesOptions, tables: Sequence[str]) -> list[str]:
    """Says in the log that rows of these tables are to come, of all that the document names where none is given here.
    Who reads the log hears of it at this place. Raises ConfigError for one that cannot be read."""
    where = options.address
    asked = asked_of(tables, split_table, options.wants, where, ", ".join(options.tables))
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        if look_at_slot(asking, options, where) is None:
            raise ConfigError("The connector has not begun yet", where=where, next_step="Run it once")
        asking.execute("BEGIN")
        asked = asked or tables_of(asking, options)
        for schema, table in asked:
            _described(asking, schema, table, where)
        _say(asking, prefix(options.slot_name, REQUEST), json.dumps(SnapshotProgress(tuple(asked)).as_json()))
        asking.execute("COMMIT")
    return [f"{schema}.{table}" for schema, table in asked]


def rows_left(options: PostgresChangesOptions, progress: SnapshotProgress | None) -> list[RowsLeft]:
    """As the server's planner estimates it, from the statistics of the tables. `progress` is None before there is a
    slot."""
    found, where = [], options.address
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        progress = progress or SnapshotProgress(tuple(tables_of(asking, options)))
        after = progress.after
        for schema, table in progress.tables:
            with _one_snapshot(asking):
                of = _described(asking, schema, table, where)
                rows = _estimated(asking, of, None)
                found.append(RowsLeft(f"{schema}.{table}", min(rows, _estimated(asking, of, after)), rows))
            after = None
    return found


def _estimated(asking: cursor, of: _Table, after: Key | None) -> int:
    """How many rows are behind a key."""
    within, given = _behind(of, after)
    asking.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM {of.from_} {within}", given)
    plans: list[list[Json]] = [one for (one,) in asking.fetchall()]
    return int(plans[0][0]["Plan"]["Plan Rows"])


def write_chunks(asking: cursor, options: PostgresChangesOptions, progress: SnapshotProgress, where: str) -> None:
    """Writes the next chunks behind where the log has come to; fewer where a transaction stays open."""
    for _ in range(CHUNKS):
        if not progress.tables:
            return
        after = _write_chunk(asking, options, progress, where)
        if after is None:
            return
        progress = after


def _write_chunk(
    asking: cursor, options: PostgresChangesOptions, progress: SnapshotProgress, where: str
) -> SnapshotProgress | None:
    """How far the rows have come with it; None where a transaction stayed open that had begun before the watermark."""
    (schema, table), slot = progress.tables[0], options.slot_name
    watermark = secrets.token_hex(8)
    asking.execute("SELECT pg_logical_emit_message(false, %s, %s)", (prefix(slot, WATERMARK), watermark))
    if not _all_have_ended(asking):
        return None
    with _one_snapshot(asking):
        described = _described(asking, schema, table, where)
        _say(asking, prefix(slot, CHUNK), Chunk(watermark, described.relation, progress.after).text(described.names))
        asking.execute(*_rows(described, prefix(slot, ROW), progress.after, options.snapshot_rows))
        keys = asking.fetchall()
        last: Key | None = tuple(keys[-1][1:]) if len(keys) == options.snapshot_rows else None
        _say(asking, prefix(slot, END), json.dumps(last))
    return progress.behind(last)


def _described(asking: cursor, schema: str, table: str, where: str) -> _Table:
    """Nobody alters it until the end of the transaction."""
    place = f"{quoted_name(schema)}.{quoted_name(table)}"
    asking.execute(f"LOCK TABLE {place} IN ACCESS SHARE MODE")
    asking.execute(_COLUMNS, (place,))
    found = asking.fetchall()
    if not found:
        raise ConfigError(
            f"Rows of table {schema}.{table} cannot be read chunk by chunk: it is gone, or has no primary key",
            where=where,
            next_step="Give it one; or leave out `snapshot`, and copy its rows in another way",
        )
    return _Table(
        Relation(found[0][7], schema, table, 0, tuple(LoggedColumn(*one[:4]) for one in found)),
        names={one[2]: one[5] for one in found if one[5]},
        kinds={one[0]: one[4] for one in found},
        from_=place if found[0][6] == "p" else f"ONLY {place}",
    )


def _all_have_ended(asking: cursor) -> bool:
    """Whether all transactions have ended that write, and were open at the watermark: a commit is in the log before
    others see it. Only what is in the log behind the watermark is unknown to who reads from now on."""
    asking.execute(_NEWEST)
    newest, until = asking.fetchone(), clock.monotonic() + _WAIT_S
    while True:
        asking.execute(_ARE_OVER, newest)
        if asking.fetchone() == (True,):
            return True
        if clock.monotonic() >= until:
            return False
        clock.sleep(_AGAIN_S)


def _rows(of: _Table, row_prefix: str, after: Key | None, most: int) -> tuple[str, list[str]]:
    """SQL that writes the rows, and gives the key of each."""
    relation = of.relation
    columns = ", ".join(quoted_name(one.name) for one in relation.columns)
    keys = [one.name for one in relation.columns if one.of_key]
    key = ", ".join(map(quoted_name, keys))
    texts = ", ".join(f"{quoted_name(one)}::text" for one in keys)
    within, given = _behind(of, after)
    statement = (
        f"SELECT pg_logical_emit_message(true, %s, ROW({columns})::text), {texts}"
        f" FROM (SELECT {columns} FROM {of.from_} {within} ORDER BY {key} LIMIT {most}) c"
    )
    return statement, [row_prefix, *given]


def _behind(of: _Table, after: Key | None) -> tuple[str, Sequence[str]]:
    """SQL of which rows come behind a key, all where there is none, and what it is given."""
    if after is None:
        return "", ()
    keys = [one.name for one in of.relation.columns if one.of_key]
    behind = ", ".join(f"%s::{of.kinds[one]}" for one in keys)
    return f"WHERE ({', '.join(map(quoted_name, keys))}) > ({behind})", after


def _say(asking: cursor, named: str, text: str) -> None:
    asking.execute("SELECT pg_logical_emit_message(true, %s, %s)", (named, text))


@contextmanager
def _one_snapshot(asking: cursor) -> Iterator[None]:
    asking.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        yield
        asking.execute("COMMIT")
    except BaseException:
        if not asking.connection.closed:
            asking.execute("ROLLBACK")
        raise
