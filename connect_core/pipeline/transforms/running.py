"""Rows through steps, column by column: rows -> rows. Pure.

No column is copied that a step does not touch. A row that is filtered or unfit is only marked, and left out once half
of them are, or at the end.
"""

from __future__ import annotations

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
from connect_core.pipeline.transforms.columns import Column, changed, child, column_at, places_of
from connect_core.pipeline.transforms.dedupe_steps import DedupeRows
from connect_core.pipeline.transforms.deduping import dedupe
from connect_core.pipeline.transforms.exploding import explode
from connect_core.pipeline.transforms.mask_steps import MaskFields
from connect_core.pipeline.transforms.masking import mask
from connect_core.pipeline.transforms.paths import Path, written
from connect_core.pipeline.transforms.python_running import run_python
from connect_core.pipeline.transforms.python_step import PythonRows
from connect_core.pipeline.transforms.record_steps import SetRecord
from connect_core.pipeline.transforms.recording import set_record
from connect_core.pipeline.transforms.row_fields import RowFields
from connect_core.pipeline.transforms.row_step import Constant, RowStep, constant_type
from connect_core.pipeline.transforms.shape_steps import CopyFields, ExplodeRows, ExtractRows, HoistRows
from connect_core.pipeline.transforms.sql_running import run_sql
from connect_core.pipeline.transforms.sql_step import SqlRows
from connect_core.pipeline.transforms.steps import (
    CastFields,
    DropFields,
    FilterOut,
    FilterRows,
    FlattenFields,
    KeepFields,
    RenameFields,
    SetFields,
)
from connect_core.pipeline.transforms.texts import kind_of
from connect_core.pipeline.transforms.time_steps import FormatTimes, ParseTimes
from connect_core.pipeline.transforms.timing import format_times, parse_times
from connect_core.pipeline.transforms.working import SeenBySteps, TypedRows, Work
from connect_core.rows.schema import arrow_field, arrow_type
from connect_core.rows.types import Type
from connect_core.sdk.templates import Template


class Stepped(NamedTuple):
    """`places` says of each row which it was of those given, or a piece of. `unfit` are, in order, the places of rows
    that could not be cast, and why, without a value. A row in neither was filtered."""

    rows: TypedRows
    places: NDArray[np.int64]
    unfit: list[tuple[int, str]]


def run(
    steps: Sequence[RowStep], rows: TypedRows, most_bytes: int | None = None, seen: SeenBySteps | None = None
) -> Stepped:
    """`steps` are such that `after` finds nothing wrong with them on these rows. Raises TooManyOutputs where they would
    make more of several records than `most_bytes`, about. `seen` is what earlier rows of the range have left there."""
    work = Work(rows, most_bytes, seen)
    for place, step in enumerate(steps, 1):
        work.later = steps[place:]
        work.compact(half=True)
        work.reject_textless(step)
        _RUN[type(step)](step, work)
    work.finish()
    return Stepped(TypedRows(work.rows.to_struct_array(), work.records), work.places, work.unfit)


def _rename(step: RenameFields, work: Work) -> None:
    """All paths are found first: they are those before it."""
    for places, name in [(places_of(work.rows, path), name) for path, name in step.names]:
        work.rows = changed(work.rows, places, partial(_named, name))


def _named(name: str, field: pa.Field, column: pa.Array) -> list[Column]:
    return [(field.with_name(name), column)]


def _drop(step: DropFields, work: Work) -> None:
    dropped = set(step.paths)
    for path in step.paths:
        if not any(path[:length] in dropped for length in range(1, len(path))):
            work.rows = changed(work.rows, places_of(work.rows, path), lambda field, one: [])


def _keep(step: KeepFields, work: Work) -> None:
    work.rows = work.rows.select(list(step.names))


def _cast(step: CastFields, work: Work) -> None:
    for path, wanted in step.types:
        work.change(path, partial(_as, wanted, path, work))


def _as(wanted: Type, path: Path, work: Work, field: pa.Field, column: pa.Array) -> Column:
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


def _flatten(step: FlattenFields, work: Work) -> None:
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


def _set(step: SetFields, work: Work) -> None:
    """Templates are filled from the rows before it."""
    fields = work.fields
    for path, value in step.values:
        work.put(path, (arrow_field(path[-1], constant_type(value)), _column(value, fields)))


def _column(value: Constant | Template, fields: RowFields) -> pa.Array:
    if isinstance(value, Template):
        return filled(value, fields, pa.array(np.arange(len(fields))))
    return pa.repeat(pa.scalar(value, arrow_type(constant_type(value))), len(fields))


def _hoist(step: HoistRows, work: Work) -> None:
    struct = work.rows.to_struct_array()
    work.rows = pa.RecordBatch.from_arrays([struct], schema=pa.schema([pa.field(step.name, struct.type)]))


def _extract(step: ExtractRows, work: Work) -> None:
    _, column = column_at(work.rows, step.path)
    if column.null_count:
        missing: Flags = column.is_null().to_numpy(zero_copy_only=False)
        work.reject(missing, f"extract of {written(step.path)}: it is missing")
    parts = [(field, child(column, place)) for place, field in enumerate(column.type)]
    schema = pa.schema([field for field, _ in parts])
    work.rows = pa.RecordBatch.from_arrays([part for _, part in parts], schema=schema)


def _copy(step: CopyFields, work: Work) -> None:
    """All fields are found first: they are those before it."""
    for place, (field, column) in [(place, column_at(work.rows, path)) for path, place in step.places]:
        work.put(place, (field.with_name(place[-1]), column))


def _filter(step: FilterRows, work: Work) -> None:
    work.alive &= holding(step.condition, work.fields)


def _filter_out(step: FilterOut, work: Work) -> None:
    for path in step.paths:
        _, column = column_at(work.rows, path)
        out = pc.fill_null(pc.match_substring_regex(column, rf"\A(?:{step.pattern})\z"), False)
        work.alive &= ~out.to_numpy(zero_copy_only=False)


_RUN: Mapping[type[RowStep], Callable[[Any, Work], None]] = {
    RenameFields: _rename,
    DropFields: _drop,
    KeepFields: _keep,
    CastFields: _cast,
    MaskFields: mask,
    FlattenFields: _flatten,
    SetFields: _set,
    FilterRows: _filter,
    FilterOut: _filter_out,
    DedupeRows: dedupe,
    ParseTimes: parse_times,
    FormatTimes: format_times,
    HoistRows: _hoist,
    ExtractRows: _extract,
    CopyFields: _copy,
    ExplodeRows: explode,
    SetRecord: set_record,
    SqlRows: run_sql,
    PythonRows: run_python,
}
