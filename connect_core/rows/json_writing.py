"""Rows -> JSON texts, column by column. Pure.

Each column becomes a column of texts, and the texts of a row are joined. `JsonReader` reads the same rows from them.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rows.json_escaping import escaped
from connect_core.rows.json_unwritable import unwritable
from connect_core.rows.schema import FORM

PART = 8 << 20
"""Bytes of rows that are written at once: what is made of them on the way is several times as big."""

_T = len("2026-01-02")
"""Where the T of a moment is."""
_SCIENTIFIC = 7
"""Decimals of this scale, and of larger ones, Arrow may write with an exponent."""


class WrittenRows(NamedTuple):
    values: pa.Array
    """Binary: of the rows that have a JSON form, in order."""
    unfit: list[tuple[int, str]]
    """A row and why it has none, ascending."""


class _Texts(NamedTuple):
    """A column of texts between two literals, which the caller joins with its own."""

    before: str
    texts: pa.Array
    after: str


def written(rows: pa.StructArray) -> WrittenRows:
    """Keys are in the order of the type; missing values are null. Raises ArrowInvalid for more than 2 GiB of texts."""
    unfit = unwritable(rows)
    if unfit:
        fit = np.ones(len(rows), dtype=bool)
        fit[list(unfit)] = False
        rows = rows.filter(pa.array(fit))
    at_once = max(1, PART * len(rows) // max(1, rows.nbytes))
    parts = [_object(rows.slice(begin, at_once)) for begin in range(0, len(rows), at_once)] or [_object(rows)]
    texts = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    return WrittenRows(texts.cast(pa.binary()), sorted(unfit.items()))


def json_texts(values: pa.Array, field: pa.Field) -> pa.Array:
    """Of values that JSON has a form for; null where they are missing."""
    before, texts, after = _column(values, field)
    texts = pc.binary_join_element_wise(before, texts, after, "") if before or after else texts
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string())) if values.null_count else texts


def _object(rows: pa.StructArray) -> pa.Array:
    parts: list[str | pa.Array] = []
    literal = "{"
    for field, column in zip(rows.type, rows.flatten(), strict=True):
        before, texts, after = _column(column, field)
        parts += [f"{literal}{json.dumps(field.name, ensure_ascii=False)}:{before}", texts]
        literal = f"{after},"
    return pc.binary_join_element_wise(*parts, literal.removesuffix(",") + "}", "")


def _column(column: pa.Array, field: pa.Field) -> _Texts:
    before, texts, after = _list(column) if pa.types.is_list(field.type) else _plain(column, field)
    if not column.null_count:
        return _Texts(before, texts, after)
    if before or after:
        texts = pc.binary_join_element_wise(before, texts, after, "")
    return _Texts("", pc.if_else(column.is_valid(), texts, "null"), "")


def _plain(column: pa.Array, field: pa.Field) -> _Texts:
    kind = field.type
    if pa.types.is_struct(kind):
        return _Texts("", _object(column), "")
    if pa.types.is_string(kind):
        return _Texts('"', escaped(column), '"')
    if pa.types.is_timestamp(kind):
        if (field.metadata or {}).get(FORM):
            return _Texts("", column.cast(pa.int64()).cast(pa.string()), "")
        return _Texts('"', moment_texts(column), 'Z"' if kind.tz else '"')
    if pa.types.is_temporal(kind):
        return _Texts('"', column.cast(pa.string()), '"')
    if pa.types.is_binary(kind):
        return _Texts('"', base64_texts(column), '"')
    write = next((write for has, write in _NUMBERS if has(kind)), _cast)
    return _Texts("", write(column), "")


def _list(column: pa.Array) -> _Texts:
    """Also of a slice, whose items are a part of all."""
    offsets = column.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    before, items, after = _column(column.values.slice(first, last - first), column.type.value_field)
    if before or after:
        items = pc.binary_join_element_wise(before, items, after, "")
    items = pa.ListArray.from_arrays(pc.subtract(offsets, offsets[0]), items)
    return _Texts("[", pc.binary_join(items, ","), "]")


def _cast(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _booleans(column: pa.Array) -> pa.Array:
    return pc.if_else(column, "true", "false")


def _floats(column: pa.Array) -> pa.Array:
    """Whole ones keep their point: they are no integers for whoever guesses types."""
    texts = column.cast(pa.string())
    if not pc.any(pc.equal(pc.floor(column), column)).as_py():
        return texts
    whole = pc.invert(pc.match_substring_regex(texts, r"[.e]"))
    return pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)


def decimal_texts(column: pa.Array) -> pa.Array:
    """All digits of the scale, and no exponent."""
    scale = column.type.scale
    if scale < _SCIENTIFIC:
        return column.cast(pa.string())
    unscaled = pa.Array.from_buffers(
        pa.decimal128(column.type.precision, 0), len(column), column.buffers(), offset=column.offset
    ).cast(pa.string())
    sign = pc.if_else(pc.starts_with(unscaled, "-"), "-", "")
    digits = pc.utf8_lpad(pc.ascii_ltrim(unscaled, "-"), scale + 1, "0")
    whole, behind = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(sign, whole, ".", behind, "")


def moment_texts(column: pa.Array) -> pa.Array:
    """Without a zone."""
    texts = column.view(pa.int64()).cast(pa.timestamp(column.type.unit)).cast(pa.string()).cast(pa.binary())
    return pc.binary_replace_slice(texts, _T, _T + 1, b"T").cast(pa.string())


def base64_texts(column: pa.Array) -> pa.Array:
    return pa.array(
        [None if value is None else b2a_base64(value, newline=False).decode() for value in column.to_pylist()],
        pa.string(),
    )


_NUMBERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (pa.types.is_boolean, _booleans),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, decimal_texts),
)
"""The others are written as Arrow casts them to text."""
