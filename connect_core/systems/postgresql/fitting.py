"""Whether a table takes the rows of a document: asked before anything is planned. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from connect_core.errors import ConfigError
from connect_core.rows.types import Type
from connect_core.systems.postgresql.catalog import Table, TableColumn
from connect_core.systems.postgresql.types import holds


def columns_of(table: Table, rows: Type, where: str) -> list[TableColumn]:
    """Of each field the column. Raises ConfigError with the first thing that does not fit."""
    for wrong, step in _misfits(table, rows):
        raise ConfigError(wrong, where=where, next_step=step)
    by_name = {column.name: column for column in table.columns}
    return [by_name[name] for name, _ in rows.fields]


def there_are(table: Table, rows: Type) -> Type:
    """The fields that the table has a column of the name for."""
    names = {column.name for column in table.columns}
    return replace(rows, fields=tuple((name, one) for name, one in rows.fields if name in names))


def key_of(table: Table, wanted: Sequence[str], rows: Type, where: str) -> tuple[str, ...]:
    """The columns that tell rows apart. Raises ConfigError where the table does not see to it."""
    key = tuple(wanted) or table.key
    if not key:
        raise ConfigError("The table has no primary key", where=where, next_step="Write key: [COLUMN], or make one")
    if frozenset(key) not in table.unique:
        words = f"No index of the table says that {', '.join(key)} is unique"
        raise ConfigError(words, where=where, next_step=f"CREATE UNIQUE INDEX ON … ({', '.join(key)})")
    if missing := [name for name in key if rows.field(name) is None]:
        step = "Make a field of it: transforms: [{set: …}], or choose another key"
        raise ConfigError(f"Records have no field {missing[0]}, which is in the key", where=where, next_step=step)
    return key


def _misfits(table: Table, rows: Type) -> Iterator[tuple[str, str]]:
    if table.unlogged:
        yield "The table is UNLOGGED, so a crash of the database empties it", "ALTER TABLE … SET LOGGED"
    by_name = {column.name: column for column in table.columns}
    for name, one in rows.fields:
        column = by_name.get(name)
        if column is None:
            near = get_close_matches(name, by_name, n=1)
            step = f"Rename the field to {near[0]}" if near else "Drop or rename the field, or add the column"
            yield f"The table has no column {name}", step
        elif column.generated:
            yield f"The database makes the values of column {name} itself", "Drop the field"
        elif not holds(column.kind, one, is_enum=column.is_enum):
            step = "Cast the field to a type that the column keeps exactly (docs/tables.md), or change the column"
            yield f"Column {name} is {column.kind}, and does not keep {one} exactly", step
    for column in table.columns:
        if column.required and not column.filled and not column.generated and rows.field(column.name) is None:
            yield f"Column {column.name} takes no NULL, and records have no such field", "Make a field of it, by set"
