"""Plans, receipts and a run for the tests of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from connect_core.ledger import Lease, Ledger, task_lease_id
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Floor, OpenRange, Pins, Position, Range
from connect_core.work import Outcome, Receipt

Q0, Q1 = Partition("orders:broker-a:0"), Partition("orders:broker-a:1")
PINS = Pins(revision=1, pipeline="p1", target={"topic": "copy", "queues": 4}, code="0.1.0")


def planned(partition: Partition = Q0, begin: int = 0, end: int = 100, **changes: Any) -> Range:
    made = Range(LIVE, partition, 0, 0, begin, end, 1000, 1 << 20, {"store_time": 7}, PINS)
    return replace(made, **changes)


def receipt(begin: int = 0, end: int = 100, **changes: Any) -> Receipt:
    """A sound receipt: every record was read, passed and delivered."""
    count = end - begin
    made = Receipt(
        begin=begin,
        end=end,
        read=count,
        absent=0,
        filtered=0,
        rejected=0,
        passed=count,
        emitted=count,
        delivered=count,
        deduplicated=0,
        duplicates=0,
        possible_duplicates=0,
        bytes_read=200 * count,
        bytes_written=210 * count,
        seconds=0.25,
        digest_read=f"r{end}",
        digest_sent=f"s{end}",
        where={"copy:0": [begin, end]},
        evidence={"last": end - 1},
        floors=(),
        covered=count,
    )
    return replace(made, **changes)


@dataclass(frozen=True)
class Worker:
    """A run of one task, with its lease."""

    ledger: Ledger
    uid: str
    lease: Lease
    run_id: str
    stream: str = LIVE

    @classmethod
    def started(cls, ledger: Ledger, name: str) -> Worker:
        uid = ledger.apply(name, {"name": name}, who="ann").connector.uid
        ledger.assign(uid, [Q0, Q1], 1)
        lease = ledger.take(task_lease_id(uid, LIVE, 1, 0), None, f"{name}-1", uid=uid, version=1)
        return cls(ledger, uid, lease, ledger.begin_run(uid, LIVE, task=0, engine="inline"))

    def taken_over(self) -> Worker:
        """The next attempt: it has the lease, this one has lost it."""
        seen = self.ledger.lease(self.lease.id)
        lease = self.ledger.take(self.lease.id, seen, f"{self.lease.holder}x", uid=self.uid, version=1)
        return replace(self, lease=lease, run_id=self.ledger.begin_run(self.uid, LIVE, task=0, engine="inline"))

    def plan(self, *ranges: Range, floors: Sequence[Floor] = ()) -> list[OpenRange]:
        return self.ledger.plan([self.lease], self.run_id, self.uid, 0, ranges, floors)

    def settle(self, *outcomes: Outcome) -> None:
        self.ledger.settle([self.lease], self.run_id, self.uid, outcomes)

    def move(self, partition: Partition = Q0, begin: int = 0, end: int = 100, **changes: Any) -> int:
        """Plans and settles one range; its id."""
        [opened] = self.plan(planned(partition, begin, end))
        self.settle(Outcome(opened.id, receipt(begin, end, **changes)))
        return opened.id

    def position(self, partition: Partition = Q0) -> Position | None:
        return self.ledger.positions(self.uid, self.stream, [partition])[partition]

    def open_ids(self) -> list[int]:
        return [item.id for item in self.ledger.open_ranges(self.uid, self.stream)]
