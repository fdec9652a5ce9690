"""What the database says of a query that is read: whether it takes it, which columns and types its result has, and
which relations it reads.

Nothing but the server reads the text. `PREPARE` locks what a query reads, through views, too, and plans nothing, so
that neither partitions nor what a function reads are among these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg2
from psycopg2.extensions import cursor

from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.postgresql.catalog import TableColumn
from connect_core.systems.postgresql.connecting import transaction
from connect_core.systems.postgresql.failures import meaning
from connect_core.systems.postgresql.readable import is_readable
from connect_core.systems.postgresql.source_catalog import (
    MOMENT,
    WHOLE,
    IdSequence,
    SourceTable,
    cluster_of,
    misfits_of_sequences,
    sequences_of,
)
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.tables.queries import (
    PARTITION,
    missing_column,
    no_moment,
    not_allowed,
    not_computed,
    not_taken,
    not_whole,
    origin_of,
    relation,
    unfit_column,
)

_NAMED = "SELECT set_config('waybill.query', %s, true)"
_OPENED = "DO $$ DECLARE one refcursor; BEGIN OPEN one FOR EXECUTE current_setting('waybill.query'); CLOSE one; END $$"
"""A cursor takes one statement that gives rows, and nothing is asked of it. Two statements, or a bracket too many,
would leave the derived table."""
_RELATIONS = """
SELECT c.oid, c.relkind, c.oid::regclass::text FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND c.relnamespace <> 'pg_catalog'::regnamespace
ORDER BY 1
"""
_TYPES = "SELECT oid, format_type(oid, NULL), typtype = 'e' FROM pg_type WHERE oid = ANY(%s::oid[])"
_ELSEWHERE = {
    "f": "is no table of this database: who writes it is not seen",
    "m": "is a materialized view: what is refreshed later may have lower numbers, or older times",
}
_OF_TEXT = ("42", "0A", "25006")
"""What the server finds in the text: classes of SQLSTATE; and that it would write."""
_SEVERAL, _FORBIDDEN, _MISSING = "42P11", "42501", "42P01"


class _Relation(NamedTuple):
    number: int
    kind: str
    name: str


class _Result(NamedTuple):
    columns: tuple[TableColumn, ...]
    place: tuple[int, int]
    """Of the column that numbers rows: the oid of its table or view, and its own number; zeros of an expression."""


@contextmanager
def query_understood(where: str) -> Iterator[None]:
    """Raises what driver and worker know instead of what the driver of the database raises. What is wrong with the text
    is the document's, and what is wrong with a row the data's."""
    try:
        yield
    except psycopg2.Error as error:
        raise _meaning(error, where) from None


def _meaning(error: psycopg2.Error, where: str) -> WaybillError:
    state, said = error.pgcode or "", " ".join((error.diag.message_primary or "").split())
    if state == _SEVERAL:
        return not_taken("it is not one statement that gives rows", where)
    if state == _FORBIDDEN:
        return not_allowed(said, "GRANT SELECT on it; where row-level security hides rows of it, BYPASSRLS", where)
    if state.startswith(_OF_TEXT) and state != _MISSING:
        return not_taken(said, where)
    known = meaning(error, where)
    return not_computed(known.kind, where) if isinstance(known, RowsRefused) else known


@contextmanager
def query_as_it_is(asking: cursor, options: PostgresSourceOptions) -> Iterator[SourceTable]:
    """What the query reads is neither dropped nor changed until this ends. Each statement within sees what was
    committed when it began, so behind its locks: what another session has written again meanwhile (CLUSTER, REFRESH)
    would be empty to a snapshot from before."""
    with transaction(asking, "READ ONLY"):
        asking.execute(_NAMED, (options.query,))
        asking.execute(_OPENED)
    with transaction(asking, "ISOLATION LEVEL READ COMMITTED READ ONLY"):
        yield _read(asking, options, f"{options.address}/{PARTITION}")


def _read(asking: cursor, options: PostgresSourceOptions, where: str) -> SourceTable:
    cluster = cluster_of(asking, where, locks_matter=not options.bulk)
    source, ids = relation(options.query), options.incrementing or ""
    relations = _relations(asking, source)
    if not options.bulk:
        _require_own(relations, where)
    columns, place = _result(asking, source, ids, where)
    by_name = {column.name: column for column in columns}
    if options.timestamp and options.timestamp not in by_name:
        raise missing_column(options.timestamp, "timestamp", where)
    time = by_name[options.timestamp] if options.timestamp else None
    if time and not MOMENT.fullmatch(time.kind):
        raise no_moment(time.name, time.kind, "timestamp with time zone, or timestamp", where)
    is_numbered = not (options.timestamp or options.bulk)
    sequences = _sequences(asking, relations, place, where) if is_numbered else ()
    known = place[0] in [one.number for one in relations]
    tables = [place[0]] if known else [one.number for one in relations]
    said = f"{options.query}/{ids}/{options.timestamp or ''}"
    origin = origin_of(said, f"{cluster}/{tables}")
    return SourceTable(0, source, origin, columns, ids, (by_name[ids],), sequences, time)


def _relations(asking: cursor, source: str) -> list[_Relation]:
    asking.execute(f"PREPARE waybill_query AS SELECT * FROM {source}")
    asking.execute(_RELATIONS)
    found = [_Relation(*row) for row in asking.fetchall()]
    asking.execute("DEALLOCATE waybill_query")
    return found


def _require_own(relations: list[_Relation], where: str) -> None:
    for one in relations:
        if one.kind in _ELSEWHERE:
            step = "Read a table instead, or write bulk: true, and each run reads all rows"
            raise ConfigError(f"{one.name} {_ELSEWHERE[one.kind]}", where=where, next_step=step)


def _result(asking: cursor, source: str, ids: str, where: str) -> _Result:
    """By a statement that gives no row. It locks partitions, too."""
    asking.execute(f"SELECT * FROM {source} LIMIT 0")
    described = list(asking.description or ())
    asking.execute(_TYPES, ([one.type_code for one in described],))
    types = {number: (kind, is_enum) for number, kind, is_enum in asking.fetchall()}
    columns = tuple(TableColumn(one.name, *types[one.type_code], False, False, False) for one in described)
    _check_columns(columns, ids, where)
    of_ids = next(one for one in described if one.name == ids)
    return _Result(columns, (of_ids.table_oid or 0, of_ids.table_column or 0))


def _check_columns(columns: tuple[TableColumn, ...], ids: str, where: str) -> None:
    kinds: dict[str, str] = {}
    for column in columns:
        if column.name in kinds:
            step = "Give each column a name of its own (AS …)"
            words = f"Two columns of the query are called {column.name}"
            raise ConfigError(words, where=where, next_step=step)
        if not is_readable(column):
            raise unfit_column(column.name, column.kind, where)
        kinds[column.name] = column.kind
    if ids not in kinds:
        raise missing_column(ids, "incrementing", where)
    if kinds[ids] not in WHOLE:
        raise not_whole(ids, kinds[ids], f"CAST({ids} AS bigint)", where)


def _sequences(
    asking: cursor, relations: list[_Relation], place: tuple[int, int], where: str
) -> tuple[IdSequence, ...]:
    """Of the column of a table that the numbers are."""
    if place[0] not in [one.number for one in relations if one.kind in "rp"]:
        return ()
    found = sequences_of(asking, *place)
    for wrong, step in misfits_of_sequences(found):
        raise ConfigError(wrong, where=where, next_step=step)
    return found
