"""Rows -> the text that COPY … (FORMAT csv) reads, column by column. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rows.json_writing import decimal_texts, json_texts, moment_texts

Column = tuple[pa.Field, pa.Array, str]
"""A field with its values, and the type of the column in the table."""


def csv_lines(columns: Sequence[Column]) -> pa.Buffer:
    """NULL is nothing at all, every other value is in quotation marks."""
    cells = [_cells(*column) for column in columns]
    line = pc.binary_join_element_wise(*cells, pa.scalar(b","))
    return pc.binary_join_element_wise(line, pa.scalar(b""), pa.scalar(b"\n")).buffers()[2] or pa.py_buffer(b"")


def _cells(field: pa.Field, values: pa.Array, kind: str) -> pa.Array:
    texts = _texts(field, values, kind).cast(pa.binary())
    if not _is_plain(field.type):
        texts = pc.replace_substring(texts, '"', '""') if _has_quotes(texts) else texts
    cells = pc.binary_join_element_wise(pa.scalar(b'"'), texts, pa.scalar(b'"'), pa.scalar(b""))
    return cells if not cells.null_count else pc.fill_null(cells, b"")


def _texts(field: pa.Field, values: pa.Array, kind: str) -> pa.Array:
    of = field.type
    if pa.types.is_list(of) and kind.endswith("[]"):
        return _arrays(values, kind.removesuffix("[]"))
    if pa.types.is_nested(of):
        return json_texts(values, field)
    if pa.types.is_decimal(of):
        return decimal_texts(values)
    if pa.types.is_timestamp(of):
        texts = moment_texts(values)
        return texts if not of.tz else pc.binary_join_element_wise(texts, "Z", "")
    if pa.types.is_binary(of):
        return pa.array([None if one is None else rf"\x{one.hex()}" for one in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _arrays(values: pa.Array, kind: str) -> pa.Array:
    """As literals of PostgreSQL, `{"a","b",NULL}`."""
    offsets = values.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    field = values.type.value_field
    items = _texts(field, values.values.slice(first, last - first), kind)
    items = pc.replace_substring(pc.replace_substring(items, "\\", "\\\\"), '"', '\\"')
    items = pc.fill_null(pc.binary_join_element_wise('"', items, '"', ""), "NULL")
    joined = pc.binary_join(pa.ListArray.from_arrays(pc.subtract(offsets, offsets[0]), items), ",")
    literals = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(values.is_valid(), literals, pa.scalar(None, pa.string())) if values.null_count else literals


def _is_plain(of: pa.DataType) -> bool:
    """Whether no text of it has a quotation mark."""
    return not (pa.types.is_string(of) or pa.types.is_nested(of))


def _has_quotes(texts: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(texts, '"'), min_count=0).as_py())
