"""Whether a table takes the rows of a document: asked before anything is planned. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Protocol, TypeVar

from connect_core.errors import ConfigError
from connect_core.rows.types import Type


class FittedColumn(Protocol):
    """Of a table."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """Its type, as the database writes it."""

    @property
    def required(self) -> bool:
        """Whether it takes no NULL."""

    @property
    def filled(self) -> bool:
        """Whether the database has a value for a row that brings none."""

    @property
    def generated(self) -> bool:
        """Whether no row may bring a value."""


C = TypeVar("C", bound=FittedColumn)
Keeps = Callable[[C, Type], bool]
"""Whether a column keeps every value of a field exactly, or refuses it."""


def columns_of(columns: Sequence[C], rows: Type, keeps: Keeps[C], where: str) -> list[C]:
    """Of each field the column. Raises ConfigError with the first thing that does not fit."""
    for wrong, step in _misfits(columns, rows, keeps):
        raise ConfigError(wrong, where=where, next_step=step)
    by_name = {column.name: column for column in columns}
    return [by_name[name] for name, _ in rows.fields]


def there_are(columns: Sequence[FittedColumn], rows: Type) -> Type:
    """The fields that the table has a column of the name for."""
    names = {column.name for column in columns}
    return replace(rows, fields=tuple((name, one) for name, one in rows.fields if name in names))


def key_of(key: Sequence[str], unique: Collection[frozenset[str]], rows: Type, making: str, where: str) -> None:
    """Raises ConfigError where the table does not see to it that the key tells rows apart. `unique` are sets of columns
    of which no two rows have the same; `making` is the statement that makes such an index."""
    if not key:
        raise ConfigError("The table has no primary key", where=where, next_step="Write key: [COLUMN], or make one")
    if frozenset(key) not in unique:
        words = f"No index of the table says that {', '.join(key)} is unique"
        raise ConfigError(words, where=where, next_step=f"{making} ({', '.join(key)})")
    if missing := [name for name in key if rows.field(name) is None]:
        step = "Make a field of it: transforms: [{set: …}], or choose another key"
        raise ConfigError(f"Records have no field {missing[0]}, which is in the key", where=where, next_step=step)


def _misfits(columns: Sequence[C], rows: Type, keeps: Keeps[C]) -> Iterator[tuple[str, str]]:
    by_name = {column.name: column for column in columns}
    for name, one in rows.fields:
        column = by_name.get(name)
        if column is None:
            near = get_close_matches(name, by_name, n=1)
            step = f"Rename the field to {near[0]}" if near else "Drop or rename the field, or add the column"
            yield f"The table has no column {name}", step
        elif column.generated:
            yield f"The database makes the values of column {name} itself", "Drop the field"
        elif not keeps(column, one):
            step = "Cast the field to a type that the column keeps exactly (docs/tables.md), or change the column"
            yield f"Column {name} is {column.kind}, and does not keep {one} exactly", step
    for column in columns:
        if column.required and not column.filled and not column.generated and rows.field(column.name) is None:
            yield f"Column {column.name} takes no NULL, and records have no such field", "Make a field of it, by set"
