"""Rows of the table that are no pair: a figure and what else there is to say of it. Told as soon as they are taken."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    what: str
    waybill: str
    bare: str
    remark: str


def row(what: str, waybill: str, remark: str) -> Row:
    print(f"{what}: {waybill}; {remark}", file=sys.stderr, flush=True)
    return Row(what, waybill, "", remark)


def at(seen: Sequence[float], share: float) -> float:
    """The value below which that share of them lies; the greatest one when there are few."""
    ordered = sorted(seen)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def spread(seen: Sequence[float], shown: Callable[[float], str]) -> str:
    return f"p50 {shown(at(seen, 0.5))}, p99 {shown(at(seen, 0.99))}, max {shown(max(seen))}"


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def s(seconds: float) -> str:
    return f"{seconds:.2f} s"
