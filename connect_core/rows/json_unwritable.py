"""Which rows have no JSON form, and why: numbers that JSON has not, and years that its texts have not. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rows.json_faults import inner
from connect_core.rows.moments import textless
from connect_core.rows.schema import FORM

_NOT_FINITE = "JSON has neither NaN nor infinity"
_FAR = "too early or too late for a JSON text"


def unwritable(rows: pa.StructArray) -> dict[int, str]:
    """By row the first reason."""
    unfit = dict.fromkeys(_where(rows.is_null()), "no value")
    for field, column in zip(rows.type, rows.flatten(), strict=True):
        for row, reason in _of(column, field, field.name):
            unfit.setdefault(row, reason)
    return unfit


def _of(column: pa.Array, field: pa.Field, place: str) -> Iterator[tuple[int, str]]:
    kind = field.type
    if pa.types.is_struct(kind):
        for part, values in zip(kind, column.flatten(), strict=True):
            yield from _of(values, part, inner(place, part.name))
    elif pa.types.is_list(kind):
        yield from _of_items(column, place)
    elif pa.types.is_floating(kind):
        yield from ((row, f"{place}: {_NOT_FINITE}") for row in _where(pc.invert(pc.is_finite(column))))
    elif pa.types.is_temporal(kind) and not (field.metadata or {}).get(FORM):
        yield from ((row, f"{place}: {_FAR}") for row in _where(textless(column)))


def _of_items(column: pa.Array, place: str) -> Iterator[tuple[int, str]]:
    """A missing list may have items that nobody sees."""
    offsets = column.offsets.to_numpy()
    items = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    for item, reason in _of(items, column.type.value_field, f"{place}[]"):
        row = int(np.searchsorted(offsets, item + offsets[0], "right")) - 1
        if valid[row]:
            yield row, reason


def _where(true: pa.Array) -> list[int]:
    if not pc.any(true, min_count=0).as_py():
        return []
    found: NDArray[np.int64] = np.flatnonzero(true.fill_null(False).to_numpy(zero_copy_only=False))
    return [int(row) for row in found]
