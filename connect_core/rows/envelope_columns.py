"""What payloads with a schema hold -> the columns that a document declares. Pure.

Decimals, dates and times are numbers in an envelope, and in Avro. What the declared type cannot hold exactly is
named by its row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rows.envelope_schemas import EnvelopePart
from connect_core.rows.json_faults import expected, inner
from connect_core.rows.schema import arrow_field, arrow_type

Bad = NDArray[np.bool_]

_DAY_S = 86_400
_PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MISSING = "missing, though the schema says that it is not optional"
UNSAID = "given, though the schema does not have it"


class EnvelopeColumns:
    """The declared columns of one batch of one schema, and by row what is wrong with it: the first fault of each."""

    def __init__(self) -> None:
        self.unfit: dict[int, str] = {}

    def rows(self, read: pa.StructArray, part: EnvelopePart) -> pa.StructArray:
        """Rows that do not fit are still in it."""
        every = np.arange(len(read))
        names = [name for name, _ in part.declared.fields]
        columns = [
            self._of(column, of, name, every)
            for name, column, of in zip(names, read.flatten(), part.parts, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type(part.declared)))

    def _of(self, column: pa.Array, part: EnvelopePart, place: str, rows: NDArray[np.int64]) -> pa.Array:
        """`rows`: the row of each value, -1 where nobody sees it."""
        if part.absent:
            self._note(_true(column.is_valid()), rows, place, UNSAID)
            return pa.nulls(len(column), arrow_type(part.declared))
        if part.required:
            self._note(_true(column.is_null()), rows, place, MISSING)
        seen = np.where(_true(column.is_valid()), rows, -1)
        if part.declared.kind == "struct":
            return self._struct(column, part, place, seen)
        if part.declared.item is not None:
            return self._list(column, part, place, seen)
        if not part.logical:
            return column if column.type == (wanted := arrow_type(part.declared)) else column.cast(wanted)
        made, bad = _CONVERSIONS[part.logical](column, part)
        self._note(bad, rows, place, expected(part.declared))
        return made

    def _struct(self, column: pa.Array, part: EnvelopePart, place: str, rows: NDArray[np.int64]) -> pa.Array:
        fields = [
            self._of(values, of, inner(place, name), rows)
            for (name, _), values, of in zip(part.declared.fields, column.flatten(), part.parts, strict=True)
        ]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(arrow_type(part.declared)), mask=mask)

    def _list(self, column: pa.Array, part: EnvelopePart, place: str, rows: NDArray[np.int64]) -> pa.Array:
        offsets = column.offsets
        counts = np.diff(offsets.to_numpy())
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        [item] = part.parts
        items = self._of(column.values.slice(first, last - first), item, f"{place}[]", np.repeat(rows, counts))
        made = pa.list_(arrow_field("item", item.declared))
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(pc.subtract(offsets, offsets[0]), items, type=made, mask=mask)

    def _note(self, bad: Bad, rows: NDArray[np.int64], place: str, reason: str) -> None:
        for row in np.unique(rows[bad]):
            if row >= 0:
                self.unfit.setdefault(int(row), f"{place}: {reason}")


def _true(column: pa.Array) -> Bad:
    found: Bad = column.to_numpy(zero_copy_only=False).astype(np.bool_)
    return found


def _numbers(column: pa.Array) -> tuple[NDArray[np.int64], Bad]:
    """And which are there."""
    whole = pc.fill_null(column, 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return whole, _true(column.is_valid())


def _decimals(column: pa.Array, part: EnvelopePart) -> tuple[pa.Array, Bad]:
    one = part.declared
    unsigned = one.kind == "uint64"
    low, high = (0, 1 << 64) if unsigned else (1 - 10**one.precision, 10**one.precision)
    up = 1 if unsigned else 10 ** (one.scale - part.scale)
    bad = np.zeros(len(column), np.bool_)
    unscaled: list[int | None] = []
    for row, value in enumerate(column.to_pylist()):
        number = None if value is None else int.from_bytes(value, "big", signed=True) * up
        bad[row] = value is not None and not (value and number is not None and low <= number < high)
        unscaled.append(None if bad[row] else number)
    if unsigned:
        return pa.array(unscaled, pa.uint64()), bad
    data = b"".join((number or 0).to_bytes(16, "little", signed=True) for number in unscaled)
    there = np.array([number is not None for number in unscaled], np.bool_)
    buffers = [pa.py_buffer(np.packbits(there, bitorder="little")), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow_type(one), len(column), buffers), bad


def _dates(column: pa.Array, part: EnvelopePart) -> tuple[pa.Array, Bad]:
    return column.cast(pa.date32()), np.zeros(len(column), np.bool_)


def _times(column: pa.Array, part: EnvelopePart) -> tuple[pa.Array, Bad]:
    number, there = _numbers(column)
    units, bad = _in_units(number, part)
    bad |= (number < 0) | (number >= _DAY_S * _PER_S[part.unit])
    kind = arrow_type(part.declared)
    whole = pa.array(units, pa.int64(), mask=bad | ~there)
    return whole.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind), bad & there


def _moments(column: pa.Array, part: EnvelopePart) -> tuple[pa.Array, Bad]:
    number, there = _numbers(column)
    units, bad = _in_units(number, part)
    return pa.array(units, pa.int64(), mask=bad | ~there).cast(arrow_type(part.declared)), bad & there


def _in_units(number: NDArray[np.int64], part: EnvelopePart) -> tuple[NDArray[np.int64], Bad]:
    """Of the declared unit; which of them that unit, or 64 bits, do not hold."""
    have, want = _PER_S[part.unit], _PER_S[part.declared.unit]
    if want >= have:
        factor = want // have
        most = ((1 << 63) - 1) // factor
        bad = (number > most) | (number < (-most if factor > 1 else -most - 1))
        return np.where(bad, 0, number) * factor, bad
    return number // (have // want), number % (have // want) != 0


_CONVERSIONS: dict[str, Callable[[pa.Array, EnvelopePart], tuple[pa.Array, Bad]]] = {
    "Decimal": _decimals,
    "Date": _dates,
    "Time": _times,
    "Timestamp": _moments,
}
