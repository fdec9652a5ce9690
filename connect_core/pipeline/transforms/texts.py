"""Columns as JSON has them: each value as one text, without quotation marks. What JSON has no number for, as NaN, is
null. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.transforms.casts import FLOATS
from connect_core.pipeline.transforms.columns import children
from connect_core.rows.json_writing import base64_texts, decimal_texts, moment_texts
from connect_core.rows.schema import FORM

_KINDS: Mapping[int, str] = {
    pa.bool_().id: "bool",
    pa.float32().id: "float32",
    pa.float64().id: "float64",
    pa.string().id: "text",
    pa.binary().id: "bytes",
    pa.date32().id: "date",
    pa.decimal128(1).id: "decimal",
    pa.time32("s").id: "time",
    pa.time64("us").id: "time",
    pa.list_(pa.bool_()).id: "list",
    pa.struct([]).id: "struct",
}


def kind_of(field: pa.Field) -> str:
    """Of the type that a document has for it (`rows.types.Type.kind`)."""
    if pa.types.is_timestamp(field.type):
        if (field.metadata or {}).get(FORM) == b"epoch":
            return "epoch"
        return "timestamp" if field.type.tz else "datetime"
    return _KINDS.get(field.type.id) or str(field.type)


def texts(kind: str, column: pa.Array) -> pa.Array:
    return _TEXTS.get(kind, _cast)(column)


def json_texts(field: pa.Field, column: pa.Array) -> pa.Array:
    """Of any type; lists and structs are compact JSON. There is one zero."""
    kind = kind_of(field)
    if kind not in ("list", "struct"):
        return texts(kind, _one_zero(column) if kind in FLOATS else column)
    values = _plain(field, column).to_pylist()
    return pa.array([None if one is None else _dumped(one) for one in values], pa.string())


def as_doubles(kind: str, column: pa.Array) -> pa.Array:
    """Fractions as whoever reads their JSON has them; null where JSON has no number."""
    if kind == "float64":
        return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    return texts(kind, column).cast(pa.float64())


def _plain(field: pa.Field, column: pa.Array) -> pa.Array:
    """Numbers, truth values, texts, and lists and structs of these."""
    kind = kind_of(field)
    if kind == "list":
        inner = _plain(field.type.value_field, column.flatten())
        ends = np.cumsum(pc.fill_null(column.value_lengths(), 0).to_numpy(), dtype=np.int32)
        offsets = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
        return pa.ListArray.from_arrays(offsets, inner, mask=column.is_null())
    if kind == "struct":
        parts = {of.name: _plain(of, one) for of, one in children(column)}
        return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=column.is_null())
    if kind == "epoch":
        return column.cast(pa.int64())
    if kind in FLOATS:
        return _one_zero(as_doubles(kind, column))
    return texts(kind, column) if kind in _WORDS else column


def _one_zero(column: pa.Array) -> pa.Array:
    return pc.add(column, pa.scalar(0.0, column.type))


def _dumped(value: Any) -> str:
    return orjson.dumps(value, default=_decimal).decode()


def _decimal(one: Decimal) -> orjson.Fragment:
    """With all of its digits."""
    return orjson.Fragment(f"{one:f}")


def _cast(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _floats(column: pa.Array) -> pa.Array:
    """All at once: as a list in JSON, cut at its commas."""
    if not len(column):
        return pa.array([], pa.string())
    numbers = np.ascontiguousarray(column.to_numpy(zero_copy_only=False))
    listed = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    cut = pc.split_pattern(pa.array([listed[1:-1]]), ",").values
    return pc.if_else(pc.equal(cut, "null"), pa.scalar(None, pa.string()), cut)


def _timestamps(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(moment_texts(column), "Z", "")


_TEXTS: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "float32": _floats,
    "float64": _floats,
    "decimal": decimal_texts,
    "date": _cast,
    "time": _cast,
    "datetime": moment_texts,
    "timestamp": _timestamps,
    "epoch": lambda column: column.cast(pa.int64()).cast(pa.string()),
    "bytes": base64_texts,
    "text": lambda column: column,
}
_WORDS = frozenset({"date", "time", "datetime", "timestamp", "bytes"})
"""What JSON has no form for but a text."""
