"""Many partitions in the ledger: a plan, a settle and a look at what is open, on SQLite and on PostgreSQL.

A run writes in portions; beside it stands the same in one transaction, as it would be without. What counts is the
longest transaction: a lease has to outlive it, however busy the machine. Pairs are interleaved, on the same connector.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import TypeVar

from connect_core.ledger import Ledger, task_lease_id, upgrade
from connect_core.replication.driver.ledger_batches import RANGES, in_batches, to_settle
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Floor, FloorMove, OpenRange, Pins, Range
from connect_core.work import Outcome, Receipt
from tests.bench.place import Place
from tests.bench.telling import Row, s

AMOUNTS = (1_000, 10_000)
_RECORDS = 100
_Done = TypeVar("_Done")
_numbers = count(1)


def ledgers(place: Place, repeats: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="waybill-bench-") as folder:
        file = f"sqlite:///{folder}/ledger.db"
        upgrade(file)
        urls = {"SQLite": file, "PostgreSQL": place.running.database_url}
        return [row for name, url in urls.items() for amount in AMOUNTS for row in _rows(name, url, amount, repeats)]


@dataclass
class _Taken:
    """Seconds of each transaction of one kind, pass by pass."""

    passes: list[list[float]] = field(default_factory=list)

    def begin(self) -> None:
        self.passes.append([])

    def longest(self) -> float:
        return median(max(one) for one in self.passes)

    def whole(self) -> float:
        return median(sum(one) for one in self.passes)


def _rows(name: str, url: str, amount: int, repeats: int) -> list[Row]:
    taken = {(what, size): _Taken() for what in ("planned", "settled", "open") for size in (RANGES, amount)}
    with Ledger.open(url) as ledger:
        connector = _Connector(ledger, amount)
        for one in range(repeats + 1):
            for size in (RANGES, amount):
                connector.moves(size, taken if one else {key: _Taken() for key in taken})
    return [
        *(_pair(f"{name}, {amount:,} partitions {what}", taken, what, amount) for what in ("planned", "settled")),
        Row(f"{name}, {amount:,} open ranges read", s(taken["open", RANGES].whole()), "", "no lock is held"),
    ]


def _pair(what: str, taken: dict[tuple[str, int], _Taken], kind: str, amount: int) -> Row:
    ours, one = taken[kind, RANGES], taken[kind, amount]
    ratio = median(max(mine) / max(whole) for mine, whole in zip(ours.passes, one.passes, strict=True))
    return Row(
        what,
        f"longest transaction {s(ours.longest())}",
        f"in one {s(one.longest())}",
        f"ratio {ratio:.2f}; in all {s(ours.whole())}",
    )


class _Connector:
    """With so many partitions, each with a floor, all of which are planned and settled at once."""

    def __init__(self, ledger: Ledger, amount: int) -> None:
        self._ledger, name = ledger, f"many-{next(_numbers)}"
        self._uid = ledger.apply(name, {"name": name}, who="bench").connector.uid
        self._partitions = [Partition(f"/logs/of/the/plant/machine-{number:05}.log") for number in range(amount)]
        ledger.assign(self._uid, self._partitions, 1)
        lease_id = task_lease_id(self._uid, LIVE, 1, 0)
        self._leases = [ledger.take(lease_id, None, name, uid=self._uid, version=1)]
        self._run_id = ledger.begin_run(self._uid, LIVE, task=0, engine="bench")
        self._at = 0

    def moves(self, size: int, taken: dict[tuple[str, int], _Taken]) -> None:
        """One round of all partitions, in transactions of `size` ranges."""
        for what in ("planned", "settled", "open"):
            taken[what, size].begin()
        opened = list[OpenRange]()
        for some in in_batches([self._planned(number, one) for number, one in enumerate(self._partitions)], size):
            opened += _timed(taken["planned", size], lambda some=some: self._plan(some))
        _timed(taken["open", size], lambda: self._ledger.open_ranges(self._uid, LIVE))
        for outcomes in to_settle([Outcome(one.id, self._receipt(one)) for one in opened], size):
            _timed(taken["settled", size], lambda outcomes=outcomes: self._settle(outcomes))
        self._at += _RECORDS

    def _plan(self, ranges: Sequence[Range]) -> list[OpenRange]:
        floors = [Floor(one.partition.id, "copy/broker-a/0", self._at) for one in ranges]
        return self._ledger.plan(self._leases, self._run_id, self._uid, 0, ranges, floors)

    def _settle(self, outcomes: Sequence[Outcome]) -> None:
        self._ledger.settle(self._leases, self._run_id, self._uid, outcomes)

    def _planned(self, number: int, partition: Partition) -> Range:
        evidence = {"device": 66306, "inode": 4_000_000 + number, "first": "0123456789abcdef", "length": 4096}
        pins = Pins(1, "0123456789abcdef", {"topic": "copy", "queues": 8}, "bench")
        end = self._at + _RECORDS
        return Range(LIVE, partition, number, 0, self._at, end, 10_000, 1 << 25, evidence, pins)

    def _receipt(self, opened: OpenRange) -> Receipt:
        begin, end = opened.range.begin, opened.range.end
        floor = Floor(opened.range.partition.id, "copy/broker-a/0", end)
        return Receipt(
            begin=begin,
            end=end,
            read=_RECORDS,
            absent=0,
            filtered=0,
            rejected=0,
            passed=_RECORDS,
            emitted=_RECORDS,
            delivered=_RECORDS,
            deduplicated=0,
            duplicates=0,
            possible_duplicates=0,
            bytes_read=_RECORDS,
            bytes_written=_RECORDS,
            seconds=0.1,
            digest_read="0123456789abcdef",
            digest_sent="0123456789abcdef",
            where={"copy/broker-a/0": [[begin, end]]},
            evidence=opened.range.evidence,
            floors=(FloorMove(begin, floor),),
            covered=_RECORDS,
        )


def _timed(taken: _Taken, action: Callable[[], _Done]) -> _Done:
    started = time.monotonic()
    try:
        return action()
    finally:
        taken.passes[-1].append(time.monotonic() - started)
