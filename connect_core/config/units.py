"""Durations, sizes and shares as people write them: text or a plain number in, seconds or bytes out, and back for
display.

Used by the document's models and by option models as field types. Raises ValueError, which pydantic turns into a fault.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DECIMAL = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BYTES = _DECIMAL | _BINARY
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%", re.ASCII)
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)", re.ASCII)


def parse_seconds(value: object) -> float:
    """`30s`, `5m`, `1.5h`; a plain number is seconds. Never negative."""
    return _parse(value, _SECONDS, 1.0, 'a duration: write a number of seconds, or one with ms, s, m, h or d, as "30s"')


def parse_bytes(value: object) -> int:
    """`1GiB`, `64 KB`; a plain number is bytes. Never negative, rounded to a whole byte."""
    advice = 'a size: write a number of bytes, or one with KB, MB, GB, KiB, MiB or GiB, as "64MiB"'
    return round(_parse(value, _BYTES, 1, advice))


def parse_share(value: object) -> float:
    """`5%` is 0.05. Above nothing, and at most all of it."""
    found = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    share = float(found[1]) / 100 if found else 0.0
    if not 0 < share <= 1:
        raise ValueError(f'{value!r} is not a share: write a percentage above 0% and up to 100%, as "5%"')
    return share


def _parse(value: object, units: dict[str, float] | dict[str, int], plain: float, advice: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r} is not {advice}")
    found = _QUANTITY.fullmatch(str(value).strip())
    if not found:
        raise ValueError(f"{value!r} is not {advice}")
    number, unit = found.groups()
    factor = units.get(unit) if unit else plain
    if factor is None:
        raise ValueError(f"{value!r} is not {advice}")
    return float(number) * factor


def show_seconds(seconds: float) -> str:
    """The largest unit that divides it: 90 -> `90s`, 120 -> `2m`."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds:.10g}s" if seconds >= 1 or not seconds else f"{seconds * 1000:g}ms"


def show_bytes(size: int) -> str:
    """Three significant digits: 1536 -> `1.5KiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= _BYTES[unit]:
            return f"{size / _BYTES[unit]:.3g}{unit}"
    return f"{size}B"


def show_count(number: int, noun: str) -> str:
    """`1 record`, `1,234 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


Seconds = Annotated[float, BeforeValidator(parse_seconds)]
Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Share = Annotated[float, BeforeValidator(parse_share)]
