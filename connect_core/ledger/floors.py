"""How a settle moves floors (delivery rule 6). Pure: what a receipt moves is compared with what stands in the ledger.

A floor moves only from where it stands, so nobody takes back what another has settled, whatever the order of receipts,
tasks and ranges. What the receipts of one settle move of one floor are stretches that adjoin. Live ranges of one lane
share what they flush: they move the same stretch, which counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from connect_core.sdk.values import Floor, FloorMove

FloorKey = tuple[str, str]
"""Partition id and target."""


class WantedMove(NamedTuple):
    """A move, and the range whose receipt wants it; `shared` when other live ranges may want the same."""

    range_id: int
    partition_id: str
    move: FloorMove
    shared: bool = False


class FloorConflict(NamedTuple):
    """A move that does not fit, and why."""

    range_id: int
    fault: str


class FloorsBeside:
    """Floors by partition, for whoever asks for those of many: `of` takes as long however many there are."""

    def __init__(self, floors: Iterable[Floor]) -> None:
        self._by_partition: dict[str, list[Floor]] = {}
        for floor in floors:
            self._by_partition.setdefault(floor.partition_id, []).append(floor)

    def of(self, partition_id: str) -> tuple[Floor, ...]:
        """Those of the partition, behind those that all partitions share."""
        return (*self._by_partition.get("", ()), *self._by_partition.get(partition_id, ()))


def key_of(floor: Floor) -> FloorKey:
    return floor.partition_id, floor.target


def moved(stored: Mapping[FloorKey, Floor], wanted: Iterable[WantedMove]) -> tuple[list[Floor], list[FloorConflict]]:
    """The floors as they stand after all of these moves, and the moves that do not fit."""
    floors: list[Floor] = []
    misfits: list[FloorConflict] = []
    for key, group in groupby(sorted(wanted, key=_place), key=lambda one: key_of(one.move.floor)):
        moves = list(group)
        misfits += _misfits(stored.get(key), moves)
        floors.append(moves[-1].move.floor)
    return floors, misfits


def _place(one: WantedMove) -> tuple[FloorKey, int, int, int]:
    begin, floor = one.move
    return key_of(floor), begin, floor.position, one.range_id


def _misfits(stored: Floor | None, moves: Sequence[WantedMove]) -> Iterator[FloorConflict]:
    """Of the moves of one floor, in the order in which they adjoin."""
    at = None if stored is None else stored.position
    before: WantedMove | None = None
    for one in moves:
        again = before is not None and before.shared and one.shared and one.move == before.move
        fault = "" if again else _fault(one, at, first=before is None)
        if fault:
            yield FloorConflict(
                one.range_id, f"it moves the floor of {one.move.floor.target} {_said(one.move)}, {fault}"
            )
        at, before = one.move.floor.position, one


def _fault(one: WantedMove, at: int | None, *, first: bool) -> str:
    """Why a move does not fit a floor that stands at `at`; empty when it does."""
    begin, floor = one.move
    if floor.partition_id not in ("", one.partition_id):
        return "which is another partition's"
    if at is None:
        return "which the ledger does not have"
    if floor.position < begin:
        return "which is back"
    where = "is" if first else "was left by the range before it"
    return "" if begin == at else f"but it {where} at {at}"


def _said(move: FloorMove) -> str:
    return f"from {move.begin} to {move.floor.position}"
