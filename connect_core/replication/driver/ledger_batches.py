"""Writes of many ranges go to the ledger in batches, a fenced transaction each. Pure.

One transaction for ten thousand partitions takes longer on a busy machine than a lease lives. Each batch is a sign of
life, and nobody else who writes to the ledger waits for all of them. An attempt may die between any two: ranges of a
plan that are open are inherited, though nothing was written of them; of a settle those that are left open are looked
for, or written again. Why that holds is in docs/decisions/portions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from connect_core.work import Outcome

RANGES = 400
"""So many go into one transaction: well under a second's work, also where everything takes ten times as long."""

_Item = TypeVar("_Item")
_Place = tuple[int, int]


def in_batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """In their order."""
    return (items[first : first + size] for first in range(0, len(items), size))


def to_settle(outcomes: Sequence[Outcome], size: int) -> Iterator[list[Outcome]]:
    """Outcomes with a receipt. Those that move a floor which all partitions share come in the order in which these
    moves adjoin, and what several of them move together stays together: so a batch goes on where the one before it
    ended."""
    batch: list[Outcome] = []
    for _, together in groupby(sorted(outcomes, key=_moved_together), key=_moved_together):
        group = list(together)
        pieces = [group] if _moved_together(group[0]) else in_batches(group, size)
        for piece in pieces:
            if batch and len(batch) + len(piece) > size:
                yield batch
                batch = []
            batch += piece
    if batch:
        yield batch


def _moved_together(outcome: Outcome) -> tuple[_Place, ...]:
    """From where to where it moves the floor that all partitions share; empty when it moves none."""
    moves = outcome.receipt.floors if outcome.receipt else ()
    return tuple((begin, floor.position) for begin, floor in moves if not floor.partition_id)
