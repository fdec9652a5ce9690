"""Rules in a lane: what becomes of a record that matches several, and where a receipt may end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from connect_core.pipeline.shaping import Pipeline
from connect_core.replication.driver.lost_ranges import closed_from_target
from connect_core.replication.worker import counts
from connect_core.replication.worker.lane import move
from connect_core.sdk.batches import ordinals, whole_records
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.scan import Hit, ScanResult
from connect_core.sdk.values import OPEN_END, Limit, OpenRange
from connect_core.work import Outcome
from tests.unit.replication.memory import MemorySink, MemorySource, lane_of, open_range, records
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.test_lane import receipt_of

BODIES = [b'{"n": %d}' % n for n in range(100)]
RULES = {
    "rules": [
        {"name": "all", "when": "$.n >= 10"},
        {"name": "even", "when": "$.n BETWEEN 20 AND 29", "to": "twenties"},
        {"name": "late", "when": "$.n > 24", "tags": "late"},
    ]
}
"""0 to 9 match none, 10 to 19 one, 20 to 24 two, 25 to 29 three, the others two."""
LINEAGE = Lineage("uid", "live", Partition("memory").id, 0)
OUTPUTS = 10 * 1 + 5 * 2 + 5 * 3 + 70 * 2


@dataclass
class Outputs(MemorySink):
    """A sink that keeps what it was given, and takes records whole."""

    given: list[tuple[int, int, str | None, str | None]] = None  # type: ignore[assignment]

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        self.given = self.given or []
        offsets = batch.column("offset").to_numpy()
        taken = super().write(batch.slice(0, self._whole(offsets)), limit)
        columns = (batch.column(name).to_pylist()[:taken] for name in ("offset", "ordinal", "to", "tags"))
        self.given += [(one[0], one[1] or 0, *one[2:]) for one in zip(*columns, strict=True)]
        return taken

    def _whole(self, offsets: object) -> int:
        fit = min(len(offsets), self.room)  # type: ignore[arg-type]
        whole = whole_records(offsets, fit)  # type: ignore[arg-type]
        self.room = max(self.room, whole)
        return whole


class Careless(Outputs):
    """One that stops wherever its room ends."""

    def _whole(self, offsets: object) -> int:
        return min(len(offsets), self.room)  # type: ignore[arg-type]


def moved(sink: MemorySink, item: OpenRange, *, tolerance: int = 0, rules: Mapping[str, object] = RULES) -> Outcome:
    lane = replace(lane_of(item, tolerance=tolerance), pipeline=dict(rules))
    (outcome,) = move(lane, MemorySource(BODIES), sink)
    return outcome


def all_outputs(begin: int = 0, end: int = 100) -> pa.RecordBatch:
    return Pipeline(dict(RULES)).shape(records({n: BODIES[n] for n in range(begin, end)})).kept


def digest(outputs: pa.RecordBatch) -> str:
    total = RecordDigest(LINEAGE)
    total.add(outputs)
    return total.text()


def pairs(outputs: pa.RecordBatch) -> list[tuple[int, int]]:
    numbers = ordinals(outputs)
    assert numbers is not None
    return list(zip(outputs.column("offset").to_pylist(), numbers.tolist(), strict=True))


def test_records_are_counted_once_and_outputs_each() -> None:
    sink = Outputs()
    receipt = receipt_of(moved(sink, open_range(0, 100)))
    assert (receipt.read, receipt.filtered, receipt.passed) == (100, 10, 90)
    assert (receipt.emitted, receipt.delivered, receipt.deduplicated) == (OUTPUTS, OUTPUTS, 0)
    assert receipt.digest_sent == digest(all_outputs()) != receipt.digest_read
    assert [one for one in sink.given if one[0] == 27] == [
        (27, 0, None, None),
        (27, 1, "twenties", None),
        (27, 2, None, "late"),
    ]


@pytest.mark.parametrize("there", [1, 2, 12, 13, 14, 90])
def test_killed_between_the_outputs_of_a_record_the_others_are_delivered(there: int) -> None:
    """Whichever of them the dead attempt had written, and in whatever order over the targets."""
    all_pairs = pairs(all_outputs())
    before = all_pairs[3 : 3 + there] + all_pairs[-there:]
    found = ScanResult().merged([Hit(*one, "memory", n) for n, one in enumerate(before)], {"memory": len(before)}, True)
    sink = Outputs()
    receipt = receipt_of(moved(sink, open_range(0, 100, found=found)))
    assert sorted([*((one[0], one[1]) for one in sink.given), *set(before)]) == all_pairs
    assert (receipt.emitted, receipt.deduplicated, receipt.duplicates) == (
        OUTPUTS,
        len(set(before)),
        len(before) - len(set(before)),
    )
    assert receipt.digest_sent == digest(all_outputs()), "the same whoever has written which"


@pytest.mark.parametrize("room", [1, 11, 12, 23, 24, 25, 100])
def test_a_range_ends_between_records(room: int) -> None:
    sink = Outputs(room=room)
    receipt = receipt_of(moved(sink, open_range(0, 100)))
    expected = all_outputs(0, receipt.end)
    assert [one[0] for one in sink.given] == expected.column("offset").to_pylist()
    assert (receipt.delivered, receipt.read) == (len(expected), receipt.end)
    assert receipt.digest_sent == digest(expected)


def test_a_writer_that_stops_between_two_outputs_is_refused() -> None:
    with pytest.raises(RuntimeError, match="between the outputs of one record, at offset 20"):
        moved(Careless(room=11), open_range(0, 100))


def test_a_record_is_rejected_once_with_all_of_its_outputs() -> None:
    sink = Outputs(hated=frozenset({BODIES[27], BODIES[28]}))
    receipt = receipt_of(moved(sink, open_range(0, 100), tolerance=2))
    assert (receipt.read, receipt.filtered, receipt.rejected, receipt.passed) == (100, 10, 2, 88)
    assert [(reject.offset, reject.ordinal) for reject in receipt.rejects] == [(27, 0), (28, 0)]
    assert {27, 28}.isdisjoint(one[0] for one in sink.given)


def test_more_outputs_than_a_batch_holds_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, sink = all_outputs(), Outputs()
    monkeypatch.setattr("connect_core.pipeline.rules.MAX_OUTPUT_BYTES", 40)
    receipt = receipt_of(moved(sink, open_range(0, 100)))
    assert (receipt.read, receipt.filtered, receipt.delivered) == (100, 10, OUTPUTS)
    assert [(one[0], one[1]) for one in sink.given] == pairs(expected)
    assert receipt.digest_sent == digest(expected)


def test_where_all_rules_are_disabled_everything_is_filtered() -> None:
    receipt = receipt_of(moved(MemorySink(), open_range(0, 100), rules={"rules": []}))
    assert (receipt.read, receipt.filtered, receipt.passed, receipt.delivered) == (100, 100, 0, 0)


def test_the_bound_of_dead_letters_ends_a_range_between_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MAX_REJECTS_OF_A_RANGE", 2)
    sink = Outputs(hated=frozenset(BODIES[25:30]))
    receipt = receipt_of(moved(sink, open_range(0, 100), tolerance=9))
    assert (receipt.end, receipt.rejected, receipt.delivered) == (30, 5, len(all_outputs(0, 25)))


def test_what_an_inbox_has_in_part_comes_again_and_is_told_as_possible_duplicates() -> None:
    """The record at 11 has one output of two in the target: it was not acknowledged."""
    hits = [Hit(10, 0, "memory", 0, trace=7, outputs=2), Hit(10, 1, "other", 0, trace=7, outputs=2)]
    found = ScanResult().merged([*hits, Hit(11, 0, "memory", 1, trace=8, outputs=2)], {}, True)
    (outcome,) = closed_from_target(MemoryPushSource([]), [open_range(10, OPEN_END, found=found)])
    receipt = receipt_of(outcome)
    assert (receipt.begin, receipt.end, receipt.passed, receipt.emitted, receipt.deduplicated) == (10, 12, 2, 3, 3)
    assert receipt.possible_duplicates == 2 + 1, "what the source tells of itself, and the output that comes again"
    assert found.traced() == [(10, 7)], "by which the source recognises what it need not deliver again"
