"""What a ledger has to remember of one connector, in dictionaries and lists. Knows neither database nor transactions.

The machine of `machine.py` does everything twice, here and in a real ledger, and compares `view` with what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connect_core.ledger import Lease
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import Floor, Gap, Position, Range, Reject
from connect_core.work import Receipt

Place = tuple[str, Partition]
"""A partition in one stream: what has a committed position of its own."""
FloorPlace = tuple[str, str, str]
"""Stream, partition id, target."""


@dataclass
class Opened:
    """A planned range that no receipt has closed, and who has it now."""

    id: int
    range: Range
    run_id: str
    epoch: int
    attempts: int = 1
    found: ScanResult | None = None


@dataclass(frozen=True)
class Step:
    """One move of a committed position; `before` without the evidence that settled ranges do not keep."""

    kind: str
    place: Place
    before: tuple[int, int] | None
    after: Position | None


@dataclass
class Holding:
    """A lease as it stands."""

    epoch: int
    seq: int
    holder: str
    version: int
    released: bool = False


@dataclass
class Model:
    revision: int = 1
    version: int = 1
    tasks: int = 1
    positions: dict[Place, Position] = field(default_factory=dict)
    floors: dict[FloorPlace, Floor] = field(default_factory=dict)
    open: dict[Place, Opened] = field(default_factory=dict)
    settled: list[tuple[Any, ...]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    befores: dict[Place, list[Position | None]] = field(default_factory=dict)
    gaps: dict[tuple[Place, int, int], tuple[Gap, str]] = field(default_factory=dict)
    dead_letters: dict[tuple[Place, int, int, int, str], tuple[Reject, str]] = field(default_factory=dict)
    deeds: list[str] = field(default_factory=lambda: ["create"])
    leases: dict[str, Holding] = field(default_factory=dict)

    # -------------------------------------------------------------------------------------------------------- leases

    def take(self, lease: Lease, version: int) -> None:
        old = self.leases.get(lease.id)
        epoch, seq = (old.epoch, old.seq) if old else (0, 0)
        self.leases[lease.id] = Holding(epoch + 1, seq + 1, lease.holder, version)

    def touch(self, lease: Lease, *, released: bool = False) -> None:
        holding = self.leases[lease.id]
        holding.seq += 1
        holding.released = released

    # -------------------------------------------------------------------------------------------------- what a run does

    def plan(
        self, ids: Sequence[int], ranges: Sequence[Range], floors: Iterable[Floor], lease: Lease, run: str
    ) -> None:
        self.touch(lease)
        for number, wanted in zip(ids, ranges, strict=True):
            self.open[wanted.stream, wanted.partition] = Opened(number, wanted, run, lease.epoch)
        self._store_floors(ranges[0].stream, floors)

    def adopt(self, stream: str, lease: Lease, run: str) -> list[int]:
        """Everything that is open in a stream is gone on with; the numbers of the ranges."""
        mine = [one for (of, _), one in self.open.items() if of == stream]
        for one in mine:
            one.run_id, one.epoch, one.attempts = run, lease.epoch, one.attempts + 1
        if mine:
            self.touch(lease)
        return [one.id for one in mine]

    def find(self, place: Place, found: ScanResult, lease: Lease) -> None:
        self.touch(lease)
        self.open[place].found = found

    def settle(self, receipts: Mapping[Place, Receipt], lease: Lease, run: str) -> None:
        self.touch(lease)
        in_order = sorted(receipts, key=lambda place: self.open[place].id)
        moves = [(place[0], move) for place in in_order for move in receipts[place].floors]
        for stream, move in sorted(moves, key=lambda one: (one[1].begin, one[1].floor.position)):
            self._store_floors(stream, [move.floor])
        for place in in_order:
            self._close(place, self.open.pop(place), receipts[place], lease.epoch, run)

    def _close(self, place: Place, closed: Opened, receipt: Receipt, epoch: int, run: str) -> None:
        wanted = closed.range
        bare = replace(receipt, floors=(), rejects=())
        self.settled.append((closed.id, place, wanted.end, wanted.pins, run, epoch, closed.attempts, bare))
        after = Position(wanted.incarnation, receipt.end, receipt.evidence)
        self.steps.append(Step("settled", place, (wanted.incarnation, wanted.begin), after))
        self.positions[place] = after
        for gap in (*wanted.gaps, *receipt.gaps):
            before = self.gaps.get((place, gap.incarnation, gap.begin))
            self.gaps[place, gap.incarnation, gap.begin] = (gap if before is None else _both(before[0], gap), run)
        for reject in receipt.rejects:
            key = (place, wanted.incarnation, reject.offset, reject.ordinal, reject.stage)
            self.dead_letters[key] = (reject, run)

    def _store_floors(self, stream: str, floors: Iterable[Floor]) -> None:
        for floor in floors:
            self.floors[stream, floor.partition_id, floor.target] = floor

    # -------------------------------------------------------------------------------------------- what an operator does

    def abandon(self, place: Place) -> None:
        del self.open[place]
        for key, floor in self.floors.items():
            if key[:2] == (place[0], place[1].id):
                self.floors[key] = floor._replace(ahead=True)
        self.deeds.append("abandon")

    def move(self, kind: str, place: Place, after: Position | None) -> None:
        """An offset that a person set, took over from elsewhere, or put back."""
        before = self.positions.pop(place, None)
        if after is not None:
            self.positions[place] = after
        self.befores.setdefault(place, []).append(before)
        self.steps.append(Step(kind, place, pair(before), after))
        self.deeds.append(f"offset {kind}")

    # ----------------------------------------------------------------------------------------------------- what is read

    def floors_of(self, stream: str) -> list[Floor]:
        return [floor for key, floor in sorted(self.floors.items()) if key[0] == stream]

    def view(self) -> dict[str, Any]:
        """Everything, in the form in which the machine reads it from a ledger."""
        return {
            "offsets": self.positions,
            "floors": self.floors,
            "open": {
                place: (one.id, one.range, self._floors_beside(place), encoded(one.found))
                for place, one in self.open.items()
            },
            "receipts": self.settled,
            "history": self.steps,
            "gaps": self.gaps,
            "dead letters": self.dead_letters,
            "deeds": self.deeds,
            "leases": {name: one for name, one in self.leases.items() if not one.released},
            "document": (self.revision, document(self.revision)),
            "assignment": (self.version, self.tasks),
        }

    def _floors_beside(self, place: Place) -> tuple[Floor, ...]:
        return tuple(floor for floor in self.floors_of(place[0]) if floor.partition_id in ("", place[1].id))


def document(revision: int) -> dict[str, Any]:
    return {"name": "orders", "revision": revision}


def pair(position: Position | None) -> tuple[int, int] | None:
    return None if position is None else (position.incarnation, position.offset)


def encoded(found: ScanResult | None) -> bytes | None:
    """Two arrays are equal or not, element by element; their bytes just are."""
    return None if found is None else found.encode()


def _both(one: Gap, other: Gap) -> Gap:
    """Of two gaps that begin at one place neither is forgotten."""
    known = [gap.end for gap in (one, other) if gap.end is not None]
    reasons = dict.fromkeys([*one.reason.split("; "), other.reason])
    return Gap(one.incarnation, one.begin, max(known) if len(known) == 2 else None, "; ".join(reasons))
