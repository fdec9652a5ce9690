"""From what is asked for to parts: cut to what is there, moved to where records begin, and what is gone is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from connect_core.errors import ConfigError, Failure, OffsetGone, PartitionUnreachable
from connect_core.ledger import SettledRange
from connect_core.replication.backfill.request import Moments
from connect_core.replication.backfill.select import Selection, bounds_of, by_moments, by_ranges, by_receipts, looked_at
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Gap, Part, Pins, Position
from tests.contract.ledger.samples import receipt
from tests.unit.replication.memory import MemorySource

A, B = Partition("a"), Partition("b")
EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass
class Logs(MemorySource):
    """Two partitions of the same records, whose lines begin at every tenth place; incarnation 0 of `b` is over."""

    bodies: list[bytes] = field(default_factory=lambda: [b"x"] * 100)
    oldest_of: Mapping[Partition, int] = field(default_factory=dict)
    loses: bool = True
    """Whether what is before the oldest record was there once."""
    away: Failure | None = None
    """Why nobody can look at `a`."""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return {partition: self._seen(partition, position) for partition, position in known.items()}

    def _seen(self, partition: Partition, position: Position | None) -> Bounds:
        at, oldest = position or Position(0, 0), self.oldest_of.get(partition, 0)
        if partition == A and self.away:
            return Bounds(0, at.offset, at.offset, at.offset, failure=self.away, grows=False)
        if partition == B and at.incarnation == 0:
            return Bounds(1, 0, 0, 100, {"new": True}, (Gap(0, at.offset, None, "recreated"),))
        begin = max(at.offset, oldest)
        gaps = (Gap(at.incarnation, at.offset, begin, "expired"),) if begin > at.offset and self.loses else ()
        return Bounds(at.incarnation, begin, oldest, 100, {"at": begin}, gaps)

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        seconds = int(moment.timestamp())
        return {one: min(max(seconds, self.oldest_of.get(one, 0)), 100) for one in partitions}

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return -(-offset // 10) * 10


def there(source: Logs) -> list:  # type: ignore[type-arg]
    return bounds_of(source, {A: Position(0, 42), B: Position(1, 17)})


def at(begin: int, end: int) -> Moments:
    return Moments(EPOCH + timedelta(seconds=begin), EPOCH + timedelta(seconds=end))


def test_times_are_offsets_of_every_partition() -> None:
    source = Logs()
    found = by_moments(source, there(source), at(20, 30), EPOCH + timedelta(seconds=100))
    assert [(part.partition, part.incarnation, part.begin, part.end) for part in found.parts] == [
        (A, 0, 20, 30),
        (B, 1, 20, 30),
    ]
    assert (found.notices, found.gone) == ((), ())


def test_a_time_to_come_is_what_is_there_now() -> None:
    source = Logs()
    found = by_moments(source, there(source), at(90, 200), EPOCH + timedelta(seconds=100))
    assert {part.end for part in found.parts} == {100}
    assert "in the future" in found.notices[0]


def test_records_of_the_time_may_be_gone_when_the_oldest_there_are_of_it() -> None:
    source = Logs(oldest_of={A: 50, B: 60})
    now = EPOCH + timedelta(seconds=100)
    found = by_moments(source, there(source), at(40, 55), now)
    assert [gone.split(" ")[:3] for gone in found.gone] == [["a", "before", "50"]]
    assert found.notices == ("b no longer has records before 60; whether some were of that time is unknown",)
    assert len(by_moments(source, there(source), at(10, 20), now).gone) == 2
    assert by_moments(source, there(source), at(70, 80), now).gone == ()
    with pytest.raises(OffsetGone, match=r"a before 50 \(records of that time may be among it\).*--accept-gaps"):
        looked_at(source, found, False, "orders")


def test_a_queue_that_no_longer_has_records_is_told_and_stops_nothing() -> None:
    source = Logs(oldest_of={A: 50, B: 100})
    found = by_moments(source, there(source), at(60, 70), EPOCH + timedelta(seconds=100))
    assert found.gone == ()
    assert found.notices == ("b no longer has records before 100; whether some were of that time is unknown",)
    assert {part.partition for part in found.parts} == {A}


def test_ranges_are_cut_and_moved_to_where_records_begin() -> None:
    source = Logs()
    found = by_ranges(source, there(source), ["a:5-42", "a:95-120", "b:-"])
    assert [(part.partition, part.begin, part.end) for part in found.parts] == [(A, 10, 50), (B, 0, 100)]
    assert found.notices == (
        "a: 5-42 becomes 10-50, where records begin",
        "a ends at 100: up to there, not to 120",
        "a: 95-100 becomes 100-100, where records begin",
    )


def test_a_range_that_begins_before_what_is_left_is_told_or_begins_there() -> None:
    """Only where something is lost: what a file has before one of its parts is another one's."""
    source = Logs(oldest_of={A: 20})
    assert [(part.begin, part.end) for part in by_ranges(source, there(source), ["a:0-50"]).parts] == [(0, 50)]
    source.loses = False
    found = by_ranges(source, there(source), ["a:0-50"])
    assert [(part.begin, part.end) for part in found.parts] == [(20, 50)]
    assert found.notices == ("a: 0-50 becomes 20-50, where records begin",)


def test_ranges_that_meet_are_moved_once() -> None:
    source = Logs()
    found = by_ranges(source, there(source), ["a:10-40", "a:30-60", "a:80-"])
    assert [(part.begin, part.end) for part in found.parts] == [(10, 60), (80, 100)]


def test_every_range_that_cannot_be_is_told() -> None:
    source = Logs()
    with pytest.raises(ConfigError) as told:
        by_ranges(source, there(source), ["c:10-40", "a:1-2", "d:-"])
    assert [fault.path for fault in told.value.faults] == ["c:10-40", "d:-"]


def settled(partition: Partition, begin: int, end: int, incarnation: int = 0, evidence: bool = True) -> SettledRange:
    return SettledRange(
        id=1,
        uid="u",
        stream="live",
        partition=partition,
        slot=0,
        incarnation=incarnation,
        planned_end=end,
        pins=Pins(1, "", {}, ""),
        run_id="r",
        task=0,
        epoch=1,
        attempts=1,
        planned_at=EPOCH,
        settled_at=EPOCH,
        receipt=receipt(begin, end),
        evidence={"at": begin} if evidence else {},
    )


def test_a_replay_is_what_the_receipts_say_each_record_once() -> None:
    source = Logs()
    ranges = [settled(A, 0, 10), settled(A, 10, 20), settled(A, 15, 30), settled(A, 50, 60), settled(B, 5, 6, 1)]
    assert by_receipts(there(source), ranges).parts == (
        Part(A, 0, 0, 30, {"at": 0}),
        Part(A, 0, 50, 60, {"at": 50}),
        Part(B, 1, 5, 6, {"at": 5}),
    )


def test_a_partition_that_is_read_no_more_cannot_be_replayed() -> None:
    source = Logs()
    with pytest.raises(ConfigError, match="no longer reads c"):
        by_receipts(there(source), [settled(A, 0, 10), settled(Partition("c"), 0, 10)])


def test_what_nothing_is_known_of_any_more_is_gone() -> None:
    source = Logs()
    found = by_receipts(there(source), [settled(B, 0, 10, 0, evidence=False), settled(A, 0, 10, evidence=False)])
    assert [part.partition for part in found.parts] == [A]
    assert found.gone == ("b from 0 to 10 (it was replaced since)",)


def test_what_is_gone_stops_it_before_it_begins() -> None:
    source = Logs(oldest_of={A: 20})
    selected = Selection((Part(A, 0, 10, 30), Part(A, 0, 40, 50), Part(B, 0, 5, 6)))
    with pytest.raises(OffsetGone) as told:
        looked_at(source, selected, False, "orders")
    assert "a from 10 to 20 (expired); b from 5 to an unknown end (recreated)" in str(told.value)


def test_what_is_gone_is_left_out_once_that_is_accepted() -> None:
    """What is gone of a part that is left stays in it, so that moving it notes the gap."""
    source = Logs(oldest_of={A: 20})
    selected = Selection((Part(A, 0, 1, 2), Part(A, 0, 10, 30), Part(A, 0, 40, 50), Part(B, 0, 5, 6)))
    found = looked_at(source, selected, True, "orders")
    assert found.parts == (Part(A, 0, 10, 30), Part(A, 0, 40, 50, {"at": 40}))
    assert len(found.notices) == 3


def test_a_part_is_not_cut_where_the_source_ends() -> None:
    """All of it was there once: a source may not look so far ahead, and what it has lost is told when it is moved."""
    source = Logs()
    kept = looked_at(source, Selection((Part(A, 0, 90, 200),)), False, "orders").parts
    assert kept == (Part(A, 0, 90, 200, {"at": 90}),)


def test_a_chosen_partition_that_cannot_be_looked_at_is_told_and_no_other() -> None:
    source = Logs(away=Failure.of(PartitionUnreachable("its broker does not answer")))
    with pytest.raises(PartitionUnreachable, match="does not answer"):
        by_ranges(source, there(source), ["a:0-10"])
    with pytest.raises(PartitionUnreachable, match="does not answer"):
        looked_at(source, Selection((Part(A, 0, 0, 10, {}),)), False, "here")
    assert by_ranges(source, there(source), ["b:0-10"]).parts
