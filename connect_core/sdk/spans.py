"""Stretches of positions in a log: what was written, and what lies between. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""Positions from the first (included) to the second (excluded)."""


def extend(spans: list[list[int]], first: int, behind: int) -> None:
    """Adds [first, behind) to spans that come in order: to the last one where the two adjoin."""
    if spans and spans[-1][1] == first:
        spans[-1][1] = behind
    else:
        spans.append([first, behind])


def uncovered(begin: int, end: int, spans: Sequence[Span]) -> list[Span]:
    """What of [begin, end) is in none of the spans, which may overlap and come in any order."""
    rest: list[Span] = []
    for span_begin, span_end in sorted(spans):
        if begin < min(span_begin, end):
            rest.append((begin, min(span_begin, end)))
        begin = max(begin, span_end)
    return [*rest, (begin, end)] if begin < end else rest
