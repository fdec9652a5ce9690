"""Delivery rule 26 at the target: a record that it refuses for good is a reject, or stops its partition alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from connect_core.errors import Refused, TooManyRejects
from connect_core.pipeline.rejecting import reject_row
from connect_core.replication.worker.counts import BatchCounts, RangeCounts
from connect_core.replication.worker.lane import move
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.sink import OnRefused
from connect_core.sdk.values import Delivered, Json, Limit, OpenRange
from connect_core.work import Lane, Outcome
from tests.unit.replication.memory import MemorySource, records
from tests.unit.replication.several import SeveralEngine, SeveralSink, SeveralSources, SeveralWorld, _Writer
from tests.unit.replication.world import World

A, B, C, D = (Partition(key) for key in "abcd")


@dataclass
class RefusingSink(SeveralSink):
    """Says of a batch only when the next one comes, or it is flushed, that it does not take these bodies."""

    refused: frozenset[bytes] = frozenset()

    @contextmanager
    def writer(self, lane: Lane, wanted: OpenRange) -> Iterator[_Late]:  # type: ignore[override]
        yield _Late(self, wanted.range.partition)


@dataclass
class _Late(_Writer):
    on_refused: OnRefused | None = None
    under_way: list[pa.RecordBatch] = field(default_factory=list)

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        self._answered(limit)
        self.under_way = [batch.slice(row, 1) for row in range(len(batch))]
        return len(batch)

    def flush(self, limit: Limit) -> Delivered:
        self._answered(limit)
        return super().flush(limit)

    def _answered(self, limit: Limit) -> None:
        rows, self.under_way = self.under_way, []
        for row in rows:
            if row.column("value")[0].as_py() not in self.sink.refused:  # type: ignore[attr-defined]
                super().write(row, limit)
            elif self.on_refused is None:
                raise Refused("no")
            else:
                self.on_refused(row, "Refused", "it is refused")


@pytest.fixture
def four(world: World) -> SeveralWorld:
    """Four partitions with 50 records each."""
    parts = {one: MemorySource([f"{one.key}{n}".encode() for n in range(50)]) for one in (A, B, C, D)}
    source, sink = SeveralSources(parts, {A, B, C, D}), RefusingSink()
    return SeveralWorld(world.ledger, world.connector, world.home, source, sink, SeveralEngine(source, sink))  # type: ignore[arg-type]


def refuse(world: SeveralWorld, *bodies: bytes) -> None:
    world.sink.refused = frozenset(bodies)  # type: ignore[attr-defined]


def moved(world: SeveralWorld, lane: Lane) -> list[Outcome]:
    return move(lane, world.several, world.sink)  # type: ignore[arg-type]


@pytest.mark.parametrize(("pipeline", "kept"), [({}, {}), ({"rules": [{"name": "all", "keys": "k"}]}, None)])
def test_an_output_that_is_refused_is_no_record_that_could_be_read_again(
    four: SeveralWorld, pipeline: Json, kept: Json | None
) -> None:
    refuse(four, b"b7")
    [outcome] = moved(four, replace(four.lane(B, end=50), tolerance=-1, pipeline=pipeline))
    assert outcome.receipt is not None
    [letter] = outcome.receipt.rejects
    assert (letter.offset, letter.attributes) == (7, kept)


ONE, TWO = [{"name": "all", "keys": "k"}], [{"name": "all", "keys": "k"}, {"name": "again", "keys": "l"}]


@pytest.mark.parametrize(("rules", "kept"), [(ONE, {}), (TWO, None)], ids=["one output", "two"])
def test_a_record_that_became_one_output_is_kept_as_it_was_read(
    four: SeveralWorld, rules: list[Json], kept: Json | None
) -> None:
    """Of two the target may have taken the other one, which a replay would bring again."""
    refuse(four, b"b49")  # it is in the batch that is flushed
    [outcome] = moved(four, replace(four.lane(B, end=50), tolerance=-1, pipeline={"rules": rules}))
    assert outcome.receipt is not None
    [letter] = outcome.receipt.rejects
    assert (letter.offset, letter.original, letter.attributes) == (49, b"b49", kept)


@pytest.mark.parametrize("record", [0, 9, 20, 49], ids=["first", "last of a batch", "in the middle", "last"])
def test_a_record_that_is_refused_is_a_reject_of_its_record(four: SeveralWorld, record: int) -> None:
    refuse(four, b"b%d" % record)
    outcomes = moved(four, replace(four.lane(A, B, C, end=50), tolerance=-1))
    receipts = [outcome.receipt for outcome in outcomes if outcome.receipt]
    assert [(one.read, one.passed, one.emitted, one.delivered, one.rejected) for one in receipts] == [
        (50, 50, 50, 50, 0),
        (50, 49, 49, 49, 1),
        (50, 50, 50, 50, 0),
    ]
    assert all(not one.identity_faults() for one in receipts)
    [letter] = receipts[1].rejects
    assert (letter.offset, letter.stage, letter.original) == (record, "write", b"b%d" % record)


def test_the_digest_is_that_of_what_was_taken(four: SeveralWorld) -> None:
    refuse(four, b"b20")
    sent = moved(four, replace(four.lane(B, end=50), tolerance=-1))[0].receipt
    four.parts[B].holes = frozenset({20})
    refuse(four)
    without = moved(four, four.lane(B, end=50))[0].receipt
    assert sent is not None
    assert without is not None
    assert sent.digest_sent == without.digest_sent != sent.digest_read


@pytest.mark.parametrize("tolerance", [0, 1])
def test_one_too_many_stops_its_partition_and_no_other(four: SeveralWorld, tolerance: int) -> None:
    refuse(four, b"b7", b"b20")
    outcomes = moved(four, replace(four.lane(A, B, C, end=50), tolerance=tolerance))
    assert [(one.receipt is not None, one.apart, one.clean) for one in outcomes] == [
        (True, False, True),
        (False, True, False),
        (True, False, True),
    ]
    assert outcomes[1].failure is not None
    assert outcomes[1].failure.kind == "TooManyRejects"
    assert "stage write" in outcomes[1].failure.what
    last = 7 if tolerance == 0 else 20
    assert four.target.of(B) == [n for n in range(last) if n != 7], "nothing stands behind what was refused"


def test_rejects_of_every_stage_count_together(four: SeveralWorld) -> None:
    four.sink.hated = frozenset({b"b22"})
    refuse(four, b"b21")
    [outcome] = moved(four, replace(four.lane(B, end=50), tolerance=1))
    assert (outcome.receipt, outcome.apart) == (None, True)
    [outcome] = moved(four, replace(four.lane(B, end=50), tolerance=2))
    assert outcome.receipt is not None
    assert [one.offset for one in outcome.receipt.rejects] == [21, 22]


def test_live_ranges_are_followed_on_when_the_target_refuses_a_record_of_one(four: SeveralWorld) -> None:
    refuse(four, b"b30")
    four.parts[A].happenings = [lambda: four.parts[A].bodies.append(b"a50"), lambda: None, lambda: None]
    outcomes = moved(four, replace(four.lane(A, B, C), idle_timeout_s=0.2))
    assert [(one.receipt.end if one.receipt else None, one.apart, one.clean) for one in outcomes] == [
        (51, False, True),
        (None, True, False),
        (50, False, True),
    ]


def test_what_was_written_before_a_refusal_is_found_and_settled_when_it_is_tolerated(four: SeveralWorld) -> None:
    """The range stays open: it is not taken back, for its first records are in the target."""
    refuse(four, b"b20")
    with pytest.raises(TooManyRejects, match="partition b, offset 20"):
        four.run()
    assert four.moved() == {"a": 50, "b": 20, "c": 50, "d": 50}
    assert four.open_keys() == ["b"]
    assert four.states() == {"b": "quarantined"}
    with pytest.raises(TooManyRejects):  # as often as it is tried
        four.run()
    assert four.moved() == {"a": 50, "b": 20, "c": 50, "d": 50}
    refuse(four)
    four.run()
    assert four.moved() == {"a": 50, "b": 50, "c": 50, "d": 50}
    assert four.states() == {"b": "active"}


def test_of_the_outputs_of_a_record_those_that_were_taken_stay_counted() -> None:
    rows = records({0: b"x", 1: b"y"})
    two = pa.RecordBatch.from_pylist(
        [{**row, "ordinal": n, "outputs": 2} for row in rows.to_pylist() for n in range(2)], schema=rows.schema
    )
    counts = RangeCounts(0, Lineage("uid", "live", A.id, 0))
    counts.add(BatchCounts(2, rows, two, 0, 0, 0, (), covered=2))
    assert (counts.passed, counts.emitted) == (2, 4)
    for row in (2, 3):
        counts.refuse(reject_row(two, row, "write", "Refused", "no"), two.slice(row, 1))
    assert (counts.read, counts.passed, counts.emitted, len(counts.rejects)) == (2, 1, 2, 1)
