"""Tables that are made, and columns that are added, for the fields of records. A statement that makes something commits
by itself, and cannot be taken back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, Unreachable
from connect_core.rows.types import Type
from connect_core.sdk.kits import marker as markers
from connect_core.systems.mysql.catalog import INNODB, MysqlTable, quoted, quoted_name, read_table
from connect_core.systems.mysql.failures import made
from connect_core.systems.mysql.options import MAX_NAME, MysqlSinkOptions, is_name
from connect_core.systems.mysql.types import column_for

_OPTIONS = f"ENGINE={INNODB} DEFAULT CHARSET=utf8mb4"
_MARKERS = "(name VARBINARY(700) NOT NULL PRIMARY KEY, marker LONGTEXT NOT NULL)"


def create_table(place: tuple[str, str], rows: Type, key: Sequence[str]) -> str:
    """The statement that makes it. Raises ConfigError for a field that no column keeps exactly."""
    columns = [_column(name, one, in_key=name in key) for name, one in rows.fields]
    primary = [f"PRIMARY KEY ({', '.join(map(quoted_name, key))})"] if key else []
    return f"CREATE TABLE {quoted(place)} ({', '.join([*columns, *primary])}) {_OPTIONS}"


def add_columns(table: MysqlTable, rows: Type) -> str:
    """The statement that adds what this table lacks; empty where that is nothing. Raises ConfigError as
    `create_table`."""
    there = {column.name for column in table.columns}
    small = {name.lower(): name for name in there}
    for name, _ in rows.fields:
        if name not in there and (other := small.get(name.lower())):
            words = f"Field {name} and column {other} have one name to the database"
            raise ConfigError(words, next_step=f"Rename the field to {other}")
    more = [f"ADD COLUMN {_column(name, one, in_key=False)}" for name, one in rows.fields if name not in there]
    return f"ALTER TABLE {quoted((table.database, table.name))} {', '.join(more)}" if more else ""


def _column(name: str, one: Type, *, in_key: bool) -> str:
    if not is_name(name):
        step = "Rename the field, or make the column with another name"
        raise ConfigError(f"Field {name!r:.80} has no name for a column: at most {MAX_NAME} characters", next_step=step)
    kind = column_for(one, in_key=in_key)
    if kind is None:
        step = "Cast the field to one of microseconds, or of fewer digits, or to text"
        raise ConfigError(f"No column keeps {one} of field {name} exactly", next_step=step)
    return f"{quoted_name(name)} {kind} {'NOT NULL' if in_key else 'NULL'}"


def make_room(database: Connection[Any], options: MysqlSinkOptions, rows: Type, where: str, beside: str = "") -> None:
    """Makes the table, or adds what it lacks, where the document wants that; one at a time, for two tasks may begin at
    once. `beside` is its name where it is not the sink's own. Raises Unreachable for a table that had rows of this
    connector and is gone: an empty one in its place would keep the former one from getting its name back."""
    if not (options.create_table or options.add_columns):
        return
    with made(where), database.cursor() as asking, _alone(asking, options, options.table, where):
        if statement := _wanted(asking, options, rows, where, beside):
            asking.execute(statement)


def make_markers(database: Connection[Any], options: MysqlSinkOptions, where: str) -> None:
    """Makes the table of markers where it is missing: a user who may not make tables may have it made by another.
    Raises ConfigError for one without transactions."""
    place = options.split(options.markers)
    with made(where), database.cursor() as asking:
        table = read_table(asking, place)
        if table is None:
            asking.execute(f"CREATE TABLE IF NOT EXISTS {quoted(place)} {_MARKERS} {_OPTIONS}")
        elif table.engine.lower() != INNODB.lower():
            words = (
                f"The engine of the table of markers is {table.engine}, which has no transactions as they are needed"
            )
            raise ConfigError(words, where=where, next_step="ALTER TABLE … ENGINE = InnoDB")


@contextmanager
def _alone(asking: Cursor, options: MysqlSinkOptions, name: str, where: str) -> Iterator[None]:
    """Of the name, also where there is nothing yet that could be locked. The end of the session lets go, too."""
    lock = "waybill-" + hashlib.blake2b(quoted(options.split(name)).encode(), digest_size=16).hexdigest()
    asking.execute("SELECT GET_LOCK(%s, %s)", (lock, options.lock_timeout_s))
    if (asking.fetchone() or (0,))[0] != 1:
        raise Unreachable("Another session makes the table, for longer than lock_timeout_s", where=where)
    try:
        yield
    finally:
        if asking.connection.open:
            asking.execute("SELECT RELEASE_LOCK(%s)", (lock,))


def _wanted(asking: Cursor, options: MysqlSinkOptions, rows: Type, where: str, beside: str) -> str:
    place = options.split(options.table)
    table = read_table(asking, place)
    if table is not None:
        return add_columns(table, rows) if options.add_columns else ""
    if not options.create_table:
        return ""
    statement = create_table(place, rows, options.key)
    if has_written(asking, options, where, beside):
        step = f"If it was renamed, give it its name back. Where it is to be another one, make it: {statement}"
        raise Unreachable(
            "There is no such table, and this connector has had one of its name before: it is not made",
            where=where,
            next_step=step,
        )
    return statement


def has_written(asking: Cursor, options: MysqlSinkOptions, target: str, beside: str = "") -> bool:
    """Whether the table of markers has one of this connector in this target; of a table `beside` its own one that names
    it."""
    place = options.split(options.markers)
    if read_table(asking, place) is None:
        return False
    own = f"{options.uid}/"
    asking.execute(f"SELECT marker FROM {quoted(place)} WHERE LEFT(name, {len(own)}) = %s", (own.encode(),))
    return any(markers.names(str(marker), target, beside) for (marker,) in asking.fetchall())
