"""Pairs of works in one process, interleaved, in processor time: what else a machine does hardly changes the ratio."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median


def pairs(
    first: Callable[[], object], second: Callable[[], object], repeats: int
) -> tuple[Sequence[float], Sequence[float]]:
    """Processor seconds of each. The first pair warms up."""
    taken = [(seconds(first), seconds(second)) for _ in range(repeats + 1)][1:]
    ours, others = zip(*taken, strict=True)
    return ours, others


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def ratio(ours: Sequence[float], others: Sequence[float]) -> str:
    """How many times as fast ours is: the median of the pairs."""
    return f"ratio {median(b / a for a, b in zip(ours, others, strict=True)):.2f}"
