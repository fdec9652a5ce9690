"""Stretches [begin, end) of offsets, in order, of whose records a target holds nothing because it refused them. Pure.

Offsets of a source need not adjoin (those of a file count bytes): records that were refused one behind the other are
one stretch, whatever offsets lie between them.
"""

from __future__ import annotations

from itertools import dropwhile
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Runs: TypeAlias = tuple[tuple[int, int], ...]

MAX_RUNS = 1_000
"""A marker keeps so many, for it is written with every batch."""


def with_refused(runs: Runs, offset: int, position: int) -> Runs:
    """With this offset too. Nothing stands behind `position`: so the stretches behind it are one."""
    if any(begin <= offset < end for begin, end in runs):
        return runs
    if runs and position <= runs[-1][0] < offset:
        return (*runs[:-1], (runs[-1][0], offset + 1))
    return tuple(sorted((*runs, (offset, offset + 1))))


def without(runs: Runs, begin: int, end: int) -> Runs:
    """Without what lies within [begin, end)."""
    if not runs or runs[-1][1] <= begin or end <= runs[0][0]:
        return runs
    parts = (part for one, to in runs for part in ((one, min(to, begin)), (max(one, end), to)))
    return tuple((one, to) for one, to in parts if one < to)


def within(runs: Runs, begin: int, end: int) -> Runs:
    """What of them lies within [begin, end)."""
    parts = ((max(one, begin), min(to, end)) for one, to in runs)
    return tuple((one, to) for one, to in parts if one < to)


def behind(runs: Runs, begin: int) -> Runs:
    """Those that end behind `begin`."""
    return tuple(dropwhile(lambda run: run[1] <= begin, runs))


def mask(runs: Runs, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Boolean mask: which of these lie within them."""
    inside = np.zeros(len(offsets), dtype=np.bool_)
    for begin, end in runs:
        inside |= (offsets >= begin) & (offsets < end)
    return inside
