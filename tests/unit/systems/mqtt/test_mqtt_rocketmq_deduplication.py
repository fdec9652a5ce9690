"""What is recognised of a broker that proves nothing: by cases, and against the stand-in of RocketMQ-MQTT with deaths
anywhere."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.systems.mqtt.deduplication import (
    PacketVerdict,
    UnconfirmedRecord,
    left_by,
    trace_of,
)
from connect_core.systems.mqtt.packets import Packet, read_publish
from connect_core.systems.mqtt.rocketmq_mqtt_deduplication import MOST, RocketmqMqttDeduplication
from connect_core.systems.mqtt.session_state import Reception
from tests.rocketmq_mqtt.session import Session
from tests.rocketmq_mqtt.store import Message, Store

NEW, AGAIN, DOUBTFUL = PacketVerdict.NEW, PacketVerdict.AGAIN, PacketVerdict.DOUBTFUL


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def trace(packet_id: int, says: bytes = b"on") -> int:
    return trace_of(packet_id, b"t", says)


def test_an_id_that_is_not_acknowledged_stands_for_the_same_message() -> None:
    """With DUP clear."""
    clock = Clock()
    known = RocketmqMqttDeduplication(clock=clock)
    assert known.judge(trace(1), dup=False) is NEW
    known.written(0, trace(1))
    assert known.judge(trace(1), dup=False) is AGAIN
    assert known.judge(trace(1, b"off"), dup=True) is NEW, "something else was never dropped"
    known.acknowledging([1])
    assert known.judge(trace(1), dup=True) is DOUBTFUL, "it may have crossed the acknowledgement"
    clock.now += 61
    verdicts = [known.judge(trace(1), dup=False) for _ in range(2)]
    assert verdicts == [DOUBTFUL, NEW], "its id is free; the message may have come under another one as well"


def test_what_was_acknowledged_late_may_come_under_another_id_once() -> None:
    clock = Clock()
    known = RocketmqMqttDeduplication(clock=clock)
    known.written(0, trace(1))
    clock.now += 1
    known.written(1, trace(2))
    clock.now += 2
    known.acknowledging([1, 2])
    verdicts = [known.judge(trace(n), dup=False) for n in (3, 4)]
    assert verdicts == [DOUBTFUL, NEW], "the second was acknowledged in time"


def test_what_waits_for_its_settle_counts_when_it_comes_again() -> None:
    clock = Clock()
    known = RocketmqMqttDeduplication(clock=clock)
    known.written(0, trace(1))
    clock.now += 7
    assert known.judge(trace(9), dup=False) is DOUBTFUL


def test_what_stood_unread_counts_when_it_comes_again() -> None:
    """The packet and its like were read together, at once after they came here: that the broker has waited shows only
    in that there are two."""
    known = RocketmqMqttDeduplication(clock=Clock())
    known.written(0, trace(1))
    assert known.judge(trace(1), dup=False) is AGAIN
    known.came_again(1, 1)
    known.acknowledging([1])
    assert [known.judge(trace(n), dup=False) for n in (2, 3)] == [DOUBTFUL, NEW]


def test_the_next_connection_counts_what_was_written_before() -> None:
    clock = Clock()
    known = RocketmqMqttDeduplication(clock=clock)
    for number in range(3):
        known.written(number, trace(number + 1, b"%d" % number))
    known.acknowledging([1, 2])
    settled = known.below(3)
    assert [(one.arrival, one.sent, one.confirmed) for one in settled] == [
        (0, True, True),
        (1, True, True),
        (2, False, False),
    ]
    after = RocketmqMqttDeduplication(settled, clock=clock)
    assert [after.judge(trace(1, b"%d" % n), dup=False) for n in (0, 0, 2, 2, 2, 5)] == [
        DOUBTFUL,
        NEW,
        DOUBTFUL,
        DOUBTFUL,
        NEW,
        NEW,
    ], "what was not acknowledged may come from two queues"
    assert all(one.confirmed for one in after.below(3)), "nothing of it is to be acknowledged over this connection"
    clock.now += 61
    assert after.below(3) == []


def test_so_many_are_remembered() -> None:
    known = RocketmqMqttDeduplication(UnconfirmedRecord(n, trace(n % 65_535 + 1)) for n in range(MOST + 5))
    known.written(MOST + 5, trace(1))
    assert [one.arrival for one in known.below(MOST + 6)][:: MOST - 1] == [6, MOST + 5]
    assert known.below(0) == []


@dataclass
class World:
    """A session's client and its target, which tells what it holds; the ledger; and the broker."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    target: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Number of arrival, trace and payload of each record."""
    settled: int = 0
    entries: list[UnconfirmedRecord] = field(default_factory=list)
    told: int = 0
    published: int = 0

    def __post_init__(self) -> None:
        self.store, self.last_id, self.session = Store(self.folder, []), 0, None
        self.connect()

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def connect(self) -> None:
        self.line: list[Packet] = []
        self.session = Session("c", self.store, self.next_id, self._sent, clean=False, clock=self.clock)
        self.session.subscribe("t", 1)
        known = RocketmqMqttDeduplication(self.entries, clock=self.clock)
        self.reception = Reception(self.settled, known, 1, learns=False)
        self.acks: list[int] = []

    def _sent(self, data: bytes) -> None:
        self.line.append(read_publish(data[0], data[2:], five=False))

    def publish(self, count: int) -> None:
        for _ in range(count):
            self.store.put(["t"], Message("t", b"%d" % (self.published % 3)))
            self.published += 1

    def passes(self, seconds: int) -> None:
        """The broker looks each three seconds at what is to be sent again, and stores each five how far it is."""
        for _ in range(seconds):
            self.clock.now += 1
            self.session.pull()
            if self.clock.now % 3 == 0:
                self.session.send_again()
            if self.clock.now % 5 == 0:
                self.session.save()

    def takes(self, count: int, *, acknowledges: bool) -> None:
        self.session.pull()
        packets, self.line = self.line[:count], self.line[count:]
        for one in self.reception.take(packets):
            self.target.append((one.number, one.trace, one.packet.payload))
            self.told += one.doubtful
        if acknowledges:
            self.reception.durable(self.reception.next)
            for packet_id in self.reception.due():
                self.session.acknowledged(packet_id)

    def settles(self) -> None:
        self.entries = list(self.reception.entries(self.reception.next))
        self.settled = self.reception.next

    def dies(self) -> None:
        """What is in the target behind the settled place is found there, with its trace."""
        self.session.end()
        found = [(number, one) for number, one, _ in self.target if number >= self.settled]
        self.entries = left_by(self.entries, found)
        self.settled = max([self.settled, *(number + 1 for number, _ in found)])
        self.connect()

    def close(self) -> None:
        self.store.close()

    def extra(self) -> int:
        return len(self.target) - self.published


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 50)),
        st.tuples(st.just("passes"), st.integers(1, 12)),
        st.tuples(st.just("takes"), st.integers(1, 70)),
        st.tuples(st.just("acknowledges"), st.integers(1, 70)),
        st.tuples(st.just("settles"), st.just(0)),
        st.tuples(st.just("dies"), st.just(0)),
    ),
    max_size=25,
)


@given(STEPS)
def test_nothing_is_lost_and_repeats_are_counted(steps: list[tuple[str, int]]) -> None:
    """Devices that say one of three things; the broker itself is not killed."""
    with tempfile.TemporaryDirectory() as folder, closing(World(Path(folder))) as world:
        for what, number in steps:
            match what:
                case "publish":
                    world.publish(number)
                case "passes":
                    world.passes(number)
                case "settles":
                    world.settles()
                case "dies":
                    world.dies()
                case _:
                    world.takes(number, acknowledges=what == "acknowledges")
        for _ in range(60):
            world.takes(1000, acknowledges=True)
            world.passes(1)
        assert not Counter(b"%d" % (n % 3) for n in range(world.published)) - Counter(one for _, _, one in world.target)
        assert world.extra() <= world.told


@pytest.mark.parametrize("late", [False, True])
def test_without_a_fault_only_what_waits_too_long_comes_again(tmp_path: Path, late: bool) -> None:
    with closing(World(tmp_path)) as world:
        in_rounds(world, late=late)


def in_rounds(world: World, *, late: bool) -> None:
    for _ in range(5):
        world.publish(20)
        world.takes(100, acknowledges=False)
        world.passes(10 if late else 1)
        world.takes(100, acknowledges=True)
        world.settles()
    world.passes(20)
    world.takes(1000, acknowledges=True)
    assert (world.extra() > 0) == late
    assert world.extra() <= world.told
    assert late or world.told == 0
