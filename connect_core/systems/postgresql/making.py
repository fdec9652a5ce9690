"""Tables that are made, and columns that are added, for the fields of records."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg2.extensions import connection

from connect_core.errors import ConfigError, Unreachable, WaybillError
from connect_core.rows.types import Type
from connect_core.sdk.kits import marker as markers
from connect_core.systems.postgresql.catalog import Table, quoted, quoted_name, read_table
from connect_core.systems.postgresql.failures import made
from connect_core.systems.postgresql.options import MAX_NAME, PostgresSinkOptions
from connect_core.systems.postgresql.types import column_for

_OF_THE_DATABASE = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
"""Columns that each table has (https://www.postgresql.org/docs/15/ddl-system-columns.html)."""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
"""Of a name, until the transaction ends: also where there is nothing yet that could be locked."""


def create_table(table: str, rows: Type, key: Sequence[str]) -> str:
    """The statement that makes it. Raises ConfigError for a field that no column keeps exactly."""
    columns = [_column(name, one) for name, one in rows.fields]
    primary = [f"PRIMARY KEY ({', '.join(map(quoted_name, key))})"] if key else []
    return f"CREATE TABLE {quoted(table)} ({', '.join([*columns, *primary])})"


def add_columns(name: str, table: Table, rows: Type) -> str:
    """The statement that adds what this table lacks; empty where that is nothing. Raises ConfigError as
    `create_table`."""
    there = {column.name for column in table.columns}
    more = [f"ADD COLUMN {_column(field, one)}" for field, one in rows.fields if field not in there]
    return f"ALTER TABLE {quoted(name)} {', '.join(more)}" if more else ""


def _column(name: str, one: Type) -> str:
    if "\0" in name or len(name.encode()) > MAX_NAME:
        step = "Rename the field, or make the column with a shorter name"
        raise ConfigError(f"Field {name!r:.80} has no name for a column: at most {MAX_NAME} bytes", next_step=step)
    if name in _OF_THE_DATABASE:
        raise ConfigError(f"No column can be called {name}: the database has one", next_step="Rename the field")
    kind = column_for(one)
    if kind is None:
        step = "Cast the field to one of microseconds"
        raise ConfigError(f"No column keeps {one} of field {name} exactly", next_step=step)
    return f"{quoted_name(name)} {kind}"


def make_room(database: connection, options: PostgresSinkOptions, rows: Type, where: str, beside: str = "") -> None:
    """Makes the table, or adds what it lacks, where the document wants that; one at a time, for two tasks may begin at
    once. `beside` is its name where it is not the sink's own. Raises Unreachable for a table that had rows of this
    connector and is gone: an empty one in its place would keep the former one from getting its name back."""
    if not (options.create_table or options.add_columns):
        return
    with made(where), database.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(LOCK, (quoted(options.table),))
        if statement := _wanted(database, options, rows, where, beside):
            cursor.execute(statement)
        cursor.execute("COMMIT")


def tried(database: connection, statement: str, where: str) -> str:
    """Why the database would not do it; empty: it would. Rolled back: it may wait for a lock of the table, and hold
    it for a moment."""
    try:
        with made(where), database.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(statement)
    except WaybillError as error:
        return f"{error.what}: {error.next_step}"
    finally:
        with database.cursor() as cursor:
            cursor.execute("ROLLBACK")
    return ""


def _wanted(database: connection, options: PostgresSinkOptions, rows: Type, where: str, beside: str) -> str:
    table = read_table(database, options.table)
    if table is not None:
        return add_columns(options.table, table, rows) if options.add_columns else ""
    if not options.create_table:
        return ""
    statement = create_table(options.table, rows, options.key)
    if has_written(database, options, where, beside):
        step = f"If it was renamed, give it its name back. Where it is to be another one, make it: {statement}"
        raise Unreachable(
            "There is no such table, and this connector has had one of its name before: it is not made",
            where=where,
            next_step=step,
        )
    return statement


def has_written(database: connection, options: PostgresSinkOptions, target: str, beside: str = "") -> bool:
    """Whether the table of markers has one of this connector in this target; of a table `beside` its own one that names
    it."""
    if read_table(database, options.markers) is None:
        return False
    with database.cursor() as cursor:
        cursor.execute(
            f"SELECT marker FROM {quoted(options.markers)} WHERE starts_with(name, %s)", (f"{options.uid}/",)
        )
        return any(markers.names(marker, target, beside) for (marker,) in cursor.fetchall())
