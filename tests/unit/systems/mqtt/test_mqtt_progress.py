"""Attempts that die anywhere, against a model of what a broker keeps: nothing is lost, what is there twice is told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connect_core.errors import Retriable, TargetChanged
from connect_core.sdk.floors import next_floors
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import Prefix, ScanResult
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.values import ORIGIN, Bounds, Delivered, Floor, OpenRange, Range
from connect_core.systems.mqtt import progress
from connect_core.systems.mqtt.progress import MqttProgress

PARTITION = Partition("p")
BROKER = "h:1883"
FIRST = Floor(PARTITION.id, BROKER, 0)


def planned(begin: int, end: int = 10**6, origin: str = "") -> Range:
    bounds = Bounds(0, begin, 0, end, {ORIGIN: origin})
    return range_of(PARTITION, bounds, max_records=1000, pins={"broker": BROKER})


@dataclass
class World:
    """One partition of a source with endless records, the ledger of its sink, and the broker: `delivered` counts how
    often each record came there."""

    group: int
    kept: MqttProgress | None = None
    delivered: dict[int, int] = field(default_factory=dict)
    floor: Floor = FIRST
    settled: int = 0
    told: int = 0
    epoch: int = 0
    open: OpenRange | None = None

    def attempt(self, records: int, *, sent: int, settles: bool) -> None:
        """Delivers `records` from the settled place on, and settles; or dies with `sent` of the last group sent."""
        self.epoch += 1
        item = self.open or OpenRange(1, planned(self.settled), ())
        item = replace(item, floors=(self.floor,))
        if item.inherited or self.floor.ahead:
            item = replace(item, found=self._found(item))
        left = tuple(self.floor.evidence.get("unsure", ()))
        at = begun = progress.begun(self.kept, item, self.floor.position, self.group, self.epoch, left)
        self.open = replace(item, inherited=True, found=None)
        if item.inherited or item.found is not None or self.kept is None:
            self.kept = at
        goal = self.settled + records
        while at.position < goal:
            count = min(self.group, goal - at.position)
            if not settles and goal - at.position <= self.group:
                self._send(at.position, min(sent, count))
                return
            self._send(at.position, count)
            self.kept = at = at.advanced(count, at.position + count)
        if settles:
            self._settle(item, begun, at, goal)

    def _send(self, begin: int, count: int) -> None:
        for offset in range(begin, begin + count):
            self.delivered[offset] = self.delivered.get(offset, 0) + 1

    def _found(self, item: OpenRange) -> ScanResult:
        settled = self.floor.position
        return ScanResult(
            {BROKER: max(self.kept.count if self.kept else 0, settled)},
            True,
            prefix=progress.covered(self.kept, item.range, settled, self.group),
            possible_duplicates=progress.repeated(self.kept, item.range, settled),
        )

    def _settle(self, item: OpenRange, begun: MqttProgress, at: MqttProgress, end: int) -> None:
        written = at.count - begun.count
        delivered = Delivered(written, 0, {BROKER: at.count}, {}, evidence={"unsure": list(at.unsure)})
        found = item.found or ScanResult()
        already = min(max(found.prefix.through - self.settled, 0), end - self.settled)
        assert written + already == end - self.settled
        self.told += at.repeats - begun.repeats + found.possible_duplicates
        before = self.floor.position
        [(begin, self.floor)] = next_floors(item, delivered, end, already)
        assert begin == before
        self.settled, self.open = end, None

    def repeated(self) -> int:
        """Records that came more than once."""
        return sum(times > 1 for times in self.delivered.values())

    def repeats(self) -> int:
        return sum(self.delivered.values()) - len(self.delivered)


ATTEMPTS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 10), st.booleans()), max_size=12)


@given(st.integers(1, 10), ATTEMPTS)
def test_whoever_dies_wherever_nothing_is_lost_and_repeats_are_told(
    group: int, attempts: list[tuple[int, int, bool]]
) -> None:
    world = World(group, kept=MqttProgress(0, 0, 0, group=group))
    deaths = 0
    for records, sent, settles in attempts:
        world.attempt(records, sent=sent, settles=settles)
        deaths += not settles
    world.attempt(60, sent=0, settles=True)
    assert sorted(world.delivered) == list(range(world.settled))
    assert world.repeats() <= world.told
    assert world.repeats() <= deaths * group
    if not deaths:
        assert world.told == 0


@given(st.integers(1, 10), ATTEMPTS)
@example(10, [(10, 10, False)] * 8)
def test_a_broker_that_has_lost_its_progress_costs_repeats_and_nothing_else(
    group: int, attempts: list[tuple[int, int, bool]]
) -> None:
    """Receipts count the records that may be there more than once. How often each is, only its progress said."""
    world = World(group, kept=MqttProgress(0, 0, 0, group=group))
    for records, sent, settles in attempts:
        world.attempt(records, sent=sent, settles=settles)
    world.kept = None
    world.attempt(60, sent=0, settles=True)
    assert sorted(world.delivered) == list(range(world.settled))
    assert world.repeated() <= world.told


@given(st.integers(1, 10), st.integers(0, 40), st.integers(1, 40))
def test_a_ledger_that_was_restored_finds_what_it_has_forgotten(group: int, known: int, more: int) -> None:
    world = World(group, kept=MqttProgress(0, 0, 0, group=group))
    world.attempt(known, sent=0, settles=True)
    floor, settled = world.floor, world.settled
    world.attempt(more, sent=0, settles=True)
    world.floor, world.settled = floor._replace(ahead=True), settled
    world.attempt(more // 2, sent=0, settles=True)
    world.attempt(more + 5, sent=0, settles=True)
    assert world.repeats() == 0
    assert sorted(world.delivered) == list(range(world.settled))


def test_a_restored_ledger_that_nobody_has_noticed_stops_before_anything_is_sent() -> None:
    item = OpenRange(1, planned(5), (Floor(PARTITION.id, BROKER, 5),))
    with pytest.raises(TargetChanged, match="3 records more than the ledger knows"):
        progress.begun(MqttProgress(0, 0, 8, count=8), item, 5, 10, 1)


@pytest.mark.parametrize("begin", [0, 10])
def test_progress_that_came_too_late_for_the_look_before_stops_the_writer(begin: int) -> None:
    """It would send again what is there, and nobody has counted it. Whether the range goes on from it or not."""
    kept = MqttProgress(0, begin, 70, count=70, repeats=2, group=10)
    unseen = ScanResult({BROKER: 0}, True, prefix=progress.covered(None, planned(0), 0, 10))
    item = OpenRange(1, planned(0), (FIRST,), inherited=True, found=unseen)
    with pytest.raises(Retriable, match=r"too late: 70 records are there.*Nothing was sent"):
        progress.begun(kept, item, 0, 10, 2)
    seen = replace(unseen, scanned={BROKER: 70}, prefix=progress.covered(kept, planned(0), 0, 10))
    assert progress.begun(kept, replace(item, found=seen), 0, 10, 2).count == 70


def test_an_offset_that_a_person_has_set_back_is_delivered_again() -> None:
    kept = MqttProgress(0, 0, 50, count=50, group=10)
    item = OpenRange(1, planned(20), (Floor(PARTITION.id, BROKER, 50),))
    begun = progress.begun(kept, item, 50, 10, 2)
    assert (begun.since, begun.position, begun.count, begun.unsure) == (20, 20, 50, ())
    assert progress.covered(kept, item.range, 50, 10) == Prefix(20, 0, 10), "also when the first attempt dies at once"


def test_progress_of_a_stretch_behind_the_range_says_nothing_about_it() -> None:
    """Somebody gave an open range up and set the offset back."""
    kept = MqttProgress(0, 40, 70, count=70, repeats=2, group=10)
    assert progress.covered(kept, planned(10), 40, 10) == Prefix(10, 0, 10)
    assert progress.repeated(kept, planned(10), 40) == 32


def test_records_of_a_range_that_was_given_up_are_not_those_of_an_offset_that_was_set_back() -> None:
    """All before that range was settled, and is wanted again: also what stands behind it is sent again, and told."""
    settled = MqttProgress(0, 0, 50, count=50, group=10)
    item = OpenRange(1, planned(50), (Floor(PARTITION.id, BROKER, 50),))
    given_up = progress.begun(settled, item, 50, 10, 2).advanced(20, 70)
    assert (given_up.since, progress.covered(given_up, planned(50), 50, 10)) == (0, Prefix(70, 20, 10))
    assert progress.covered(given_up, planned(10), 50, 10) == Prefix(10, 0, 10)
    assert progress.repeated(given_up, planned(10), 50) == 20
    assert progress.covered(given_up, planned(10), 10, 10) == Prefix(70, 60, 10), "a ledger that was restored"


def test_a_ledger_of_before_ranges_that_came_to_nothing_finds_what_was_delivered_behind_them() -> None:
    """As where rules leave most records out: nobody has set anything back."""

    def moved(kept: MqttProgress | None, begin: int, settled: int, records: int) -> MqttProgress:
        item = OpenRange(1, planned(begin), (Floor(PARTITION.id, BROKER, settled),))
        return progress.begun(kept, item, settled, 10, 2).advanced(records, begin + 100)

    kept = moved(moved(moved(None, 0, 0, 10), 100, 10, 0), 200, 10, 5)
    for begin in (100, 200):
        assert progress.covered(kept, planned(begin), 10, 10) == Prefix(300, 5, 10)
    assert progress.covered(kept, planned(50), 10, 10) == Prefix(50, 0, 10), "a person has"


@pytest.mark.parametrize("back_to", [5, 25])
@pytest.mark.parametrize("sent", [0, 12, 30, 48])
def test_a_ledger_of_before_an_offset_was_set_back_counts_what_was_there_before(back_to: int, sent: int) -> None:
    """How far the partition had come is kept, also while it is delivered again from further back."""
    world = World(10, kept=MqttProgress(0, 0, 0, group=10))
    world.attempt(20, sent=0, settles=True)
    floor, settled = world.floor, world.settled
    world.attempt(40, sent=0, settles=True)
    world.settled = back_to
    world.attempt(sent, sent=3, settles=False)
    world.floor, world.settled, world.open = floor._replace(ahead=True), settled, None
    before, told = world.repeats(), world.told
    world.attempt(40, sent=0, settles=True)
    assert set(range(60)) <= world.delivered.keys()
    assert world.repeats() - before <= world.told - told


def test_a_ledger_of_before_an_offset_was_set_back_finds_what_was_delivered_again_to_the_end() -> None:
    world = World(10, kept=MqttProgress(0, 0, 0, group=10))
    world.attempt(20, sent=0, settles=True)
    floor, settled = world.floor, world.settled
    world.attempt(40, sent=0, settles=True)
    world.settled = 5
    world.attempt(55, sent=0, settles=True)
    world.floor, world.settled = floor._replace(ahead=True), settled
    before = world.repeats()
    world.attempt(40, sent=0, settles=True)
    assert world.repeats() == before


def test_progress_of_another_file_under_the_same_number_says_nothing_about_it() -> None:
    """A ledger that was restored may count the files of a log otherwise."""
    kept = MqttProgress(0, 0, 70, count=70, group=10, origin="uIRDT3zr")
    item = replace(planned(0), evidence={ORIGIN: "kmgdJxoj"})
    assert progress.covered(kept, item, 20, 10) == Prefix(0, 0, 10)
    assert progress.repeated(kept, item, 20) == 50
    assert progress.covered(replace(kept, origin=item.origin), item, 20, 10) == Prefix(70, 50, 10)
    assert progress.covered(replace(kept, origin=""), item, 20, 10) == Prefix(70, 50, 10), "before there were names"


def test_records_that_come_again_are_counted_once_whichever_attempt_settles() -> None:
    """The ledger was restored and knows the file that it reads by another name. An attempt that has seen that dies."""
    kept = MqttProgress(0, 0, 100, count=100, group=10, origin="then")
    seen = ScanResult({BROKER: 100}, True)
    item = OpenRange(1, planned(80, origin="now"), (FIRST._replace(position=80),), inherited=True, found=seen)
    assert progress.repeated(kept, item.range, 80) == 20
    dead = progress.begun(kept, item, 80, 10, 2).advanced(15, 95)
    unsure = 10
    assert progress.repeated(dead, item.range, 80) == 20 + unsure
    assert progress.covered(dead, item.range, 80, 10) == Prefix(95, 15, 10), "the others are not of this range"
    assert progress.repeated(dead, planned(85, origin="now"), 105) == unsure, "a receipt has counted them"


def test_progress_of_before_there_were_names_is_read() -> None:
    given = json.loads(MqttProgress(0, 0, 7, count=7).encode())
    for name in ("origin", "begin", "settled", "highest", "elsewhere"):
        del given[name]
    assert MqttProgress.decode(json.dumps(given).encode(), "topic") == MqttProgress(0, 0, 7, count=7)


def test_each_dead_attempt_is_counted() -> None:
    at = MqttProgress(0, 0, 100, count=100, unsure=(5, 3))
    assert at.advanced(4, 104) == MqttProgress(0, 0, 104, count=104, unsure=(1,), repeats=7)


def test_what_is_kept_at_the_broker() -> None:
    """Word for word."""
    at = MqttProgress(1, 2, 3, 4, "o", 5, 6, 7, 8, (9, 10), 11, 12, 13)
    assert at.encode() == (
        b'{"version": 1, "incarnation": 1, "since": 2, "position": 3, "count": 4, "unsure": [9, 10], "repeats": 11, '
        b'"group": 12, "epoch": 13, "origin": "o", "begin": 5, "settled": 6, "highest": 7, "elsewhere": 8}'
    )
    assert MqttProgress.decode(at.encode(), "t") == at


@pytest.mark.parametrize("payload", [b"", b"on", b"[]", b"{}", b'{"position": 1}'])
def test_what_somebody_else_has_published_there_is_not_taken_for_progress(payload: bytes) -> None:
    with pytest.raises(TargetChanged, match="not the progress of a connector"):
        MqttProgress.decode(payload, "waybill/u/p")


def test_backfills_have_a_topic_of_their_own() -> None:
    assert progress.topic_of("waybill", "u", "live", "p") == "waybill/u/p"
    assert progress.topic_of("waybill", "u", "backfill-1", "p") == "waybill/u/p/backfill-1"
