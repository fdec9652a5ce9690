"""Rows through steps, column by column: rows -> rows. Pure.

No column is copied that a step does not touch. A row that is filtered or unfit is only marked, and left out once half
of them are, or at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.pipeline.conditions import holding
from connect_core.pipeline.fields import Flags
from connect_core.pipeline.rules import filled
from connect_core.pipeline.transforms.casting import cast
from connect_core.pipeline.transforms.columns import Column, added, changed, child, places_of
from connect_core.pipeline.transforms.paths import Path, written
from connect_core.pipeline.transforms.row_fields import RowFields
from connect_core.pipeline.transforms.steps import (
    CastFields,
    Constant,
    DropFields,
    FilterRows,
    FlattenFields,
    KeepFields,
    MaskFields,
    RenameFields,
    RowStep,
    SetFields,
    constant_type,
)
from connect_core.pipeline.transforms.texts import json_texts, kind_of
from connect_core.rows.schema import arrow_field, arrow_type
from connect_core.rows.types import Type
from connect_core.sdk.templates import Template

REDACTED = "***"


class TypedRows(NamedTuple):
    """One row a record: a struct of its fields, never null itself, and the record (RECORD_SCHEMA) that it is of. `path`
    is that of the file whose lines the records are."""

    struct: pa.StructArray
    records: pa.RecordBatch
    path: str | None = None


class Stepped(NamedTuple):
    """`places` says of each row which it was of those given. `unfit` are, in order, the places of rows that could not
    be cast, and why, without a value. A row in neither was filtered."""

    rows: TypedRows
    places: NDArray[np.int64]
    unfit: list[tuple[int, str]]


def run(steps: Sequence[RowStep], rows: TypedRows) -> Stepped:
    """`steps` are such that `after` finds nothing wrong with them on these rows."""
    work = _Work(rows)
    for step in steps:
        work.compact(half=True)
        _RUN[type(step)](step, work)
    work.compact(half=False)
    return Stepped(TypedRows(work.rows.to_struct_array(), work.records), work.places, sorted(work.unfit))


class _Work:
    """Rows between two steps. Those not `alive` are filtered or unfit; steps may work on them, to no effect."""

    def __init__(self, given: TypedRows) -> None:
        self.rows = pa.RecordBatch.from_struct_array(given.struct)
        self.records, self.path = given.records, given.path
        self.places: NDArray[np.int64] = np.arange(len(given.struct), dtype=np.int64)
        self.alive: Flags = np.ones(len(given.struct), dtype=np.bool_)
        self.unfit: list[tuple[int, str]] = []
        self._fields: RowFields | None = None

    @property
    def fields(self) -> RowFields:
        """Of these rows: several steps that change nothing have them in common."""
        if self._fields is None or self._fields.rows is not self.rows:
            self._fields = RowFields(self.rows, self.records, self.path)
        return self._fields

    def compact(self, half: bool) -> None:
        left = int(self.alive.sum())
        if left == len(self.alive) or (half and left * 2 > len(self.alive)):
            return
        mask = pa.array(self.alive)
        self.rows, self.records = self.rows.filter(mask), self.records.filter(mask)
        self.places, self.alive = self.places[self.alive], np.ones(left, dtype=np.bool_)

    def reject(self, rows: Flags, why: str) -> None:
        """Those that are alive still."""
        self.unfit += [(place, why) for place in self.places[rows & self.alive].tolist()]
        self.alive &= ~rows

    def change(self, path: Path, change: Callable[[pa.Field, pa.Array], Column]) -> None:
        self.rows = changed(self.rows, places_of(self.rows, path), lambda *field: [change(*field)])


def _rename(step: RenameFields, work: _Work) -> None:
    """All paths are found first: they are those before it."""
    for places, name in [(places_of(work.rows, path), name) for path, name in step.names]:
        work.rows = changed(work.rows, places, partial(_named, name))


def _named(name: str, field: pa.Field, column: pa.Array) -> list[Column]:
    return [(field.with_name(name), column)]


def _drop(step: DropFields, work: _Work) -> None:
    dropped = set(step.paths)
    for path in step.paths:
        if not any(path[:length] in dropped for length in range(1, len(path))):
            work.rows = changed(work.rows, places_of(work.rows, path), lambda field, one: [])


def _keep(step: KeepFields, work: _Work) -> None:
    work.rows = work.rows.select(list(step.names))


def _cast(step: CastFields, work: _Work) -> None:
    for path, wanted in step.types:
        work.change(path, partial(_as, wanted, path, work))


def _as(wanted: Type, path: Path, work: _Work, field: pa.Field, column: pa.Array) -> Column:
    new, given = arrow_field(field.name, wanted), kind_of(field)
    if field.equals(new, check_metadata=True):
        return field, column
    made = cast(column, given, wanted)
    if made.null_count != column.null_count:
        unfit = pc.and_(made.is_null(), column.is_valid()).to_numpy(zero_copy_only=False)
        work.reject(unfit, f"cast of {written(path)}: {_unfit(given, wanted)}")
    return new, made


def _unfit(given: str, wanted: Type) -> str:
    if given == "text":
        return f"this text is no {wanted}"
    return f"this {given} has no text" if wanted.kind == "text" else f"this {given} does not fit into {wanted} exactly"


def _mask(step: MaskFields, work: _Work) -> None:
    for path, way in step.ways:
        work.change(path, _MASKS[way])


def _redacted(field: pa.Field, column: pa.Array) -> Column:
    return field, pc.if_else(column.is_valid(), REDACTED, pa.scalar(None, pa.string()))


def _hashed(field: pa.Field, column: pa.Array) -> Column:
    found = json_texts(field, column).dictionary_encode()
    hashes = [hashlib.sha256(one.encode()).hexdigest() for one in found.dictionary.to_pylist()]
    return pa.field(field.name, pa.string()), pa.array(hashes, pa.string()).take(found.indices)


_MASKS: Mapping[str, Callable[[pa.Field, pa.Array], Column]] = {"redact": _redacted, "hash": _hashed}


def _flatten(step: FlattenFields, work: _Work) -> None:
    columns = [
        leaf
        for field, column in zip(work.rows.schema, work.rows.columns, strict=True)
        for leaf in _leaves(field, column, step.separator)
    ]
    schema = pa.schema([field for field, _ in columns])
    work.rows = pa.RecordBatch.from_arrays([column for _, column in columns], schema=schema)


def _leaves(field: pa.Field, column: pa.Array, separator: str) -> list[Column]:
    if not pa.types.is_struct(field.type):
        return [(field, column)]
    parts = [(inner, child(column, place)) for place, inner in enumerate(field.type)]
    return [
        leaf
        for inner, part in parts
        for leaf in _leaves(inner.with_name(f"{field.name}{separator}{inner.name}"), part, separator)
    ]


def _set(step: SetFields, work: _Work) -> None:
    """Templates are filled from the rows before it."""
    fields = work.fields
    for path, value in step.values:
        *above, name = path
        new = arrow_field(name, constant_type(value)), _column(value, fields)
        places = places_of(work.rows, path)
        if places[-1] >= 0:
            work.rows = changed(work.rows, places, partial(_replaced, new))
        else:
            work.rows = added(work.rows, places_of(work.rows, tuple(above)), *new)


def _replaced(new: Column, field: pa.Field, column: pa.Array) -> list[Column]:
    return [new]


def _column(value: Constant | Template, fields: RowFields) -> pa.Array:
    if isinstance(value, Template):
        return filled(value, fields, pa.array(np.arange(len(fields))))
    return pa.repeat(pa.scalar(value, arrow_type(constant_type(value))), len(fields))


def _filter(step: FilterRows, work: _Work) -> None:
    work.alive &= holding(step.condition, work.fields)


_RUN: Mapping[type[RowStep], Callable[[Any, _Work], None]] = {
    RenameFields: _rename,
    DropFields: _drop,
    KeepFields: _keep,
    CastFields: _cast,
    MaskFields: _mask,
    FlattenFields: _flatten,
    SetFields: _set,
    FilterRows: _filter,
}
