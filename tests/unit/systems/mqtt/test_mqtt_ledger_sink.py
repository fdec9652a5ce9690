"""A sink whose broker keeps no progress: what the ledger alone makes of attempts that die anywhere."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.sdk.floors import next_floors
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.values import Bounds, Floor, OpenRange
from connect_core.systems.mqtt.plugin import PLUGIN
from connect_core.systems.mqtt.publications import Publication
from connect_core.systems.mqtt.sink import LedgerMqttSink, MqttSink
from connect_core.systems.mqtt.sink_options import MqttSinkOptions

PARTITION = Partition("p")
GROUP = 10
GIVEN = {"broker": "rocketmq-mqtt", "host": "h", "topic": "t", "uid": "u", "progress_every": GROUP}
OPTIONS = MqttSinkOptions.model_validate(GIVEN)
PINS = {"broker": OPTIONS.where}
FIRST = Floor(PARTITION.id, OPTIONS.where, 0)


class Died(Exception):
    """The attempt."""


@dataclass
class Target:
    """Acknowledges at once, until so many have come: then the attempt dies."""

    came: list[int] = field(default_factory=list)
    left: int = 10**6
    under_way = 0
    refused = ()
    most_bytes = 1000

    def has_room(self, size: int, most: int) -> bool:
        return True

    def publish(self, one: Publication, offset: int, row: object = None) -> None:
        assert (one.topic, one.retain) == ("t", False), "no progress, and nothing retained"
        if self.left == 0:
            raise Died
        self.left -= 1
        self.came.append(offset)

    def turn(self, limit_s: float) -> None:
        pass


@dataclass
class Ledger:
    target: Target
    sink: LedgerMqttSink
    floor: Floor = FIRST
    settled: int = 0
    told: int = 0
    open: OpenRange | None = None

    def attempt(self, until: int, dies_at: int | None) -> None:
        self.target.left = 10**6 if dies_at is None else dies_at
        bounds = Bounds(0, self.settled, 0, until)
        item = self.open or OpenRange(1, range_of(PARTITION, bounds, max_records=1000, pins=PINS), ())
        item = replace(item, floors=(self.floor,))
        if item.inherited:
            item = replace(item, found=self.sink.scan(Scan(attempt(), (item,), 1.0))[1])
        self.open = replace(item, inherited=True)
        begin, end = item.range.begin, item.range.end
        try:
            with self.sink.writer(attempt(), item) as writer:
                taken = writer.write(records([b"x"] * (end - begin), first_offset=begin), limit())
                delivered = writer.flush(limit())
        except Died:
            return
        [(_, self.floor)] = next_floors(item, delivered, begin + taken)
        self.settled, self.open = begin + taken, None
        self.told += delivered.possible_duplicates


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    return made(monkeypatch)


def made(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    sink, target = LedgerMqttSink(OPTIONS), Target()
    monkeypatch.setattr(sink, "_connected", lambda wanted: nullcontext(target))
    return Ledger(target, sink)


@given(st.lists(st.tuples(st.integers(1, 40), st.none() | st.integers(0, 12)), max_size=12))
def test_whoever_dies_wherever_nothing_is_lost_and_repeats_are_told(attempts: list[tuple[int, int | None]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        ledger, deaths, end = made(patch), 0, 0
        for more, dies_at in attempts:
            end = max(end, ledger.settled + more)
            ledger.attempt(end, dies_at)
            deaths += ledger.open is not None
        while ledger.settled < end + 50:
            ledger.attempt(end + 50, None)
    times = Counter(ledger.target.came)
    assert sorted(times) == list(range(end + 50))
    repeats = sum(times.values()) - len(times)
    assert repeats <= ledger.told <= deaths * GROUP
    assert repeats <= deaths * GROUP


def test_attempts_that_die_one_after_the_other_are_all_counted(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.attempt(GROUP, dies_at=GROUP - 1)
    ledger.attempt(GROUP, None)
    assert len(ledger.target.came) == 3 * (GROUP - 1) + GROUP
    assert ledger.told == 3 * GROUP, "each of them may have sent all"


def test_a_range_ends_behind_so_many_publishes(ledger: Ledger) -> None:
    ledger.attempt(25, None)
    assert (ledger.settled, ledger.floor.position, ledger.told) == (GROUP, GROUP, 0)


def test_the_kind_of_broker_chooses_the_sink() -> None:
    assert type(PLUGIN.open_sink(OPTIONS, None)) is LedgerMqttSink
    standard = MqttSinkOptions.model_validate({"host": "h", "topic": "t"})
    assert type(PLUGIN.open_sink(standard, None)) is MqttSink


def test_what_a_ledger_that_was_restored_has_forgotten_may_be_there() -> None:
    wanted = range_of(PARTITION, Bounds(0, 0, 0, 5), pins=PINS)
    [floor] = LedgerMqttSink(OPTIONS).floors(wanted, (), restored=True)
    assert floor == Floor(PARTITION.id, OPTIONS.where, 0, ahead=True)
    assert LedgerMqttSink(OPTIONS).floors(wanted, (floor,)) == (floor,)


def test_nothing_of_it_is_at_the_broker() -> None:
    assert LedgerMqttSink(OPTIONS).delete_remote_state({PARTITION: None}) == []
