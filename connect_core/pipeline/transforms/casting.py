"""Columns cast to another type, exactly. Pure. `casts` says which types these are.

What does not fit becomes null here, which `running` takes for unfit. Nearly all of it is found by comparing whole
columns. Only 29 February of other years than leap years makes Arrow refuse a column; halves of it are tried then.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.transforms.casts import FLOATS, MOMENTS, WHOLE
from connect_core.pipeline.transforms.texts import texts
from connect_core.rows.moments import FIRST_DAY, LAST_DAY, textless
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type

Way: TypeAlias = Callable[[pa.Array, Type], pa.Array]

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_EXACT = {"float64": 1 << 53, "float32": 1 << 24}
"""Whole numbers up to here are all floating-point numbers."""
_LONG = pa.decimal128(38, 0)
"""Any whole number of 64 bits, and more."""
_DAY_S = 86_400
_INT64 = (1 << 63) - 1

_WHOLE = r"\A(?:0|-?[1-9][0-9]{0,19})\z"
_NUMBER = r"\A-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\z"
_DAY = (
    r"[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|[12][0-9]))"
)
_HOUR = "(?:[01][0-9]|2[0-3])"
_CLOCK = f"{_HOUR}:[0-5][0-9]:[0-5][0-9]"
_ZONE = f"Z|[+-]{_HOUR}:[0-5][0-9]"


def cast(column: pa.Array, given: str, wanted: Type) -> pa.Array:
    """`given` is the kind of the column. Null where a value does not fit."""
    groups = _group(given), _group(wanted.kind)
    if groups == ("text", "text") or (given == wanted.kind and given in ("bool", "bytes", "date")):
        return column
    return _WAYS[groups](column, wanted) if groups[1] != "text" else _to_text(column, given)


def _group(kind: str) -> str:
    if kind in WHOLE:
        return "whole"
    if kind in FLOATS:
        return "float"
    return "moment" if kind in MOMENTS else kind


def _where(holds: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(holds, column, pa.scalar(None, column.type))


def _within(column: pa.Array, low: Any, high: Any) -> pa.Array:
    low, high = pa.scalar(low, column.type), pa.scalar(high, column.type)
    return _where(pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high)), column)


def _unsafely(column: pa.Array, to: pa.DataType) -> pa.Array:
    return pc.cast(column, to, safe=False)


def _there_and_back(column: pa.Array, to: pa.DataType) -> pa.Array:
    """Where nothing is lost on the way there."""
    made = _unsafely(column, to)
    return _where(pc.equal(_unsafely(made, column.type), column), made)


def _tried(column: pa.Array, to: pa.DataType) -> pa.Array:
    """What Arrow refuses is null."""
    try:
        return column.cast(to)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return pa.nulls(1, to)
        half = len(column) // 2
        return pa.concat_arrays([_tried(column.slice(0, half), to), _tried(column.slice(half), to)])


# -------------------------------------------------------------------------------------------------------- whole numbers


def _limits(kind: str) -> tuple[int, int]:
    bits = int(kind.lstrip("uint"))
    return (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _between(column: pa.Array, low: int, high: int) -> pa.Array:
    """Of a column of whole numbers, whose own limits may be nearer."""
    least, most = _limits(str(column.type))
    return column if low <= least and most <= high else _within(column, max(low, least), min(high, most))


def _whole_to_whole(column: pa.Array, wanted: Type) -> pa.Array:
    return _between(column, *_limits(wanted.kind)).cast(arrow_type(wanted))


def _whole_to_float(column: pa.Array, wanted: Type) -> pa.Array:
    limit = _EXACT[wanted.kind]
    return _between(column, -limit, limit).cast(arrow_type(wanted))


def _whole_to_decimal(column: pa.Array, wanted: Type) -> pa.Array:
    return _text_to_decimal(column.cast(pa.string()), wanted)


def _whole_to_moment(column: pa.Array, wanted: Type) -> pa.Array:
    return _between(column, *_limits("int64")).cast(pa.int64()).cast(arrow_type(wanted))


# ----------------------------------------------------------------------------------------------- floating-point numbers


def _float_to_whole(column: pa.Array, wanted: Type) -> pa.Array:
    column = column.cast(pa.float64())
    low, high = _limits(wanted.kind)
    fits = pc.and_(pc.greater_equal(column, float(low)), pc.less(column, float(high + 1)))
    return _where(pc.and_(fits, pc.equal(pc.trunc(column), column)), column).cast(arrow_type(wanted))


def _float_to_float(column: pa.Array, wanted: Type) -> pa.Array:
    made = _unsafely(column, arrow_type(wanted))
    return _where(pc.or_(pc.equal(made.cast(pa.float64()), column.cast(pa.float64())), pc.is_nan(column)), made)


def _float_to_decimal(column: pa.Array, wanted: Type) -> pa.Array:
    """The digits that JSON writes, which are the fewest that tell the number from others; of numbers so large that all
    are whole, every digit."""
    written = texts("float64", column)
    doubles = column.cast(pa.float64())
    exact = _EXACT["float32" if pa.types.is_float32(column.type) else "float64"]
    large = pc.and_(pc.greater_equal(pc.abs(doubles), float(exact)), pc.is_finite(doubles))
    written = _with(written, large, doubles, lambda number: str(int(number)))
    written = _with(written, pc.match_substring(written, "e-"), written, lambda text: f"{Decimal(text):f}")
    return _text_to_decimal(written, wanted)


def _with(written: pa.Array, rows: pa.Array, values: pa.Array, digits: Callable[[Any], str]) -> pa.Array:
    """With other texts in these rows."""
    rows = pc.fill_null(rows, False)
    if not pc.any(rows).as_py():
        return written
    return pc.replace_with_mask(written, rows, pa.array(map(digits, values.filter(rows).to_pylist()), pa.string()))


# ------------------------------------------------------------------------------------------------------------- decimals


def _decimal_to_whole(column: pa.Array, wanted: Type) -> pa.Array:
    return _text_to_whole(pc.replace_substring_regex(texts("decimal", column), r"\.0+\z", ""), wanted)


def _decimal_to_float(column: pa.Array, wanted: Type) -> pa.Array:
    """Where JSON writes the same digits for it."""
    made = _float_to_float(texts("decimal", column).cast(pa.float64()), wanted)
    again = _float_to_decimal(made, Type("decimal", precision=column.type.precision, scale=column.type.scale))
    return _where(pc.equal(again, column), made)


def _decimal_to_decimal(column: pa.Array, wanted: Type) -> pa.Array:
    """By its digits: Arrow divides large ones by powers of ten wrongly."""
    return _text_to_decimal(texts("decimal", column), wanted)


# ---------------------------------------------------------------------------------------------------------------- texts


def _of_form(column: pa.Array, pattern: str) -> pa.Array:
    return _where(pc.match_substring_regex(column, pattern), column)


def _text_to_whole(column: pa.Array, wanted: Type) -> pa.Array:
    whole = _of_form(column, _WHOLE).cast(_LONG)
    return _within(whole, *map(Decimal, _limits(wanted.kind))).cast(arrow_type(wanted))


def _text_to_float(column: pa.Array, wanted: Type) -> pa.Array:
    """The nearest; what is too large for any is none."""
    made = _of_form(column, _NUMBER).cast(arrow_type(wanted))
    return _where(pc.is_finite(made), made)


def _text_to_decimal(column: pa.Array, wanted: Type) -> pa.Array:
    before, behind = wanted.precision - wanted.scale, wanted.scale
    whole = f"0|[1-9][0-9]{{0,{before - 1}}}" if before else "0"
    fraction = rf"(?:\.[0-9]{{1,{behind}}}0*)?" if behind else r"(?:\.0+)?"
    fitting = _of_form(column, rf"\A-?(?:{whole}){fraction}\z")
    return pc.replace_substring_regex(fitting, r"(\.[0-9]*[1-9])0+\z|\.0+\z", r"\1").cast(arrow_type(wanted))


def _text_to_bool(column: pa.Array, wanted: Type) -> pa.Array:
    return _where(pc.is_in(column, pa.array(["true", "false"])), pc.equal(column, "true"))


def _text_to_bytes(column: pa.Array, wanted: Type) -> pa.Array:
    return pa.array([None if one is None else _decoded(one) for one in column.to_pylist()], pa.binary())


def _decoded(text: str) -> bytes | None:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return None


def _text_to_date(column: pa.Array, wanted: Type) -> pa.Array:
    return _with_text(_tried(_of_form(column, rf"\A{_DAY}\z"), pa.date32()))


def _text_to_time(column: pa.Array, wanted: Type) -> pa.Array:
    moments = pc.binary_join_element_wise("1970-01-01T", column, "")
    return _ticks(moments, "", wanted.unit).cast(_integers(wanted)).cast(arrow_type(wanted))


def _text_to_moment(column: pa.Array, wanted: Type) -> pa.Array:
    return _ticks(column, _ZONE if wanted.kind == "timestamp" else "", wanted.unit).cast(arrow_type(wanted))


def _ticks(column: pa.Array, zone: str, unit: str) -> pa.Array:
    """Since 1970, in the unit. `zone` is the form of what comes last."""
    digits = _DIGITS[unit]
    fraction = rf"(?:\.(?P<fraction>[0-9]{{1,{digits}}})0*)?" if digits else r"(?:\.(?P<fraction>)0+)?"
    pattern = rf"\A(?P<second>{_DAY}[T ]{_CLOCK}){fraction}(?P<zone>{zone})\z"
    found = pc.extract_regex(column, pattern)
    second = pc.binary_join_element_wise(pc.struct_field(found, "second"), pc.struct_field(found, "zone"), "")
    whole = _tried(second, pa.timestamp("s", "UTC" if zone else None)).cast(pa.int64())
    whole = _within(whole, FIRST_DAY * _DAY_S, LAST_DAY * _DAY_S + _DAY_S - 1)
    if not digits:
        return whole
    parts = pc.utf8_rpad(pc.struct_field(found, "fraction"), digits, padding="0").cast(pa.int64())
    most = _INT64 // 10**digits
    made = pc.add(pc.multiply(_within(whole, -most - 1, most), 10**digits), parts)
    return _where(pc.equal(pc.less(made, 0), pc.less(whole, 0)), made)  # else there were too many bits


# ----------------------------------------------------------------------------------------------------- days and moments


def _integers(wanted: Type) -> pa.DataType:
    return pa.int32() if wanted.unit in ("s", "ms") else pa.int64()


def _to_time(column: pa.Array, wanted: Type) -> pa.Array:
    return _there_and_back(column, arrow_type(wanted))


def _moment_to_moment(column: pa.Array, wanted: Type) -> pa.Array:
    moments = column.cast(pa.timestamp(column.type.unit))
    return _there_and_back(moments, pa.timestamp(wanted.unit)).cast(arrow_type(wanted))


def _moment_to_whole(column: pa.Array, wanted: Type) -> pa.Array:
    return _whole_to_whole(column.cast(pa.int64()), wanted)


def _with_text(column: pa.Array) -> pa.Array:
    return _where(pc.invert(textless(column)), column)


def _to_text(column: pa.Array, given: str) -> pa.Array:
    if given in ("date", "time", "timestamp", "datetime"):
        column = _with_text(column)
    return texts(given, column)


_WAYS: Mapping[tuple[str, str], Way] = {
    ("whole", "whole"): _whole_to_whole,
    ("whole", "float"): _whole_to_float,
    ("whole", "decimal"): _whole_to_decimal,
    ("whole", "moment"): _whole_to_moment,
    ("float", "whole"): _float_to_whole,
    ("float", "float"): _float_to_float,
    ("float", "decimal"): _float_to_decimal,
    ("decimal", "whole"): _decimal_to_whole,
    ("decimal", "float"): _decimal_to_float,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("text", "whole"): _text_to_whole,
    ("text", "float"): _text_to_float,
    ("text", "decimal"): _text_to_decimal,
    ("text", "bool"): _text_to_bool,
    ("text", "bytes"): _text_to_bytes,
    ("text", "date"): _text_to_date,
    ("text", "time"): _text_to_time,
    ("text", "moment"): _text_to_moment,
    ("time", "time"): _to_time,
    ("moment", "moment"): _moment_to_moment,
    ("moment", "whole"): _moment_to_whole,
}
