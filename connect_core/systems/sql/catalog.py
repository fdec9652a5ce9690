"""What SQLAlchemy says of a table: its columns, and what tells its rows apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc

from connect_core.errors import ConfigError, Missing

_BINARY = "BINARY"
"""The collation of SQLite that takes two texts for one only where they are the same."""


class SqlColumn(NamedTuple):
    name: str
    type: sa.types.TypeEngine[Any]
    kind: str
    """Its type, as the database writes it."""
    required: bool
    """Whether it takes no NULL."""
    filled: bool
    """Whether the database has a value for a row that brings none."""
    generated: bool
    """Whether no row may bring a value."""
    of_file: bool
    """Whether it is of SQLite, where a column keeps what its affinity makes of a value."""


class SqlTable(NamedTuple):
    name: str
    """TABLE, or SCHEMA.TABLE."""
    columns: tuple[SqlColumn, ...]
    key: tuple[str, ...]
    """Of its primary key; empty without one."""
    unique: frozenset[frozenset[str]]
    """Sets of columns of which no two rows have the same."""
    row_id: str
    """Of SQLite: the column that is another name of the number which it gives each row; empty without one."""
    counts: bool
    """Of SQLite: whether no number of a row is given out again (AUTOINCREMENT)."""

    @property
    def relation(self) -> sa.TableClause:
        """Its columns are `sa.column` of their names, so that SQLAlchemy converts no value."""
        return relation(self.name, *(sa.column(one.name) for one in self.columns))


def relation(name: str, *columns: sa.ColumnClause[Any]) -> sa.TableClause:
    schema, _, table = name.rpartition(".")
    return sa.table(table, *columns, schema=schema or None)


def read_table(asking: sa.Connection, name: str) -> SqlTable | None:
    """None where there is none of that name. A view has no key, and is told from a table by `require_table`."""
    schema, _, table = name.rpartition(".")
    looking = sa.inspect(asking)  # it asks for nothing twice
    try:
        written = _as_it_is_written(asking, table)
        found = sa.Table(written, sa.MetaData(), schema=schema or None)
        looking.reflect_table(found, None, resolve_fks=False)
    except exc.NoSuchTableError:
        return None
    key = tuple(column.name for column in found.primary_key.columns)
    made = _made_by(asking, table)
    row_id = _row_id(asking, found, key, made)
    columns = tuple(_column(column, row_id, asking.dialect) for column in found.columns)
    unique = _unique(asking, looking, found, key, row_id)
    return SqlTable(name, columns, key, unique, row_id, "AUTOINCREMENT" in made.upper())


def _as_it_is_written(asking: sa.Connection, table: str) -> str:
    """SQLite finds it under other capitals, too; SQLAlchemy finds its columns then, and no key."""
    if asking.dialect.name != "sqlite":
        return table
    named = sa.text("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND lower(name) = lower(:name)")
    return str(asking.execute(named, {"name": table}).scalar() or table)


def require_table(asking: sa.Connection, name: str, where: str) -> SqlTable:
    """Raises Unreachable where it is not there, and ConfigError for a view."""
    table = read_table(asking, name)
    if table is None:
        step = "Create it, or name another one; the next attempt looks again"
        raise Missing("There is no such table", where=where, next_step=step)
    schema, _, alone = name.rpartition(".")
    if not sa.inspect(asking).get_table_names(schema or None).count(alone) and is_view(asking, name):
        raise ConfigError("This is no table", where=where, next_step="Name a table; views have no rows of their own")
    return table


def is_view(asking: sa.Connection, name: str) -> bool:
    schema, _, table = name.rpartition(".")
    return table.lower() in (one.lower() for one in sa.inspect(asking).get_view_names(schema or None))


def _column(column: sa.Column[Any], row_id: str, dialect: sa.Dialect) -> SqlColumn:
    of_file = dialect.name == "sqlite"
    numbered = column.name == row_id or (not of_file and column.identity is not None)
    return SqlColumn(
        column.name,
        column.type,
        _kind(column, dialect),
        not column.nullable or column.name == row_id,
        column.server_default is not None or numbered,
        column.computed is not None,
        of_file,
    )


def _kind(column: sa.Column[Any], dialect: sa.Dialect) -> str:
    try:
        return column.type.compile(dialect=dialect)
    except exc.CompileError:  # nothing is known of it
        return "of no type that is known"


def _made_by(asking: sa.Connection, table: str) -> str:
    """Of SQLite: the statement that made it."""
    if asking.dialect.name != "sqlite":
        return ""
    made = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND lower(name) = lower(:name)")
    return str(asking.execute(made, {"name": table}).scalar() or "")


def _row_id(asking: sa.Connection, found: sa.Table, key: tuple[str, ...], made: str) -> str:
    """Only `INTEGER PRIMARY KEY` names it, in these words and no others: with DESC behind them it is a column as others
    are, which takes NULL. Such a key has an index."""
    if not made or len(key) != 1 or "WITHOUT ROWID" in " ".join(made.upper().split()):
        return ""
    indexed = sa.text("SELECT count(*) FROM pragma_index_list(:t) WHERE origin = 'pk'")
    if type(found.columns[key[0]].type) is not sa.INTEGER or asking.execute(indexed, {"t": found.name}).scalar():
        return ""
    return key[0]


def _unique(
    asking: sa.Connection, looking: sa.Inspector, found: sa.Table, key: tuple[str, ...], row_id: str
) -> frozenset[frozenset[str]]:
    if asking.dialect.name == "sqlite":
        sets = _unique_of_file(asking, found.name) + ([[row_id]] if row_id else [])
    else:
        indexes = looking.get_indexes(found.name, found.schema)
        sets = [[*key]] if key else []
        sets += [[str(name) for name in one["column_names"]] for one in indexes if one["unique"] and _plain(one)]
        sets += [one["column_names"] for one in looking.get_unique_constraints(found.name, found.schema)]
    return frozenset(map(frozenset, sets))


def _plain(index: Any) -> bool:
    """Whether it is of whole columns, and of all rows."""
    partial = any(name.endswith("_where") and given for name, given in index.get("dialect_options", {}).items())
    return None not in index["column_names"] and "expressions" not in index and not partial


def _unique_of_file(asking: sa.Connection, table: str) -> list[list[str]]:
    """Of whole columns, all rows, and texts that are told apart byte by byte."""
    found = []
    listed = sa.text('SELECT name FROM pragma_index_list(:t) WHERE "unique" AND NOT partial')
    parts = sa.text("SELECT name, coll FROM pragma_index_xinfo(:i) WHERE key")
    for (index,) in asking.execute(listed, {"t": table}).all():
        columns = asking.execute(parts, {"i": index}).all()
        if all(name is not None and collation.upper() == _BINARY for name, collation in columns):
            found.append([name for name, _ in columns])
    return found
