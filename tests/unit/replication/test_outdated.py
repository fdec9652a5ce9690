"""Records that a writer leaves out as too late: how a receipt counts them (delivery rules 8 and 13)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from connect_core.replication.worker.lane import move
from connect_core.sdk.scan import Prefix, ScanResult
from connect_core.sdk.values import Attempt, OpenRange
from connect_core.work import Receipt
from tests.unit.replication.memory import MemorySink, MemorySource, lane_of, open_range

BODIES = [b"line %d" % n for n in range(100)]


@dataclass
class LateSink(MemorySink):
    """These offsets are too late; it remembers which were asked about."""

    late: frozenset[int] = frozenset()
    asked: list[int] = field(default_factory=list)

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[LateSink]:
        with super().writer(attempt, wanted):
            yield self

    def outdated(self, records: pa.RecordBatch) -> NDArray[np.bool_]:
        offsets = records.column("offset").to_numpy()
        self.asked += offsets.tolist()
        return np.isin(offsets, list(self.late))


def receipt_of(sink: LateSink, item: OpenRange, source: MemorySource | None = None) -> Receipt:
    [outcome] = move(lane_of(item), source or MemorySource(BODIES), sink)
    assert outcome.receipt is not None
    assert outcome.receipt.identity_faults() == []
    return outcome.receipt


@pytest.mark.parametrize("late", [{0}, {99}, {9, 10, 11}, set(range(100)), set(range(0, 100, 2))])
def test_they_count_as_filtered(late: set[int]) -> None:
    sink = LateSink(late=frozenset(late))
    receipt = receipt_of(sink, open_range(0, 100))
    assert [offset for offset, _ in sink.rows] == [n for n in range(100) if n not in late]
    assert (receipt.read, receipt.filtered, receipt.passed) == (100, len(late), 100 - len(late))
    assert (receipt.emitted, receipt.delivered, receipt.end) == (100 - len(late), 100 - len(late), 100)


def test_the_digest_is_that_of_what_was_sent() -> None:
    without = receipt_of(LateSink(), open_range(0, 100), MemorySource(BODIES, holes=frozenset({20, 21})))
    assert receipt_of(LateSink(late=frozenset({20, 21})), open_range(0, 100)).digest_sent == without.digest_sent


def test_what_is_in_the_target_already_is_not_asked_about() -> None:
    """It was in time when it was delivered; of what comes before it, that which was left out then is late still."""
    found = ScanResult({"memory": 28}, True, prefix=Prefix(30, 28, 0, ((4, 6),)))
    sink = LateSink(late=frozenset({3, 4, 5, 29, 31}))
    receipt = receipt_of(sink, open_range(0, 100, found=found))
    assert sink.asked == [4, 5, *range(30, 100)]
    assert (receipt.deduplicated, receipt.filtered, receipt.delivered) == (28, 3, 69)


@pytest.mark.parametrize("room", [1, 13, 40])
def test_when_the_time_is_over_only_those_before_the_end_are_counted(room: int) -> None:
    late = frozenset({0, 7, 8, 13, 60, 99})
    receipt = receipt_of(LateSink(late=late, room=room), open_range(0, 100))
    counted = range(receipt.begin, receipt.end)
    assert receipt.filtered == len(late.intersection(counted))
    assert receipt.read == len(counted)
    assert receipt.delivered == room
