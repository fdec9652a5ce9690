"""Delivery rules 25 and 26: no partition stops another, and what became of each is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from connect_core import clock
from connect_core.errors import (
    ConfigError,
    EngineFailed,
    Failure,
    OffsetGone,
    PartitionUnreachable,
    PipelineChanged,
    Retriable,
    RowsLost,
    TargetChanged,
    TooManyRejects,
    Unreachable,
    WaybillError,
)
from connect_core.ledger import task_lease_id
from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.replication.driver import preview
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.replication.driver.lifecycle import put_aside_error
from connect_core.replication.worker.lane import move
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Targets
from connect_core.sdk.values import (
    Attempt,
    Bounds,
    Floor,
    Gap,
    Json,
    Limit,
    OpenRange,
    Pins,
    Position,
    Range,
    SourceBatch,
)
from connect_core.version import code_version
from connect_core.work import Lane, Outcome
from tests.unit.replication.memory import MemorySource
from tests.unit.replication.several import SeveralEngine, SeveralSink, SeveralSources, SeveralWorld
from tests.unit.replication.world import World

A, B, C, D, E = (Partition(key) for key in "abcde")
LONG_S = 60.0


@pytest.fixture
def four(world: World) -> SeveralWorld:
    """Four partitions with 50 records each."""
    parts = {one: MemorySource([f"{one.key}{n}".encode() for n in range(50)]) for one in (A, B, C, D)}
    source, sink = SeveralSources(parts, {A, B, C, D}), SeveralSink()
    return SeveralWorld(world.ledger, world.connector, world.home, source, sink, SeveralEngine(source, sink))  # type: ignore[arg-type]


@pytest.fixture
def window(four: SeveralWorld) -> SeveralWorld:
    """A window of a minute: a test that does not end it takes too long."""
    four.window_s = LONG_S
    four.times = LeaseTimes(ttl_s=4, margin_s=0.5, quantum_s=1.5, idle_timeout_s=0.05)
    return four


def bad(world: SeveralWorld, *bodies: bytes) -> None:
    """The target can never hold these."""
    world.sink.hated = frozenset(bodies)


# --------------------------------------------------------------------------------------------- one does not stop others


@pytest.mark.parametrize("record", [0, 20])
def test_a_bad_record_stops_its_partition_and_no_other(four: SeveralWorld, record: int) -> None:
    four.range_records = 10  # the others have more ranges to come when it stops
    bad(four, b"b%d" % record)
    with pytest.raises(TooManyRejects, match=f"partition b, offset {record}"):
        four.run()
    assert four.moved() == {"a": 50, "b": record, "c": 50, "d": 50}
    assert four.states() == {"b": "quarantined"}
    assert four.open_keys() == []


def test_the_reason_is_kept_with_its_exit_code_and_since_when(four: SeveralWorld) -> None:
    bad(four, b"b20")
    for _ in range(2):
        with pytest.raises(TooManyRejects):
            four.run()
    kept = four.ledger.partition_states(four.connector.uid)[B]
    assert (kept.kind, kept.exit_code) == ("TooManyRejects", 5)
    assert "Correct the source" in kept.reason
    assert kept.since is not None
    assert kept.changed_at is not None
    assert kept.since < kept.changed_at
    run = four.ledger.runs(four.connector.uid)[0]
    assert run.state == "failed"
    assert run.failure is not None
    assert "offset 20" in run.failure.where


@pytest.mark.parametrize("record", [0, 20])
def test_a_partition_is_active_again_when_its_cause_is_mended(four: SeveralWorld, record: int) -> None:
    bad(four, b"b%d" % record)
    with pytest.raises(TooManyRejects):
        four.run()
    bad(four)
    four.parts[A].bodies.append(b"a50")
    four.run()
    assert four.moved() == {"a": 51, "b": 50, "c": 50, "d": 50}
    assert four.states() == {"b": "active"}


def test_what_waits_and_what_is_left_of_a_partition_is_told(
    four: SeveralWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of it is moved, and it is put aside by nobody."""
    part, why = four.parts[B], Failure.of(Unreachable("A table of it cannot be read"))
    look = part._bounds
    monkeypatch.setattr(part, "_bounds", lambda at: replace(look(at), waits="rows are still to come", beside=why))
    with pytest.raises(Unreachable, match="A table of it cannot be read"):
        four.run()
    assert four.moved() == {"a": 50, "b": 50, "c": 50, "d": 50}
    assert four.states() == {}
    assert "b: rows are still to come" in four.said
    assert len([one for one in four.said if "the rest continues: A table of it" in one]) == 1
    monkeypatch.undo()
    four.said.clear()
    four.run()
    assert not any("still to come" in one for one in four.said)


def test_a_partition_whose_offset_was_moved_past_the_cause_is_active_again(four: SeveralWorld) -> None:
    four.parts[B].gone = 45
    with pytest.raises(OffsetGone):
        four.run()
    four.parts[B].gone, four.parts[B].bodies = None, four.parts[B].bodies[:40]  # nothing is left to be moved
    four.run()
    assert four.states() == {"b": "active"}


def test_records_that_are_gone_stop_their_partition_and_no_other(four: SeveralWorld) -> None:
    for one in four.parts.values():
        one.bodies, rest = one.bodies[:10], one.bodies[10:]
        one.happenings = []
        one.rest = rest  # type: ignore[attr-defined]
    four.run()
    for one in four.parts.values():
        one.bodies += one.rest  # type: ignore[attr-defined]
    four.parts[C].oldest = 30
    with pytest.raises(OffsetGone, match=r"from 10 to 30.*partition c\].*--accept-gaps"):
        four.run()
    assert four.moved() == {"a": 50, "b": 50, "c": 10, "d": 50}
    four.accept_gaps = True
    four.run()
    assert four.target.of(C) == [*range(10), *range(30, 50)]
    assert four.states() == {"c": "active"}


def test_records_gone_while_they_are_read_close_the_range_before_them(four: SeveralWorld) -> None:
    four.parts[A].gone = 25
    with pytest.raises(OffsetGone, match="offset 25"):
        four.run()
    assert four.moved() == {"a": 20, "b": 50, "c": 50, "d": 50}


class Unreadable(MemorySource):
    def available_offsets(self, known: object) -> dict[Partition, Bounds]:  # type: ignore[override]
        [partition] = known  # type: ignore[misc]
        return {partition: Bounds(0, 0, 0, 0, failure=Failure.of(Unreachable("it cannot be opened", where="d")))}


def test_a_partition_that_cannot_be_looked_at_stops_no_other(four: SeveralWorld) -> None:
    four.parts[D] = Unreadable([])
    with pytest.raises(Unreachable, match="cannot be opened"):
        four.run()
    assert four.moved() == {"a": 50, "b": 50, "c": 50, "d": 0}


def test_a_preview_says_that_the_next_run_takes_a_partition_back(
    four: SeveralWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits there, so nothing else would begin a run."""
    four.parts[D] = Unreadable([])
    with pytest.raises(Unreachable, match="cannot be opened"):
        four.run()
    monkeypatch.setattr(preview.systems, "source", lambda *_: four.source)
    monkeypatch.setattr(preview, "revealed", lambda one: one)

    def previewed() -> dict[str, tuple[str, int | None]]:
        resolved: Any = SimpleNamespace(source=None)
        seen = preview.plan_connector(four.ledger, four.connector, resolved)
        return {one.partition: (one.state, one.lag) for one in seen if (one.state, one.lag) != ("active", 0)}

    assert previewed() == {"d": ("quarantined", None)}
    four.parts[D] = MemorySource([])
    assert previewed() == {}
    four.run()
    assert four.states() == {"d": "active"}
    four.several.named = {A, C, D}
    assert previewed() == {"b": ("retired", None)}


def test_a_topic_that_the_target_cannot_have_stops_its_partitions_and_no_other(
    four: SeveralWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Failure.of(ConfigError("The name is none of a topic"))
    monkeypatch.setattr(four.source, "topic", lambda partition: partition.key)
    monkeypatch.setattr(four.sink, "targets", lambda *_: Targets({"memory": "memory"}, unfit={"b": wrong}))
    with pytest.raises(ConfigError, match="none of a topic"):
        four.run()
    assert four.moved() == {"a": 50, "b": 0, "c": 50, "d": 50}
    assert four.states() == {"b": "quarantined"}


class Stumbling(MemorySource):
    """Raises what nobody expects, with the record in its words."""

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        yield from self._between(wanted, wanted.begin, 20)
        int("secret")


def test_an_unexpected_error_in_reading_stops_its_partition_and_no_other(four: SeveralWorld) -> None:
    four.parts[B] = Stumbling(four.parts[B].bodies)
    with pytest.raises(Retriable, match="ValueError: an unexpected error in reading, at ") as told:
        four.run()
    assert "secret" not in str(told.value)
    assert four.moved() == {"a": 50, "b": 20, "c": 50, "d": 50}
    assert "report it" in four.ledger.partition_states(four.connector.uid)[B].reason


class Recognised(MemorySource):
    """Says of each look how much there was."""

    refuses = False

    def _bounds(self, position: int) -> Bounds:
        return replace(super()._bounds(position), evidence={"held": len(self.bodies)})

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        if self.refuses:
            raise PartitionUnreachable("it went away")
        yield from super().read(wanted, limit)


def test_what_was_planned_and_taken_back_can_be_missed(four: SeveralWorld) -> None:
    """What stood there is kept with the position, of a partition that was never read as well: it may be replaced before
    it is planned again."""
    new, read = Recognised(four.parts[A].bodies), Recognised(four.parts[B].bodies)
    four.parts[B] = read
    four.run()
    four.parts[E] = new
    four.several.named.add(E)
    read.bodies += [b"later"] * 10
    new.refuses = read.refuses = True
    with pytest.raises(Unreachable, match="it went away"):
        four.run()
    assert four.ledger.open_ranges(four.connector.uid, "live") == []
    kept = {B: Position(0, 50, {"held": 60}), E: Position(0, 0, {"held": 50})}
    assert four.ledger.positions(four.connector.uid, "live", [B, E]) == kept


def test_another_pipeline_stops_the_partition_whose_range_is_open(four: SeveralWorld) -> None:
    uid, ledger = four.connector.uid, four.ledger
    ledger.assign(uid, [A, B, C, D], 1)
    lease = ledger.take(task_lease_id(uid, "live", 1, 0), None, "tests", uid=uid, version=1)
    pins = Pins(four.connector.revision, "another pipeline", {"memory": "memory"}, "0.0.1")
    planned = Range("live", B, 1, 0, 0, 50, 1000, 1 << 20, {}, pins)
    ledger.plan([lease], ledger.begin_run(uid, "live", task=0, engine="tests"), uid, 0, [planned], [])
    ledger.release(lease)
    with pytest.raises(PipelineChanged, match="partition b, offset 0"):
        four.run()
    assert four.moved() == {"a": 50, "b": 0, "c": 50, "d": 50}
    assert four.open_keys() == ["b"]


def planned_by_an_earlier_revision(world: SeveralWorld, *partitions: Partition) -> None:
    """By an attempt that was killed."""
    ledger, uid = world.ledger, world.connector.uid
    ledger.assign(uid, [A, B, C, D], 1)
    lease = ledger.take(task_lease_id(uid, "live", 1, 0), None, "tests", uid=uid, version=1)
    pins = Pins(world.connector.revision - 1, pipeline_digest(world.pipeline), {"memory": "memory"}, code_version())
    ranges = [Range("live", one, 1, 0, 0, 50, 1000, 1 << 20, {}, pins) for one in partitions]
    floors = [Floor(one.id, "memory", 0) for one in partitions]
    ledger.plan([lease], ledger.begin_run(uid, "live", task=0, engine="tests"), uid, 0, ranges, floors)
    ledger.release(lease)


def test_a_range_of_an_earlier_revision_that_has_not_begun_in_a_quantum_is_begun_in_the_next_one(
    four: SeveralWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has failed: it is finished as it was planned."""
    planned_by_an_earlier_revision(four, A, B)
    execute = four.engine.execute

    def only_the_first(lanes: Sequence[Lane]) -> list[Outcome]:
        monkeypatch.setattr(four.engine, "execute", execute)
        return execute([replace(lanes[0], ranges=lanes[0].ranges[:1])])

    monkeypatch.setattr(four.engine, "execute", only_the_first)
    four.run()
    assert four.moved() == dict.fromkeys("abcd", 50)
    receipts = four.ledger.receipts(four.connector.uid)
    settled = [(row.partition, row.receipt.begin, row.receipt.end) for row in receipts]
    assert sorted(settled) == [(one, 0, 50) for one in (A, B, C, D)]


@pytest.mark.parametrize("there", [0, 3])
def test_a_range_of_an_earlier_revision_is_closed_where_nothing_of_it_is_in_the_target(
    four: SeveralWorld, there: int
) -> None:
    """It was planned by an attempt that was killed. What it has written holds the range to that revision."""
    planned_by_an_earlier_revision(four, B)
    four.target.stored += [(B, offset) for offset in range(there)]
    four.parts[B] = source = Recognised(four.parts[B].bodies)
    source.refuses = True
    with pytest.raises(Unreachable, match="it went away"):
        four.run()
    assert four.open_keys() == (["b"] if there else [])
    assert any("by the revision of now" in line for line in four.said) == (not there)
    source.refuses = False
    four.run()
    assert four.moved() == dict.fromkeys("abcd", 50)


def test_what_neither_side_has_of_an_open_range_stops_its_partition_and_no_other(four: SeveralWorld) -> None:
    four.engine.lost_after = True
    four.source.partitions([])
    execute = four.engine.execute
    four.engine.execute = lambda lanes: (_ for _ in ()).throw(EngineFailed("killed"))  # type: ignore[method-assign]
    with pytest.raises(EngineFailed):
        four.run()
    four.engine.execute, four.engine.lost_after = execute, False  # type: ignore[method-assign]
    four.parts[C].oldest = 10
    with pytest.raises(OffsetGone, match="from 0 to 10"):
        four.run()
    assert four.moved() == {"a": 50, "b": 50, "c": 0, "d": 50}
    assert four.open_keys() == ["c"]


@pytest.mark.parametrize("open_already", [True, False])
def test_a_range_of_which_nobody_can_say_what_is_there_stops_no_other(four: SeveralWorld, open_already: bool) -> None:
    """One that an attempt has left, or one that is planned where records may be ahead."""
    execute = four.engine.execute
    four.engine.execute = lambda lanes: (_ for _ in ()).throw(EngineFailed("killed"))  # type: ignore[method-assign]
    with pytest.raises(EngineFailed):
        four.run()
    four.engine.execute = execute  # type: ignore[method-assign]
    if not open_already:
        for item in four.ledger.open_ranges(four.connector.uid, "live"):
            four.give_up(item)
    four.engine.unknown = frozenset({C})
    for _ in range(2):
        with pytest.raises(TargetChanged, match="Messages were deleted"):
            four.run()
        assert four.moved() == {"a": 50, "b": 50, "c": 0, "d": 50}
        assert (four.open_keys(), four.states()["c"]) == (["c"], "quarantined")
    four.engine.unknown = frozenset()
    four.run()
    assert four.moved()["c"] == 50


def test_what_the_target_says_stops_the_run(four: SeveralWorld) -> None:
    four.sink.broken = True
    with pytest.raises(Retriable, match="the answer was lost"):
        four.run()
    assert four.states() == {}


@pytest.mark.parametrize(
    ("error", "stays"), [(TargetChanged("it is another one"), []), (Unreachable("it does not answer"), [*"abcd"])]
)
def test_of_what_a_run_planned_nothing_stays_open_when_a_person_has_to_correct_something(
    four: SeveralWorld, monkeypatch: pytest.MonkeyPatch, error: WaybillError, stays: list[str]
) -> None:
    """A range is finished with the document that it was planned by: one of which nothing is written would hold up the
    document that is corrected."""

    def refused(attempt: Attempt, item: OpenRange) -> NoReturn:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(four.sink, "writer", refused)
        with pytest.raises(type(error)):
            four.run()
    assert four.open_keys() == stays
    four.run()
    assert four.moved() == dict.fromkeys("abcd", 50)


# ------------------------------------------------------------------------------------------------------ several of them


def test_of_several_the_gravest_is_raised_and_all_are_listed(four: SeveralWorld) -> None:
    bad(four, b"a20", b"c0")
    four.parts[D] = Unreadable([])
    with pytest.raises(TooManyRejects) as told:
        four.run()
    words = str(told.value)
    assert words.startswith("3 partitions were put aside, the others were moved: ")
    assert all(f"{key}: " in words for key in "acd")
    assert "it cannot be opened" in words
    assert {*told.value.aside} == {"a", "c", "d"}
    assert four.moved() == {"a": 20, "b": 50, "c": 0, "d": 0}


def test_of_many_only_the_first_are_told_one_by_one() -> None:
    many = {f"file {n}": Failure.of(OffsetGone("gone", next_step="Look")) for n in range(12)}
    error = put_aside_error(many, "connector orders")
    assert isinstance(error, OffsetGone)
    assert "file 4: gone (Look); and 7 more" in str(error)
    without_advice = put_aside_error({"a": Failure.of(OffsetGone("gone")), "b": Failure.of(OffsetGone("cut"))}, "here")
    assert "a: gone; b: cut" in str(without_advice)
    assert "file 5" not in str(error)


def test_of_lost_rows_all_are_told_and_what_to_do_once() -> None:
    """Each has an offset of its own, which a person needs."""
    lost = {f"file {n}": Failure.of(RowsLost(f"it begins at offset {n}", next_step="Bring it back")) for n in range(12)}
    many = {f"queue {n}": Failure.of(OffsetGone("gone", next_step="Look")) for n in range(12)}
    said = str(put_aside_error(many | lost, "connector orders"))
    assert all(f"file {n}: it begins at offset {n}" in said for n in range(12))
    assert (said.count("Bring it back"), said.count("(Look)")) == (1, 1)
    assert "file 11: it begins at offset 11 (Bring it back); queue 0: gone" in said
    assert "queue 4: gone (Look); and 7 more" in said


@pytest.mark.parametrize(
    ("kinds", "worst"),
    [
        ([Unreachable, OffsetGone], OffsetGone),
        ([Retriable, Unreachable], Unreachable),
    ],
)
def test_what_no_retry_mends_is_graver(kinds: list[type[WaybillError]], worst: type[WaybillError]) -> None:
    failures = {kind.__name__: Failure.of(kind("it failed")) for kind in kinds}
    assert isinstance(put_aside_error(failures, ""), worst)


# ------------------------------------------------------------------------------------------------------------- a window


def comes(world: SeveralWorld, *bodies: bytes) -> Callable[[], None]:
    """Each into the partition of its first letter."""
    return lambda: [world.parts[Partition(chr(body[0]))].bodies.append(body) for body in bodies] and None


def stop(world: SeveralWorld) -> Callable[[], None]:
    return lambda: world.ledger.set_target_state(world.connector.uid, "paused", who="tests")


def test_in_a_window_the_others_are_followed_on(window: SeveralWorld) -> None:
    bad(window, b"b51")
    window.parts[A].happenings = [
        comes(window, b"a50", b"b50", b"b51", b"c50"),
        comes(window, b"a51", b"c51"),
        lambda: None,
        comes(window, b"d50"),
        *([lambda: None] * 20),
        comes(window, b"c52"),
        stop(window),
    ]
    with pytest.raises(TooManyRejects, match="partition b, offset 51"):
        window.run()
    assert window.moved() == {"a": 52, "b": 51, "c": 53, "d": 51}
    assert window.states() == {"b": "quarantined"}


def test_in_a_window_records_that_are_gone_stop_their_partition_and_no_other(window: SeveralWorld) -> None:
    window.run_closed()
    window.parts[B].gone = 50
    window.parts[A].happenings = [
        comes(window, b"b50", b"a50"),
        lambda: None,
        comes(window, b"a51", b"d50"),
        stop(window),
    ]
    with pytest.raises(OffsetGone):
        window.run()
    assert window.moved() == {"a": 52, "b": 50, "c": 50, "d": 51}
    window.parts[B].gone = None
    window.ledger.set_target_state(window.connector.uid, "running", who="tests")
    window.run_closed()
    assert window.moved() == {"a": 52, "b": 51, "c": 50, "d": 51}
    assert window.states() == {"b": "active"}


def test_a_window_in_which_nothing_is_left_to_follow_ends(window: SeveralWorld) -> None:
    window.several.named = {B}
    bad(window, b"b10")
    with pytest.raises(TooManyRejects):
        window.run()


# ---------------------------------------------------------------------------------------------------- retired and ended


def test_what_the_document_names_no_more_is_not_read(four: SeveralWorld) -> None:
    four.run()
    four.several.named = {A, C, D}
    for one in four.parts.values():
        one.bodies += [b"more"] * 5
    for _ in range(2):
        four.run()
    assert four.moved() == {"a": 55, "b": 50, "c": 55, "d": 55}
    assert four.states() == {"b": "retired"}
    assert [line for line in four.said if "retired" in line] == [
        "b is retired: the document no longer names it: no new records are read"
    ]
    four.several.named = {A, B, C, D}
    four.run()
    assert four.moved()["b"] == 55
    assert four.states() == {"b": "active"}
    assert "b is named again: it continues where it stopped" in four.said


def test_the_source_is_asked_first_for_what_is_read(four: SeveralWorld) -> None:
    """What two partitions may read belongs to the first: one that is retired would never read it."""
    four.run()
    four.several.named = {B, C, D}
    four.run()
    assert four.several.asked[-1] == [B, C, D, A]


def test_what_was_open_of_a_retired_partition_is_finished(four: SeveralWorld) -> None:
    execute = four.engine.execute
    four.engine.execute = lambda lanes: (_ for _ in ()).throw(EngineFailed("killed"))  # type: ignore[method-assign]
    with pytest.raises(EngineFailed):
        four.run()
    four.engine.execute = execute  # type: ignore[method-assign]
    four.several.named = {A, C, D}
    four.parts[B].bodies += [b"more"]
    four.run()
    assert four.moved() == {"a": 50, "b": 50, "c": 50, "d": 50}
    assert four.open_keys() == []
    assert four.states() == {"b": "retired"}


def test_a_partition_is_retired_in_a_window(window: SeveralWorld) -> None:
    window.times = replace(window.times, quantum_s=0.3)

    def renamed() -> None:
        window.several.named = {A, C, D}

    quiet = [lambda: clock.sleep(0.02)] * 30  # longer than a quantum: then the source is asked what is named
    window.parts[A].happenings = [renamed, *quiet, comes(window, b"b50", b"a50"), *quiet[:3], stop(window)]
    window.run()
    assert window.moved() == {"a": 51, "b": 50, "c": 50, "d": 50}


class Ended(MemorySource):
    """It was read to its end, and is not there any more."""

    def available_offsets(self, known: object) -> dict[Partition, Bounds]:  # type: ignore[override]
        [(partition, at)] = known.items()  # type: ignore[attr-defined]
        position: Position = at or Position(0, 0)
        if position.incarnation:
            return {partition: Bounds(1, 0, 0, 0, grows=False)}
        gap = Gap(0, position.offset, position.offset, "deleted")
        return {partition: Bounds(1, 0, 0, 0, gaps=(gap,), grows=False)}


@pytest.mark.parametrize("window_s", [0.0, 0.5], ids=["closed", "window"])
def test_a_partition_that_has_ended_is_remembered_and_told_once(four: SeveralWorld, window_s: float) -> None:
    four.run()
    bodies, four.parts[B] = four.parts[B].bodies, Ended([])
    four.window_s = window_s
    for _ in range(2):
        four.run()
    assert four.states() == {"b": "ended"}
    assert sum("is gone" in line for line in four.said) == 1
    kept = four.ledger.partition_states(four.connector.uid)[B]
    assert (kept.reason, kept.exit_code) == ("deleted", None)
    four.parts[B] = Anew([b"new"] * 3)
    four.run()
    assert four.states() == {"b": "active"}
    assert four.target.of(B) == [*range(len(bodies)), 0, 1, 2]
    position = four.ledger.positions(four.connector.uid, "live", [B])[B]
    assert position is not None
    assert (position.incarnation, position.offset) == (1, 3)


class Anew(MemorySource):
    def available_offsets(self, known: object) -> dict[Partition, Bounds]:  # type: ignore[override]
        [(partition, at)] = known.items()  # type: ignore[attr-defined]
        return {partition: Bounds(1, at.offset, 0, len(self.bodies))}


# ------------------------------------------------------------------------------------------------------------ in a lane


def test_a_lane_goes_on_with_the_ranges_behind_one_that_stopped(four: SeveralWorld) -> None:
    bad(four, b"a20", b"b0")
    outcomes = move(four.lane(A, B, C, end=50), four.several, four.sink)  # type: ignore[arg-type]
    assert [(one.receipt.end if one.receipt else None, one.apart, one.clean) for one in outcomes] == [
        (20, True, True),
        (None, True, True),
        (50, False, True),
    ]
    assert [(receipt.begin, receipt.end) for one in outcomes if (receipt := one.receipt)] == [(0, 20), (0, 50)]


@pytest.mark.parametrize("cause", ["record", "gone"])
def test_live_ranges_are_followed_on_when_one_of_them_stops(four: SeveralWorld, cause: str) -> None:
    if cause == "record":
        bad(four, b"b30")
    else:
        four.parts[B].gone = 30
    four.parts[A].happenings = [comes(four, b"a50", b"b50"), comes(four, b"c50"), comes(four, b"a51")]
    lane = replace(four.lane(A, B, C), idle_timeout_s=0.2)
    outcomes = move(lane, four.several, four.sink)  # type: ignore[arg-type]
    assert [(one.receipt.end if one.receipt else None, one.apart) for one in outcomes] == [
        (52, False),
        (30, True),
        (51, False),
    ]
    assert four.target.durable == len(four.target.stored) == 52 + 30 + 51


def test_a_target_that_fails_ends_the_lane(four: SeveralWorld) -> None:
    four.sink.broken = True
    [outcome] = move(four.lane(A, B, end=50), four.several, four.sink)  # type: ignore[arg-type]
    assert (outcome.apart, outcome.clean) == (False, False)


class WithoutEvidence(SeveralSources):
    def evidence(self, wanted: Range, end: int) -> Json:
        raise Retriable("the file was replaced")


def test_what_was_written_and_no_receipt_tells_of_is_not_clean(four: SeveralWorld) -> None:
    source = WithoutEvidence(four.parts, four.several.named)
    [outcome] = move(four.lane(A, B, end=50), source, four.sink)  # type: ignore[arg-type]
    assert (outcome.receipt, outcome.apart, outcome.clean) == (None, False, False)


# -------------------------------------------------------------------------------------- errors that nobody has expected


class Brittle(Pipeline):
    """Raises for some of the records what nobody expects, with the record in its words."""

    def shape(self, records: pa.RecordBatch) -> Shaped:
        for value in records.column("value").to_pylist():
            if value in (b"a3", b"a4", b"a49"):
                int(value)
        return super().shape(records)


def test_an_unexpected_error_in_shaping_is_a_reject_of_its_record(
    four: SeveralWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connect_core.replication.worker.range.Pipeline", Brittle)
    four.tolerance = 3
    four.run()
    assert four.moved() == {"a": 47, "b": 50, "c": 50, "d": 50}
    letters = four.ledger.dead_letters(four.connector.uid)
    assert sorted((one.offset, one.stage, one.kind) for one in letters) == [
        (3, "shape", "ValueError"),
        (4, "shape", "ValueError"),
        (49, "shape", "ValueError"),
    ]
    assert {one.original for one in letters} == {b"a3", b"a4", b"a49"}
    assert not any("b'a" in one.message for one in letters)
    assert all("an unexpected error in shaping it, at " in one.message for one in letters)


def test_an_unexpected_error_in_shaping_that_is_not_tolerated_stops_its_partition(
    four: SeveralWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connect_core.replication.worker.range.Pipeline", Brittle)
    with pytest.raises(TooManyRejects, match="partition a, offset 3"):
        four.run()
    assert four.moved() == {"a": 3, "b": 50, "c": 50, "d": 50}


class BrittleSink(SeveralSink):
    def invalid_rows(self, batch: pa.RecordBatch) -> list[tuple[int, str, str]]:
        found = super().invalid_rows(batch)
        if b"a7" in batch.column("value").to_pylist():
            raise KeyError("a7")
        return found


def test_an_unexpected_error_in_checking_is_a_reject_of_its_record(four: SeveralWorld) -> None:
    four.sink.__class__ = BrittleSink
    four.tolerance = 2
    bad(four, b"a9", b"b4")
    four.run()
    assert four.moved() == {"a": 48, "b": 49, "c": 50, "d": 50}
    letters = four.ledger.dead_letters(four.connector.uid)
    assert sorted((one.offset, one.kind) for one in letters) == [
        (4, "Hated"),
        (7, "KeyError"),
        (9, "Hated"),
    ]


# ------------------------------------------------------------------------------------------------------------ tolerance


def test_what_is_tolerated_counts_for_a_partition_and_a_run(four: SeveralWorld) -> None:
    """Not for each range: there may be any number of those in a run."""
    four.range_records = 10
    four.tolerance = 2
    bad(four, b"a5", b"a15", b"a25", b"c1", b"c31")
    with pytest.raises(TooManyRejects, match=r"a run tolerates 2 of each partition.*partition a, offset 25"):
        four.run()
    assert four.moved() == {"a": 23, "b": 50, "c": 48, "d": 50}
    four.run()  # a new run tolerates two more
    assert four.moved() == {"a": 47, "b": 50, "c": 48, "d": 50}


def test_what_is_tolerated_counts_for_a_whole_window(window: SeveralWorld) -> None:
    window.tolerance = 2
    bad(window, *(b"a%d" % number for number in (10, 51, 53)))
    quiet = [lambda: clock.sleep(0.06)] * 2  # longer than a quantum waits: each piece is a range of its own
    coming = [comes(window, b"a%d" % number) for number in range(50, 55)]
    window.parts[B].happenings = [one for come in coming for one in (come, *quiet)] + [stop(window)]
    with pytest.raises(TooManyRejects, match="partition a, offset 53"):
        window.run()
    assert window.moved() == {"a": 51, "b": 50, "c": 50, "d": 50}
    assert sum(one.rejected or 0 for one in window.receipts()) == 2
