"""Rows for tests of steps, and steps over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from connect_core.pipeline.transforms.running import Stepped, run
from connect_core.pipeline.transforms.steps import step_of
from connect_core.pipeline.transforms.working import TypedRows
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.testing.driving import records


def typed_rows(struct: pa.StructArray) -> TypedRows:
    """Rows of records whose topics are `site/0`, `site/1` …"""
    one = records([b""] * len(struct), topic=[f"site/{place}" for place in range(len(struct))])
    return TypedRows(struct, one)


def column_of(kind: str, numbers: list[int | None]) -> pa.StructArray:
    """Of a field `n` of this type."""
    of = arrow_type(struct_of({"n": kind})).field(0)
    bits = pa.int32() if kind == "date" else pa.int64()
    return pa.StructArray.from_arrays([pa.array(numbers, bits).cast(of.type)], fields=[of])


def stepped(written: Sequence[Any], fields: Mapping[str, Any] | Type, rows: Sequence[Mapping[str, Any]]) -> Stepped:
    """What must hold of every run is checked: the shape is as said, rows, places and records belong together."""
    shape = fields if isinstance(fields, Type) else struct_of(fields)
    return checked_run(written, shape, pa.array(rows, arrow_type(shape)))


def checked_run(written: Sequence[Any], shape: Type, struct: pa.StructArray) -> Stepped:
    steps = [step_of(one) for one in written]
    done = run(steps, typed_rows(struct))
    for step in steps:
        shape = step.after(shape)
    made = done.rows.struct
    made.validate(full=True)
    assert made.type.equals(arrow_type(shape), check_metadata=True)
    assert made.null_count == 0
    assert len(made) == len(done.places) == len(done.rows.records)
    assert done.rows.records.column("topic").to_pylist() == [f"site/{place}" for place in done.places]
    unfit = [place for place, _ in done.unfit]
    assert sorted({*done.places.tolist(), *unfit}) == sorted([*done.places.tolist(), *unfit])
    assert done.places.tolist() == sorted(done.places.tolist())
    assert unfit == sorted(unfit)
    return done


def values(done: Stepped) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = done.rows.struct.to_pylist()
    return rows
