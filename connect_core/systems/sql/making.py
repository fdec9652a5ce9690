"""Tables that are made, and columns that are added, for the fields of records."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from connect_core.errors import ConfigError, Unreachable
from connect_core.rows.types import Type
from connect_core.sdk.kits import marker as markers
from connect_core.systems.sql.catalog import SqlTable, read_table, relation
from connect_core.systems.sql.failures import made
from connect_core.systems.sql.options import SqlSinkOptions, checked_name
from connect_core.systems.sql.types import column_for

NO_MARKER = "-"
"""In the place of a marker whose name alone is there, so that it can be locked."""


def create_table(name: str, rows: Type, key: Sequence[str], dialect: sa.Dialect) -> str:
    """The statement that makes it. Raises ConfigError for a field that no column keeps exactly."""
    columns = [_column(field, one, in_key=field in key, dialect=dialect) for field, one in rows.fields]
    order = {column.name: column for column in columns}
    primary = [sa.PrimaryKeyConstraint(*(order[field] for field in key))] if key else []
    return _statement(name, [*columns, *primary], dialect)


def create_markers(name: str, dialect: sa.Dialect) -> str:
    columns = [sa.Column("name", sa.String(700), primary_key=True), sa.Column("marker", sa.Text, nullable=False)]
    return _statement(name, columns, dialect)


def add_columns(table: SqlTable, rows: Type, dialect: sa.Dialect) -> list[str]:
    """The statements that add what this table lacks."""
    there = {column.name.lower(): column.name for column in table.columns}
    known = set(there.values())
    preparer, statements = dialect.identifier_preparer, []
    whole = preparer.format_table(_named(table.name))
    for name, one in rows.fields:
        if name in known:
            continue
        if other := there.get(name.lower()):
            words = f"Field {name} and column {other} have one name to the database"
            raise ConfigError(words, next_step=f"Rename the field to {other}")
        column = _column(name, one, in_key=False, dialect=dialect)
        statements.append(f"ALTER TABLE {whole} ADD COLUMN {preparer.quote(name)} {column.type.compile(dialect)}")
    return statements


def _statement(name: str, parts: Sequence[sa.schema.SchemaItem], dialect: sa.Dialect) -> str:
    schema, _, table = name.rpartition(".")
    return " ".join(
        str(CreateTable(sa.Table(table, sa.MetaData(), *parts, schema=schema or None)).compile(dialect=dialect)).split()
    )


def _named(name: str) -> sa.Table:
    schema, _, table = name.rpartition(".")
    return sa.Table(table, sa.MetaData(), schema=schema or None)


def _column(name: str, one: Type, *, in_key: bool, dialect: sa.Dialect) -> sa.Column[object]:
    try:
        checked_name(name)
    except ValueError as error:
        step = "Rename the field, or make the column with another name"
        raise ConfigError(f"Field {name!r:.80} {error}", next_step=step) from None
    of = column_for(one, in_key=in_key, of_file=dialect.name == "sqlite")
    if of is None:
        step = "Cast the field to another type, or to text"
        raise ConfigError(f"No column keeps {one} of field {name} exactly", next_step=step)
    return sa.Column(name, of, nullable=not in_key, autoincrement=False)


def make_room(asking: sa.Connection, options: SqlSinkOptions, rows: Type, where: str, beside: str = "") -> None:
    """Makes the table, or adds what it lacks, where the document wants that. `beside` is its name where it is not the
    sink's own. Raises Unreachable for a table that had rows of this connector and is gone: an empty one in its place
    would keep the former one from getting its name back."""
    if options.create_table or options.add_columns:
        with made(where):
            for statement in _wanted(asking, options, rows, where, beside):
                asking.exec_driver_sql(statement)


def make_markers(asking: sa.Connection, options: SqlSinkOptions, where: str) -> None:
    with made(where):
        if read_table(asking, options.markers) is None:
            asking.exec_driver_sql(create_markers(options.markers, asking.dialect))


def _wanted(asking: sa.Connection, options: SqlSinkOptions, rows: Type, where: str, beside: str) -> list[str]:
    table = read_table(asking, options.table)
    if table is not None:
        return add_columns(table, rows, asking.dialect) if options.add_columns else []
    if not options.create_table:
        return []
    statement = create_table(options.table, rows, options.key, asking.dialect)
    if has_written(asking, options, where, beside):
        step = f"If it was renamed, give it its name back. Where it is to be another one, make it: {statement}"
        raise Unreachable(
            "There is no such table, and this connector has had one of its name before: it is not made",
            where=where,
            next_step=step,
        )
    return [statement]


def has_written(asking: sa.Connection, options: SqlSinkOptions, target: str, beside: str = "") -> bool:
    """Whether the table of markers has one of this connector in this target; of a table `beside` its own one that names
    it."""
    if read_table(asking, options.markers) is None:
        return False
    name, marker = sa.column("name", sa.String), sa.column("marker", sa.String)
    kept = relation(options.markers, name, marker)
    mine = sa.select(marker).select_from(kept).where(name.startswith(f"{options.uid}/", autoescape=True))
    return any(markers.names(str(one), target, beside) for one in asking.execute(mine).scalars())
