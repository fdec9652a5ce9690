"""What SQLite says of a query that is read: whether it takes it, and which columns its result has. Nothing but SQLite
reads the text.

The query is made a temporary view of our connection, which nobody else sees. So it is one SELECT, whole, and cannot
leave the place where it stands; and a view has the types of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.sql.catalog import SqlColumn
from connect_core.systems.sql.connecting import connected
from connect_core.systems.sql.failures import meaning, understood
from connect_core.systems.sql.readable import Computed, SqlRowReader
from connect_core.systems.sql.row_times import FORMS, KINDS, is_time
from connect_core.systems.sql.source_catalog import SqlSourceTable
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.tables.queries import (
    PARTITION,
    missing_column,
    no_moment,
    not_computed,
    not_taken,
    not_whole,
    origin_of,
)

_VIEW, _TEMPORARY = "waybill_query", "temp"
_ERROR, _NO_TABLE = "SQLITE_ERROR", "no such table"
_TOLD = (sa.Boolean, sa.JSON, sa.DateTime)
"""Types that say more of a value than what it is itself."""
_NOT_WHOLE = (sa.String, sa.Float, sa.Date, sa.Time, *_TOLD)
_UNTYPED = (sa.types.NullType, sa.LargeBinary, sa.Numeric)
"""What SQLite says of expressions, whatever they give: BLOB and NUM in newer versions, nothing in older ones."""
_AGAIN = re.compile(r"(.+):\d+")
"""So a view calls a column whose name another one has."""


@contextmanager
def reading(options: SqlSourceOptions, where: str) -> Iterator[sa.Connection]:
    """A connection on which what is read can be asked for."""
    with connected(options, where, "reads") as connection:
        if options.query:
            with _judged(where):
                connection.exec_driver_sql("PRAGMA query_only = OFF")
                connection.exec_driver_sql(f"CREATE TEMPORARY VIEW {_VIEW} AS {options.query}")
                connection.commit()
                connection.exec_driver_sql("PRAGMA query_only = ON")
        yield connection


@contextmanager
def reading_understood(options: SqlSourceOptions, where: str) -> Iterator[None]:
    """Raises what driver and worker know instead of what SQLAlchemy raises. What is wrong with a row of a query is the
    data's."""
    if not options.query:
        with understood(where):
            yield
        return
    try:
        yield
    except exc.DBAPIError as error:
        raise _of_data(error, where) from None


@contextmanager
def _judged(where: str) -> Iterator[None]:
    """What is wrong with the text is the document's."""
    try:
        yield
    except exc.DBAPIError as error:
        said = " ".join(str(error.orig).split())
        is_of_text = getattr(error.orig, "sqlite_errorname", _ERROR) == _ERROR
        if is_of_text and not said.startswith(_NO_TABLE):
            raise not_taken(said, where) from None
        raise meaning(error, where) from None


def _of_data(error: exc.DBAPIError, where: str) -> WaybillError:
    name = str(getattr(error.orig, "sqlite_errorname", ""))
    known = meaning(error, where)
    is_of_rows = name == _ERROR and not str(error.orig).startswith(_NO_TABLE)
    return not_computed(name, where) if is_of_rows or isinstance(known, RowsRefused) else known


def read_query(asking: sa.Connection, options: SqlSourceOptions) -> SqlSourceTable:
    """Raises ConfigError with what of it does not fit, and Unreachable where a table of it is not there."""
    where, ids, time = f"{options.url}/{PARTITION}", options.incrementing or "", options.timestamp or ""
    with _judged(where):
        asking.exec_driver_sql(f"SELECT * FROM {_TEMPORARY}.{_VIEW} LIMIT 0")  # so that columns are those of now
        declared = {str(one["name"]): one["type"] for one in sa.inspect(asking).get_columns(_VIEW, schema=_TEMPORARY)}
    relation = sa.table(_VIEW, *map(sa.column, declared), schema=_TEMPORARY)
    _check_columns(declared, ids, time, where)
    columns = [_column(name, of) for name, of in declared.items()]
    origin = origin_of(f"{options.query}/{ids}/{time}", "")
    found = SqlSourceTable(relation, _VIEW, origin, ids, SqlRowReader(columns, (ids,)), "", False, is_query=True)
    return found._replace(time=relation.c[time], time_type=_time_type(declared[time])) if time else found


def _check_columns(declared: dict[str, sa.types.TypeEngine[Any]], ids: str, time: str, where: str) -> None:
    for name in declared:
        if (found := _AGAIN.fullmatch(name)) and found[1] in declared:
            words = f"Two columns of the query are called {found[1]}"
            raise ConfigError(words, where=where, next_step="Give each column a name of its own (AS …)")
    if ids not in declared:
        raise missing_column(ids, "incrementing", where)
    if isinstance(declared[ids], _NOT_WHOLE):
        raise not_whole(ids, _kind(declared[ids]), f"CAST({ids} AS INTEGER)", where)
    if time and time not in declared:
        raise missing_column(time, "timestamp", where)
    if time and not is_time(_time_type(declared[time])):
        raise no_moment(time, _kind(declared[time]), f"{KINDS}, with {FORMS}", where)


def _time_type(of: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    """Of an expression either form counts, by what the value is."""
    return sa.DateTime() if isinstance(of, _UNTYPED) and not isinstance(of, sa.Float) else of


def _column(name: str, of: sa.types.TypeEngine[Any]) -> SqlColumn:
    kept = of if isinstance(of, _TOLD) else Computed()
    return SqlColumn(name, kept, _kind(of), False, False, False, of_file=True)


def _kind(of: sa.types.TypeEngine[Any]) -> str:
    return type(of).__name__


def check_numbers(asking: sa.Connection, table: SqlSourceTable, where: str) -> None:
    """Raises ConfigError where a row has no number: nobody would read it."""
    missing = sa.select(sa.literal(1)).select_from(table.relation).where(table.number.is_(None)).limit(1)
    if asking.execute(missing).first():
        words = f"Column {table.id} of the query is NULL in a row, and such rows would never be read"
        step = f"Leave them out in the query (WHERE … IS NOT NULL), or give {table.id} a value (COALESCE)"
        raise ConfigError(words, where=where, next_step=step)


def number_of_two(asking: sa.Connection, table: SqlSourceTable, among: int) -> int | None:
    """Of so many newest rows a number that two of them have."""
    newest = sa.select(table.number.label("n")).select_from(table.relation).order_by(table.number.desc()).limit(among)
    rows = newest.subquery()
    twice = sa.select(rows.c.n).group_by(rows.c.n).having(sa.func.count() > 1).limit(1)
    number: int | None = asking.execute(twice).scalar()
    return number
