"""Targets that only records name: a range ends before a record that goes to one which it has not pinned, and what is
left is planned with that one. Nothing is lost, repeated or written elsewhere, whoever dies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from connect_core.errors import EngineFailed, Retriable, TooManyRejects
from connect_core.replication.worker.lane import move
from connect_core.sdk.sink import Growing, Outside, Targets
from connect_core.sdk.values import OPEN_END, Floor, Json, Limit, OpenRange
from tests.unit.replication.memory import MemorySink, MemorySource, lane_of, open_range
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.test_floors import give_up
from tests.unit.replication.world import World

REFUSED = "x"


def names_of(batch: pa.RecordBatch) -> list[str]:
    return [value[:1].decode() for value in batch.column("value").to_pylist()]


@dataclass
class GrowingSink(MemorySink):
    """The first letter of a body says to which target it goes. `written` is what each range wrote, and had pinned."""

    grows: bool = True
    known: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    deaf: bool = False
    written: list[tuple[set[str], set[str]]] = field(default_factory=list)

    def targets(self, task: int, floors: Sequence[Floor], topics: object) -> Targets:
        if not self.deaf:
            self.known += [name for name in self.asked if name not in self.known]
        self.asked.clear()
        return Targets({"memory": self.name, "to": [*self.known]})

    def outside(self, records: pa.RecordBatch, target: Json) -> Outside:
        names = list(enumerate(names_of(records)))
        strange = [(row, name) for row, name in names if name not in (*target["to"], REFUSED)]
        refused = [(row, "NoTarget", "it has none") for row, name in names if name == REFUSED]
        return Outside(refused, [row for row, _ in strange], [name for _, name in strange])

    def want(self, names: Sequence[str]) -> None:
        self.asked += names

    def outgrown(self) -> bool:
        return bool(self.asked)

    def writer(self, attempt: object, wanted: OpenRange) -> object:  # type: ignore[override]
        self.written.append((set(wanted.range.pins.target["to"]), set()))
        return super().writer(attempt, wanted)  # type: ignore[arg-type]

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        taken = super().write(batch, limit)
        self.written[-1][1].update(names_of(batch)[:taken])
        return taken

    def check(self) -> None:
        assert all(wrote <= pinned for pinned, wrote in self.written)


def bodies(letters: str) -> list[bytes]:
    return [b"%s %d" % (letter.encode(), n) for n, letter in enumerate(letters)]


def pinned(begin: int, end: int, *names: str, number: int = 1) -> OpenRange:
    item = open_range(begin, end, number=number)
    pins = replace(item.range.pins, target={"memory": "memory", "to": list(names)})
    return replace(item, range=replace(item.range, pins=pins))


def grown(world: World, letters: str, **given: object) -> World:
    sink = GrowingSink(**given)  # type: ignore[arg-type]
    world.source.bodies = bodies(letters)
    world.sink = world.engine.sink = sink
    return world


def test_a_sink_says_whether_it_has_such_targets() -> None:
    assert isinstance(GrowingSink(), Growing)
    assert not isinstance(MemorySink(), Growing)


def test_a_range_ends_before_the_first_record_of_a_target_that_it_has_not_pinned() -> None:
    sink = GrowingSink()
    (outcome,) = move(lane_of(pinned(0, 30, "a", "b")), MemorySource(bodies("ab" * 6 + "cdbace" + "a" * 12)), sink)
    assert outcome.receipt is not None
    assert (outcome.receipt.end, outcome.receipt.delivered, outcome.failure) == (12, 12, None)
    assert outcome.wanted == ("c", "d", "e"), "all that the batch shows"
    sink.check()


def test_of_a_range_that_begins_with_such_a_record_nothing_is_written() -> None:
    sink = GrowingSink()
    (outcome,) = move(lane_of(pinned(0, 30, "a")), MemorySource(bodies("ba" * 15)), sink)
    assert (outcome.receipt, outcome.failure, outcome.clean, outcome.wanted) == (None, None, True, ("b",))
    assert not sink.rows


def test_a_record_that_no_target_takes_is_rejected_and_does_not_end_the_range() -> None:
    sink = GrowingSink()
    (outcome,) = move(lane_of(pinned(0, 5, "a"), tolerance=-1), MemorySource(bodies("axaab")), sink)
    assert outcome.receipt is not None
    assert (outcome.receipt.end, outcome.receipt.rejected, outcome.receipt.passed) == (4, 1, 3)
    assert [(one.offset, one.kind) for one in outcome.receipt.rejects] == [(1, "NoTarget")]
    assert outcome.wanted == ("b",)


@pytest.mark.parametrize(("letters", "end", "wanted", "failed"), [("aabx", 2, ("b",), False), ("axba", 1, (), True)])
def test_whichever_comes_first_ends_the_range(letters: str, end: int, wanted: tuple[str, ...], failed: bool) -> None:
    (outcome,) = move(lane_of(pinned(0, 4, "a")), MemorySource(bodies(letters)), GrowingSink())
    assert outcome.receipt is not None
    assert (outcome.receipt.end, outcome.wanted, outcome.failure is not None) == (end, wanted, failed)


def test_a_range_that_is_out_of_time_before_does_not_say_that_it_wants_anything() -> None:
    (outcome,) = move(lane_of(pinned(0, 6, "a")), MemorySource(bodies("aaaaab")), GrowingSink(room=3))
    assert outcome.receipt is not None
    assert (outcome.receipt.end, outcome.wanted) == (3, ())


def test_a_live_range_ends_there_and_a_source_that_pushes_is_told_what_was_taken() -> None:
    sink = GrowingSink()
    source = MemoryPushSource(bodies("aab"), sink=sink)
    (outcome,) = move(replace(lane_of(pinned(0, OPEN_END, "a")), idle_timeout_s=0.05), source, sink)
    assert outcome.receipt is not None
    assert (outcome.receipt.end, outcome.wanted, source.told) == (2, ("b",), [2])


@pytest.mark.parametrize("letters", ["b", "aab" * 5, "abcdefghij"])
def test_what_is_pushed_goes_to_its_targets_in_a_run_without_a_window(
    world: World, pushing: MemoryPushSource, letters: str
) -> None:
    grown(world, letters)
    pushing.sink = world.sink
    world.run()
    assert [offset for offset, _ in world.sink.rows] == list(range(len(letters)))
    assert pushing.acknowledged == len(letters)


@pytest.mark.parametrize("window_s", [0.0, 0.5])
@pytest.mark.parametrize("letters", ["ab" * 20, "b" + "abcd" * 10, "".join(chr(97 + n % 20) for n in range(200))])
def test_a_run_pins_each_target_before_it_writes_to_it(world: World, letters: str, window_s: float) -> None:
    grown(world, letters)
    world.window_s = window_s
    world.run()
    world.check()
    sink = world.sink
    assert isinstance(sink, GrowingSink)
    sink.check()
    assert sorted(sink.known) == sorted(set(letters))


def test_targets_that_appear_in_a_window(world: World) -> None:
    grown(world, "a" * 5)
    world.source.happenings = [
        lambda letters=letters: world.source.bodies.extend(bodies(letters))  # type: ignore[misc]
        for letters in ("b", "ab", "cc", "a")
    ]
    world.window_s = 1.5
    world.run()
    assert [offset for offset, _ in world.sink.rows] == list(range(11))


@pytest.mark.parametrize("survive", [0, 1, 9, 10, 11, 15])
def test_a_worker_that_dies_has_written_nothing_that_the_next_attempt_does_not_look_for(
    world: World, survive: int
) -> None:
    grown(world, "a" * 10 + "bc" * 10, known=["a"])
    world.engine.dies_after = survive
    with pytest.raises(EngineFailed):
        world.run()
    world.run()
    world.check()


def test_a_record_that_is_refused_stops_the_run_once_what_is_before_it_is_moved(world: World) -> None:
    grown(world, "aabxab")
    with pytest.raises(TooManyRejects):
        world.run()
    assert world.committed() == 3
    world.tolerance = -1
    world.run()
    assert (world.committed(), sum(one.rejected or 0 for one in world.receipts())) == (6, 1)


def test_a_sink_that_does_not_take_what_it_is_asked_for_ends_the_run(world: World) -> None:
    grown(world, "aab", deaf=True)
    with pytest.raises(Retriable, match="ends before the same record, however often"):
        world.run()
    assert not world.sink.rows


def test_what_was_given_up_is_found_by_ranges_that_pin_other_targets(world: World) -> None:
    """Records that stand further on make a range that ends before them no rest: under its pins it would end there
    again."""
    grown(world, "a" * 20, known=["a"])
    world.engine.dies_after = 10
    with pytest.raises(EngineFailed):
        world.run()
    give_up(world)
    world.source.bodies = bodies("a" * 5 + "b" + "a" * 14)
    world.run()
    assert sorted(offset for offset, _ in world.sink.rows) == list(range(20))
    assert sum(one.duplicates for one in world.receipts()) == 0
