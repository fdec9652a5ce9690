"""Casts one value at a time, in plain Python: what the columns must agree with.

Moments, times of a day and dates are whole numbers here: units since 1970 or midnight, days.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from base64 import b64encode
from binascii import Error, a2b_base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from connect_core.pipeline.transforms.casts import FLOATS, MOMENTS, WHOLE
from connect_core.rows.types import Type

DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_EPOCH = dt.date(1970, 1, 1)
_FIRST, _LAST = -719_528, 2_932_896
_DAY = 86_400
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?")
_MOMENT = re.compile(r"([0-9-]+)[T ]([0-9:.]+)(Z|[+-][0-9]{2}:[0-9]{2})?")


class Unfit(Exception):
    """The value cannot be cast."""


def raw(column: pa.Array, one: Type) -> list[Any]:
    """Values as they are meant here."""
    if one.kind in MOMENTS or (one.kind == "time" and one.unit in ("us", "ns")):
        return column.cast(pa.int64()).to_pylist()
    if one.kind in ("time", "date"):
        return column.cast(pa.int32()).to_pylist()
    return column.to_pylist()


def cast(value: Any, given: Type, wanted: Type) -> Any:
    if value is None or given == wanted:
        return value
    if wanted.kind == "text":
        return text(value, given)
    if given.kind == "text":
        return _FROM_TEXT[_group(wanted.kind)](value, wanted)
    if given.kind == "time":
        return _rescaled(value, given, wanted)
    if given.kind in MOMENTS:
        return _rescaled(value, given, wanted) if wanted.kind in MOMENTS else _whole(Decimal(value), wanted)
    if wanted.kind in MOMENTS:
        return _whole(Decimal(value), Type("int64"))
    return _number(value, given, wanted)


def _group(kind: str) -> str:
    if kind in WHOLE:
        return "whole"
    if kind in FLOATS:
        return "float"
    return "moment" if kind in MOMENTS else kind


def _holds(condition: bool) -> None:
    if not condition:
        raise Unfit


def _number(value: Any, given: Type, wanted: Type) -> Any:
    if wanted.kind in FLOATS:
        return _to_float(value, given, wanted)
    if given.kind in FLOATS:
        _holds(math.isfinite(value))
        value = _digits(value, given) if wanted.kind == "decimal" else Decimal(value)
    return _decimal(Decimal(value), wanted) if wanted.kind == "decimal" else _whole(Decimal(value), wanted)


def _to_float(value: Any, given: Type, wanted: Type) -> float:
    if given.kind in WHOLE:
        _holds(abs(value) <= (1 << 53 if wanted.kind == "float64" else 1 << 24))
        return float(value)
    if given.kind == "decimal":
        made = _narrow(float(value), wanted)
        _holds(_digits(made, wanted) == value)
        return made
    return _narrow(value, wanted)


def _digits(value: float, given: Type) -> Decimal:
    large = abs(value) >= (1 << 53 if given.kind == "float64" else 1 << 24)
    return Decimal(int(value)) if large else Decimal(text(value, given))


def _narrow(value: float, wanted: Type) -> float:
    if wanted.kind == "float64":
        return value
    with np.errstate(over="ignore"):
        made = float(np.float32(value))
    _holds(made == value or math.isnan(value))
    return made


def _whole(value: Decimal, wanted: Type) -> int:
    _holds(value == value.to_integral_value())
    bits, unsigned = int(wanted.kind.lstrip("uint")), wanted.kind.startswith("u")
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    _holds(low <= value <= high)
    return int(value)


def _decimal(value: Decimal, wanted: Type) -> Decimal:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)))
    places = exponent + wanted.scale
    if places >= 0:
        number *= 10 ** min(places, 400)
    else:
        _holds(number % 10**-places == 0)
        number //= 10**-places
    _holds(number < 10**wanted.precision)
    return Decimal((sign if number else 0, tuple(map(int, str(number))), -wanted.scale))


def _rescaled(value: int, given: Type, wanted: Type) -> int:
    more = DIGITS[wanted.unit] - DIGITS[given.unit]
    if more < 0:
        _holds(value % 10**-more == 0)
        return value // 10**-more
    return _whole(Decimal(value * 10**more), Type("int64"))


# ---------------------------------------------------------------------------------------------------------------- texts


def text(value: Any, given: Type) -> str:
    if given.kind == "float32":
        _holds(math.isfinite(value))
        listed = orjson.dumps(np.array([value], np.float32), option=orjson.OPT_SERIALIZE_NUMPY)
        return listed.decode()[1:-1]
    if given.kind in ("float64", "bool"):
        _holds(math.isfinite(value))
        return orjson.dumps(value).decode()
    if given.kind == "bytes":
        return b64encode(value).decode()
    if given.kind == "date":
        return _date(value)
    if given.kind == "time":
        return _clock(value, given.unit)
    if given.kind in ("timestamp", "datetime"):
        day, ticks = divmod(value, _DAY * 10 ** DIGITS[given.unit])
        return f"{_date(day)}T{_clock(ticks, given.unit)}{'Z' if given.kind == 'timestamp' else ''}"
    return f"{value:f}" if given.kind == "decimal" else str(value)


def _date(days: int) -> str:
    _holds(_FIRST <= days <= _LAST)
    if days < -719_162:  # the year 0, which Python does not have, is a leap year as 400 is
        return "0000" + str(_EPOCH + dt.timedelta(days + 146_097))[4:]
    return str(_EPOCH + dt.timedelta(days))


def _clock(ticks: int, unit: str) -> str:
    seconds, fraction = divmod(ticks, 10 ** DIGITS[unit])
    behind = f".{fraction:0{DIGITS[unit]}}" if DIGITS[unit] else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{behind}"


def _text_to_whole(value: str, wanted: Type) -> int:
    _holds(bool(re.fullmatch("0|-?[1-9][0-9]*", value)))
    return _whole(Decimal(value), wanted) if len(value) < 25 else _refused()


def _refused() -> Any:
    raise Unfit


def _text_to_float(value: str, wanted: Type) -> float:
    _holds(bool(_NUMBER.fullmatch(value)))
    made = float(value)
    if wanted.kind == "float32":
        made = pa.array([value]).cast(pa.float32())[0].as_py()
    _holds(math.isfinite(made))
    return made


def _text_to_decimal(value: str, wanted: Type) -> Decimal:
    found = _NUMBER.fullmatch(value)
    _holds(found is not None and found[3] is None)
    return _decimal(Decimal(value), wanted)


def _text_to_bool(value: str, wanted: Type) -> bool:
    _holds(value in ("true", "false"))
    return value == "true"


def _text_to_bytes(value: str, wanted: Type) -> bytes:
    try:
        return a2b_base64(value, strict_mode=True)
    except (Error, ValueError):
        raise Unfit from None


def _text_to_date(value: str, wanted: Type) -> int:
    _holds(bool(re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value)))
    shift = 146_097 if value.startswith("0000") else 0
    try:
        return (dt.date.fromisoformat("0400" + value[4:] if shift else value) - _EPOCH).days - shift
    except ValueError:
        raise Unfit from None


def _text_to_time(value: str, wanted: Type) -> int:
    found = _CLOCK.fullmatch(value)
    if found is None:
        raise Unfit
    hours, minutes, seconds = map(int, found.groups()[:3])
    _holds(hours < 24 and minutes < 60 and seconds < 60)
    ticks = Decimal(f"{hours * 3600 + minutes * 60 + seconds}.{found[4] or 0}").scaleb(DIGITS[wanted.unit])
    return _whole(ticks, Type("int64"))


def _text_to_moment(value: str, wanted: Type) -> int:
    found = _MOMENT.fullmatch(value)
    if found is None or (found[3] is None) == (wanted.kind == "timestamp"):
        raise Unfit
    day, clock, zone = found.groups()
    ticks = (_text_to_date(day, wanted) * _DAY) * 10 ** DIGITS[wanted.unit] + _text_to_time(clock, wanted)
    if zone not in (None, "Z"):
        hours, minutes = int(zone[1:3]), int(zone[4:])
        _holds(hours < 24 and minutes < 60)
        shift = (hours * 60 + minutes) * 60 * 10 ** DIGITS[wanted.unit]
        ticks += shift if zone[0] == "-" else -shift
    _holds(_FIRST <= ticks // (_DAY * 10 ** DIGITS[wanted.unit]) <= _LAST)
    return _whole(Decimal(ticks), Type("int64"))


_FROM_TEXT: dict[str, Callable[[str, Type], Any]] = {
    "whole": _text_to_whole,
    "float": _text_to_float,
    "decimal": _text_to_decimal,
    "bool": _text_to_bool,
    "bytes": _text_to_bytes,
    "date": _text_to_date,
    "time": _text_to_time,
    "moment": _text_to_moment,
}
