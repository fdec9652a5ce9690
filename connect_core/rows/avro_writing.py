"""Rows -> values of Avro. Pure.

Each column becomes a list of what a schema has for it (`avro_parts.writing_part`), and each row is encoded by itself.
Whatever a schema cannot hold exactly is named by its row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from connect_core.rows.avro_parts import WritingPart
from connect_core.rows.avro_schemas import wire_schema
from connect_core.rows.json_faults import inner
from connect_core.rows.json_writing import WrittenRows

_PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_MISSING = "missing, and the schema does not let it be"


class _Misses(ValueError):
    """Why a value is not one of its schema."""


class AvroWriter:
    """`before` stands before each value, and says which schema it is."""

    def __init__(self, part: WritingPart, before: bytes) -> None:
        from fastavro import parse_schema

        self._part, self._before = part, before
        self._schema = parse_schema(wire_schema(part.node))

    def written(self, rows: pa.StructArray) -> WrittenRows:
        from fastavro import schemaless_writer

        columns = _Columns()
        values = columns.of(rows, self._part, "", range(len(rows)))
        bodies: list[bytes] = []
        for row, value in enumerate(values):
            if row in columns.unfit:
                continue
            stream = BytesIO()
            stream.write(self._before)
            schemaless_writer(stream, self._schema, value)
            bodies.append(stream.getvalue())
        return WrittenRows(pa.array(bodies, pa.binary()), sorted(columns.unfit.items()))


class _Columns:
    """By row what the schema does not hold: the first fault of each."""

    def __init__(self) -> None:
        self.unfit: dict[int, str] = {}

    def of(self, column: pa.Array, part: WritingPart, place: str, rows: Sequence[int]) -> list[Any]:
        """`rows`: the row of each value, -1 where nobody sees it."""
        missing = column.is_null().to_pylist() if column.null_count else [False] * len(column)
        seen = [-1 if gone else row for gone, row in zip(missing, rows, strict=True)]
        if not part.optional:
            for gone, row in zip(missing, rows, strict=True):
                if gone and row >= 0:
                    self.unfit.setdefault(row, f"{place or 'payload'}: {_MISSING}")
        if part.node.kind == "record":
            return self._records(column, part, place, missing, seen)
        if part.node.kind == "array":
            return self._arrays(column, part, place, missing, seen)
        values, convert = _plain(column, part)
        return values if convert is None else self._converted(values, convert, place, seen)

    def _converted(
        self, values: Iterable[Any], convert: Callable[[Any], Any], place: str, seen: Sequence[int]
    ) -> list[Any]:
        made: list[Any] = []
        for value, row in zip(values, seen, strict=True):
            try:
                made.append(None if value is None else convert(value))
            except _Misses as why:
                made.append(None)
                if row >= 0:
                    self.unfit.setdefault(row, f"{place}: {why}")
        return made

    def _records(
        self, column: pa.Array, part: WritingPart, place: str, missing: Sequence[bool], seen: Sequence[int]
    ) -> list[Any]:
        named = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        fields = [
            (name, self.of(named[name], of, inner(place, name), seen) if of else [None] * len(column))
            for name, of in part.parts
        ]
        names = [name for name, _ in fields]
        values = zip(*(values for _, values in fields), strict=True)
        return [None if gone else dict(zip(names, one, strict=True)) for gone, one in zip(missing, values, strict=True)]

    def _arrays(
        self, column: pa.Array, part: WritingPart, place: str, missing: Sequence[bool], seen: Sequence[int]
    ) -> list[Any]:
        """Also of a slice, whose items are a part of all."""
        [(_, item)] = part.parts
        assert item is not None
        offsets = column.offsets.to_numpy()
        first, last = int(offsets[0]), int(offsets[-1])
        rows = np.repeat(np.array(seen, np.int64), np.diff(offsets)).tolist()
        items = self.of(column.values.slice(first, last - first), item, f"{place}[]", rows)
        return [
            None if gone else items[begin - first : end - first]
            for gone, begin, end in zip(missing, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ]


def _plain(column: pa.Array, part: WritingPart) -> tuple[list[Any], Callable[[Any], Any] | None]:
    """Values, and what is done with each of them that is there."""
    node, kind = part.node, column.type
    if node.logical == "decimal":
        return _whole(column), lambda number: _decimal(number * 10 ** (node.scale - part.declared.scale), node.size)
    if pa.types.is_temporal(kind):
        numbers = column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        if pa.types.is_date(kind) or not node.unit:
            return numbers, None
        return numbers, _units(_PER_S[kind.unit], _PER_S[node.unit], f"{node.word} of the schema")
    if node.kind == "enum":
        return column.to_pylist(), _one_of(frozenset(node.symbols))
    if node.kind == "fixed":
        return column.to_pylist(), lambda value: _sized(value, node.size)
    return column.to_pylist(), _uuid if node.logical == "uuid" else None


def _whole(column: pa.Array) -> list[int | None]:
    """Decimals without their point."""
    if pa.types.is_decimal(column.type):
        kind = pa.decimal128(column.type.precision, 0)
        column = pa.Array.from_buffers(kind, len(column), column.buffers(), offset=column.offset)
    return [None if value is None else int(value) for value in column.to_pylist()]


def _decimal(number: int, size: int) -> bytes:
    """`size` of fixed, or as few bytes as Java takes."""
    try:
        return number.to_bytes(size or (number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    except OverflowError:
        raise _Misses(f"a decimal that {size} bytes do not hold") from None


def _units(have: int, want: int, what: str) -> Callable[[int], int]:
    def convert(number: int) -> int:
        made, left = divmod(number * want, have)
        if left:
            raise _Misses(f"finer than the {what}")
        if not -(1 << 63) <= made < 1 << 63:
            raise _Misses(f"too early or too late for the {what}")
        return made

    return convert


def _one_of(symbols: frozenset[str]) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in symbols:
            raise _Misses("no symbol of the schema's enum")
        return text

    return convert


def _sized(value: bytes, size: int) -> bytes:
    if len(value) != size:
        raise _Misses(f"not {size} bytes long, as the schema says")
    return value


def _uuid(text: str) -> str:
    if not _UUID.fullmatch(text):
        raise _Misses("not a UUID, as the schema says")
    return text
