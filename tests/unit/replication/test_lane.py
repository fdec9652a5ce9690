"""A lane's receipts: what they count, where they end, and when there is none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from connect_core.replication.driver.empty_receipt import empty_receipt
from connect_core.replication.worker.lane import move
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.digest_texts import add_digests
from connect_core.sdk.floors import next_floors
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import Attempt, Delivered, Floor, FloorMove, Limit, OpenRange, Range, SourceBatch
from connect_core.work import Outcome, Receipt
from tests.unit.replication.memory import MemorySink, MemorySource, lane_of, open_range, records

BODIES = [b"line %d" % n for n in range(100)]
LINEAGE = Lineage("uid", "live", Partition("memory").id, 0)


def receipt_of(outcome: Outcome) -> Receipt:
    assert outcome.receipt is not None
    assert outcome.clean
    assert outcome.receipt.identity_faults() == []
    return outcome.receipt


def digest(begin: int, end: int) -> str:
    total = RecordDigest(LINEAGE)
    total.add(records({n: BODIES[n] for n in range(begin, end)}))
    return total.text()


def test_a_whole_range() -> None:
    sink = MemorySink()
    (outcome,) = move(lane_of(open_range(5, 95)), MemorySource(BODIES), sink)
    receipt = receipt_of(outcome)
    assert sink.rows == [(n, BODIES[n]) for n in range(5, 95)]
    assert (receipt.begin, receipt.end, receipt.read, receipt.passed, receipt.delivered) == (5, 95, 90, 90, 90)
    assert (receipt.absent, receipt.filtered, receipt.rejected, receipt.deduplicated, receipt.duplicates) == (
        0,
        0,
        0,
        0,
        0,
    )
    assert receipt.digest_read == receipt.digest_sent == digest(5, 95)
    assert receipt.bytes_read == receipt.bytes_written == sum(map(len, BODIES[5:95]))
    assert receipt.floors == (FloorMove(0, Floor(LINEAGE.partition_id, "memory", 90, False, {})),)
    assert receipt.evidence == {"before": 94}
    assert outcome.failure is None
    assert sink.closed


@pytest.mark.parametrize("room", [1 << 30, 13])
def test_what_the_source_leaves_out_is_filtered(room: int) -> None:
    """Wherever the receipt ends: with the time, a batch may be cut between records that were left out."""
    source = MemorySource(BODIES, copies=frozenset({0, 7, 8, 17, 50, 99}), holes=frozenset({9, 16}))
    receipt = receipt_of(move(lane_of(open_range(0, 100)), source, MemorySink(room=room))[0])
    counted = range(receipt.begin, receipt.end)
    left_out = len(source.copies.intersection(counted))
    absent = len(source.holes.intersection(counted))
    assert (receipt.filtered, receipt.absent) == (left_out, absent)
    assert receipt.read == len(counted) - absent
    assert receipt.passed == receipt.delivered == min(room, 100 - 6 - 2)


def test_records_found_in_the_target_are_not_sent_again() -> None:
    found = ScanResult().merged([(n, 0, "memory", n) for n in range(37)], {"memory": 37}, True)
    sink = MemorySink()
    receipt = receipt_of(move(lane_of(open_range(0, 100, found=found)), MemorySource(BODIES), sink)[0])
    assert sink.rows == [(n, BODIES[n]) for n in range(37, 100)]
    assert (receipt.read, receipt.passed, receipt.deduplicated, receipt.delivered) == (100, 100, 37, 63)
    assert receipt.digest_sent == digest(0, 100)
    assert receipt.duplicates == 0


def test_a_copy_too_many_is_surplus() -> None:
    found = ScanResult().merged([(3, 0, "memory", 0), (3, 0, "memory", 1)], {"memory": 2}, True)
    receipt = receipt_of(move(lane_of(open_range(0, 100, found=found)), MemorySource(BODIES), MemorySink())[0])
    assert (receipt.deduplicated, receipt.duplicates) == (1, 1)


def test_what_may_be_there_twice_is_told_by_the_receipt() -> None:
    found = ScanResult(complete=True, possible_duplicates=5)
    receipt = receipt_of(move(lane_of(open_range(0, 100, found=found)), MemorySource(BODIES), MemorySink())[0])
    assert (receipt.delivered, receipt.deduplicated, receipt.possible_duplicates) == (100, 0, 5)


class Swallowing(MemorySink):
    """Its own context lets no error out, as one with a wide `except` does."""

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[Swallowing]:
        with suppress(Exception):
            yield self

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        raise RuntimeError("refused")


def test_an_error_that_the_sink_itself_swallows_ends_the_work() -> None:
    with pytest.raises(RuntimeError, match="refused"):
        move(lane_of(open_range(0, 100)), MemorySource(BODIES), Swallowing())


def test_when_the_time_is_over_the_receipt_ends_at_the_last_durable_record() -> None:
    sink = MemorySink(room=42)
    receipt = receipt_of(move(lane_of(open_range(0, 100)), MemorySource(BODIES), sink)[0])
    assert (receipt.end, receipt.read, receipt.delivered) == (42, 42, 42)
    assert receipt.digest_read == receipt.digest_sent == digest(0, 42)


class PunctualSink(MemorySink):
    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        return super().write(batch, limit) if limit.quantum_left_s() > 0 else 0


class LateSource(MemorySource):
    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        time.sleep(max(limit.quantum_left_s(), 0) + 0.01)
        yield from super().read(wanted, limit)


def test_a_first_batch_that_comes_when_the_time_is_over_is_moved() -> None:
    """Or a quantum that is too short for it would move nothing, and so would every later one."""
    outcomes = move(lane_of(open_range(0, 100), quantum_s=0.05), LateSource(BODIES), PunctualSink())
    receipt = receipt_of(outcomes[0])
    assert (receipt.end, receipt.delivered) == (10, 10)


def test_an_attempt_that_gets_less_far_leaves_a_floor_below_what_is_there() -> None:
    """Delivery rule 6: records 60 to 79 were found, but this attempt closes the range at 42."""
    found = ScanResult().merged([(n, 0, "memory", n) for n in range(60, 80)], {"memory": 80}, True)
    receipt = receipt_of(move(lane_of(open_range(0, 100, found=found)), MemorySource(BODIES), MemorySink(room=42))[0])
    assert receipt.end == 42
    assert receipt.floors == (FloorMove(0, Floor(LINEAGE.partition_id, "memory", 60, True, {})),)


def test_time_over_among_records_that_are_there_already() -> None:
    found = ScanResult().merged([(n, 0, "memory", n) for n in range(0, 20, 2)], {"memory": 20}, True)
    receipt = receipt_of(move(lane_of(open_range(0, 100, found=found)), MemorySource(BODIES), MemorySink(room=3))[0])
    assert (receipt.end, receipt.read, receipt.deduplicated, receipt.delivered) == (7, 7, 4, 3)


def test_a_lost_answer_leaves_the_range_open_and_says_that_it_is_not_clean() -> None:
    first, second = open_range(0, 50, number=1), open_range(50, 100, number=2)
    outcomes = move(lane_of(first, second), MemorySource(BODIES), MemorySink(broken=True))
    assert [(o.range_id, o.receipt, o.clean) for o in outcomes] == [(1, None, False)]
    assert outcomes[0].failure is not None
    assert outcomes[0].failure.what == "the answer was lost"


def test_records_gone_in_mid_range_close_it_before_them() -> None:
    sink = MemorySink()
    (outcome,) = move(lane_of(open_range(0, 100)), MemorySource(BODIES, gone=55), sink)
    assert receipt_of(outcome).end == 50
    assert len(sink.rows) == 50
    assert outcome.failure is not None
    assert outcome.failure.kind == "OffsetGone"


def test_holes_are_counted_as_absent() -> None:
    source = MemorySource(BODIES, holes=frozenset({3, 4, 15}))
    receipt = receipt_of(move(lane_of(open_range(0, 100)), source, MemorySink())[0])
    assert (receipt.read, receipt.absent) == (97, 3)
    assert receipt.end - receipt.begin == receipt.read + receipt.absent


@pytest.mark.parametrize("room", range(1, 20))
def test_holes_are_counted_up_to_where_the_time_was_over(room: int) -> None:
    source = MemorySource(BODIES, batch=8, holes=frozenset({3, 4, 9, 15, 16, 17}))
    receipt = receipt_of(move(lane_of(open_range(0, 100)), source, MemorySink(room=room))[0])
    assert receipt.read == room
    assert receipt.end - receipt.begin == receipt.read + receipt.absent


@pytest.mark.parametrize("room", [2, 5, 7, 9])
def test_a_record_that_could_not_be_read_is_no_hole(room: int) -> None:
    """The time is over before, between and behind a hole and unreadable records of one batch."""
    source = MemorySource(BODIES, holes=frozenset({4}), unreadable=frozenset({1, 6, 8}))
    receipt = receipt_of(move(lane_of(open_range(0, 100), tolerance=-1), source, MemorySink(room=room))[0])
    assert receipt.absent == (1 if receipt.end > 4 else 0)
    assert receipt.end - receipt.begin == receipt.read + receipt.absent


@pytest.mark.parametrize("hated", range(10))
def test_the_digest_of_what_was_sent_leaves_out_a_reject_whatever_follows(hated: int) -> None:
    sink = MemorySink(hated=frozenset({BODIES[hated]}))
    receipt = receipt_of(move(lane_of(open_range(0, 100), tolerance=-1), MemorySource(BODIES), sink)[0])
    assert receipt.digest_sent == add_digests(digest(0, hated), digest(hated + 1, 100))


def test_a_record_that_cannot_be_taken_ends_the_range_before_it() -> None:
    sink = MemorySink(hated=frozenset({BODIES[33]}))
    (outcome,) = move(lane_of(open_range(0, 100)), MemorySource(BODIES), sink)
    receipt = receipt_of(outcome)
    assert (receipt.end, receipt.read, receipt.rejected) == (33, 33, 0)
    assert len(sink.rows) == 33
    assert outcome.failure is not None
    assert outcome.failure.kind == "TooManyRejects"
    assert "offset 33" in outcome.failure.where


def test_a_range_that_begins_with_such_a_record_has_no_receipt() -> None:
    sink = MemorySink(hated=frozenset({BODIES[0]}))
    (outcome,) = move(lane_of(open_range(0, 100)), MemorySource(BODIES), sink)
    assert (outcome.receipt, outcome.clean, sink.rows) == (None, True, [])


def test_tolerated_rejects_travel_in_the_receipt() -> None:
    sink = MemorySink(hated=frozenset({BODIES[33], BODIES[77]}))
    receipt = receipt_of(move(lane_of(open_range(0, 100), tolerance=2), MemorySource(BODIES), sink)[0])
    assert (receipt.end, receipt.read, receipt.rejected, receipt.delivered) == (100, 100, 2, 98)
    assert [(r.offset, r.stage, r.kind, r.original) for r in receipt.rejects] == [
        (33, "encode", "Hated", BODIES[33]),
        (77, "encode", "Hated", BODIES[77]),
    ]
    assert [offset for offset, _ in sink.rows] == [n for n in range(100) if n not in (33, 77)]


def test_one_reject_more_than_tolerated() -> None:
    sink = MemorySink(hated=frozenset({BODIES[33], BODIES[77]}))
    (outcome,) = move(lane_of(open_range(0, 100), tolerance=1), MemorySource(BODIES), sink)
    receipt = receipt_of(outcome)
    assert (receipt.end, receipt.rejected) == (77, 1)
    assert outcome.failure is not None


def test_a_reject_behind_the_end_of_time_is_not_counted() -> None:
    sink = MemorySink(hated=frozenset({BODIES[8]}), room=5)
    (outcome,) = move(lane_of(open_range(0, 100)), MemorySource(BODIES), sink)
    assert receipt_of(outcome).end == 5
    assert outcome.failure is None


def test_the_largest_number_of_dead_letters_ends_a_range() -> None:
    bodies = [b"bad"] * 3000
    sink = MemorySink(hated=frozenset({b"bad"}))
    receipt = receipt_of(move(lane_of(open_range(0, 3000), tolerance=-1), MemorySource(bodies, batch=100), sink)[0])
    assert (receipt.end, receipt.rejected) == (1000, 1000)


def test_ranges_that_were_not_begun_have_no_outcome() -> None:
    first, second = open_range(0, 50, number=1), open_range(50, 100, number=2)
    assert move(lane_of(first, second, quantum_s=0), MemorySource(BODIES), MemorySink()) == []
    assert [o.range_id for o in move(lane_of(first, second), MemorySource(BODIES), MemorySink())] == [1, 2]


def test_a_receipt_moves_the_floors_of_targets_that_were_written_and_no_others() -> None:
    """After the document has named another file, and of the file of another task."""
    item = open_range(0, 10)
    former, now = Floor("", "/former", 100, evidence={"ino": 1}), Floor("", "/now", 0)
    delivered = Delivered(10, 60, {"/now": 60}, {}, evidence={"ino": 2}, began={"/now": 20})
    moves = next_floors(replace(item, floors=(former, now)), delivered, 10)
    assert moves == (FloorMove(20, Floor("", "/now", 60, evidence={"ino": 2})),)


def test_a_receipt_moves_the_floors_of_targets_that_were_looked_through() -> None:
    """Those of another topic stay `ahead`: nobody has looked there."""
    found = ScanResult().merged([], {"copy/b/0": 30, "copy/b/0 doubtful": 0}, True)
    ahead = tuple(Floor(LINEAGE.partition_id, name, 5, ahead=True) for name in ("copy/b/0", "former/b/0"))
    nothing = Delivered(0, 0, {}, {})
    moves = next_floors(replace(open_range(0, 10, found=found), floors=ahead), nothing, 10)
    assert moves == (FloorMove(5, Floor(LINEAGE.partition_id, "copy/b/0", 30)),)


def test_a_receipt_of_nothing_moves_no_floor() -> None:
    assert empty_receipt(open_range(10, 10)).floors == ()


@pytest.mark.parametrize(("left_s", "quantum_s", "expected_s"), [(11.0, 5.0, 5.0), (3.0, 5.0, 2.25), (0.0, 5.0, 0.0)])
def test_a_lane_that_starts_late_keeps_time_to_end(
    monkeypatch: pytest.MonkeyPatch, left_s: float, quantum_s: float, expected_s: float
) -> None:
    now = 1_000_000_000_000
    for module in ("clock", "sdk.values"):
        monkeypatch.setattr(f"connect_core.{module}.now_ns", lambda: now)
    source = MemorySource(BODIES)
    limits: list[Limit] = []
    monkeypatch.setattr(source, "read", lambda wanted, limit: limits.append(limit) or iter(()))
    lane = replace(lane_of(open_range(0, 100)), deadline_ns=now + int(left_s * 1e9), quantum_s=quantum_s)
    move(lane, source, MemorySink())
    assert limits == (
        [Limit(now + int(expected_s * 1e9), lane.deadline_ns, lane.first_record_timeout_s)] if expected_s else []
    )
