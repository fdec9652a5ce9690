"""A connector between the model of a broker and a target, and what may happen to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from connect_core.systems.mqtt.deduplication import (
    Deduplication,
    is_doubtful,
    left_by,
)
from connect_core.systems.mqtt.session_state import Arrival, Reception, SessionState
from tests.unit.systems.mqtt.broker_model import BrokerModel

WINDOW = 7


@dataclass
class Bridge:
    """A connector between the model of a broker and a target. `tells`: the target says which records it holds, so that
    a batch is acknowledged when it is durable; else what was not settled is taken out of the target again."""

    broker: BrokerModel
    tells: bool
    target: list[tuple[int, int, int]] = field(default_factory=list)
    """Number of arrival, trace, message."""
    position: int = 0
    standing: SessionState = field(default_factory=lambda: SessionState(("t",)))
    settled: int = 0
    """How much of the target."""
    repeats: int = 0
    rest: list[tuple[Arrival, int]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    """What was published with QoS 0, and was on its way when a connection ended."""

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        self._lose([message for message, packet in self.broker.line if not packet.qos])
        self._lose([message for one, message in self.rest if not one.packet.qos])
        self.broker.connected_again()
        unconfirmed = Deduplication(self.standing.entries, counts_up=self.standing.counts_up)
        self.reception = Reception(self.position, unconfirmed, WINDOW)
        self.rest = []
        self.taken = self.position
        self.doubts = 0

    def _lose(self, messages: list[int]) -> None:
        self.lost.update(messages)

    def receive(self, count: int) -> None:
        """A batch: received, written, made durable, and acknowledged as the target allows."""
        self._take(self._batch(count))

    def _batch(self, count: int) -> list[tuple[Arrival, int]]:
        """What waits since the quantum before; else what comes."""
        if self.taken < self.reception.next:
            return self.rest
        self.broker.send()
        took = [self.broker.line.popleft() for _ in range(min(count, len(self.broker.line)))]
        messages = {id(packet): message for message, packet in took}
        return [(one, messages[id(one.packet)]) for one in self.reception.take([packet for _, packet in took])]

    def _take(self, batch: list[tuple[Arrival, int]], end: int | None = None) -> None:
        """Writes what has a number below `end`, if that is not all."""
        self.taken = self.reception.next if end is None else end
        written = [row for row in batch if row[0].number < self.taken]
        self.rest = batch[len(written) :]
        self.target += [(one.number, one.trace, message) for one, message in written]
        self.doubts += sum(one.doubtful for one, _ in written)

    def acknowledge(self) -> None:
        """Where nothing is taken nothing is acknowledged: nobody would know of it."""
        if self.taken == self.position:
            return
        self.reception.durable(self.taken if self.tells else self.position)
        self.broker.back.extend(self.reception.due())
        self.broker.back.append(None)
        self.reception.pinged()

    def answer(self, count: int) -> None:
        self.broker.process(count)
        for _ in range(self.broker.pongs):
            self.reception.answered()
        self.broker.pongs = 0

    def leave(self, count: int) -> None:
        """The time is over in the middle of a batch: its first half is written, the rest is not settled."""
        self._take_half(count)
        self.settle()

    def stay_in_the_middle(self, count: int) -> None:
        """The same, and the next quantum goes on over the same connection: it begins with the rest."""
        self._take_half(count)
        self.stay()

    def _take_half(self, count: int) -> None:
        """Perhaps nothing. Where a batch has numbers without a record, it may end between these as well."""
        begin, batch = self.taken, self._batch(count)
        self._take(batch, (begin + self.reception.next) // 2)

    def settle(self) -> None:
        """The end of a quantum: position and evidence together, through the form in which they are stored."""
        self._keep()
        self.connect()

    def stay(self) -> None:
        """The next quantum begins over the same connection."""
        self._keep()
        self.doubts = 0
        self.reception.settled(self.position)
        waits = self.position < self.reception.next
        if not waits and any(not one.confirmed for one in self.standing.entries):
            self.taken = self.reception.passed_over()
            self.acknowledge()

    def _keep(self) -> None:
        """Where nothing was taken nothing is settled."""
        if self.taken == self.position:
            return
        self.position, self.settled = self.taken, len(self.target)
        standing = SessionState(("t",), self.reception.entries(self.position), self.reception.counts_up)
        self.standing = SessionState.of(standing.evidence())
        self.repeats += self.doubts

    def forget(self, count: int) -> None:
        """The broker is killed, which ends the quantum."""
        if not self.broker.counts_up:
            return  # there, what was acknowledged and what is new cannot be told apart by anybody
        self.broker.forget(count)
        self.settle()

    def lose_count(self, count: int) -> None:
        """The broker is killed, which ends the quantum. All that it had sent was acknowledged, and it knows."""
        if not self.broker.counts_up:
            return
        self.acknowledge()
        self.answer(100)
        self.settle()
        self.broker.lose_count(count)

    def rewind(self, count: int) -> None:
        """The broker is killed, which ends the quantum. It has forgotten that it sent the last messages at all."""
        if not self.broker.counts_up:
            return
        self.acknowledge()
        self.answer(100)
        self.settle()
        self.broker.rewind(count)

    def glance(self, count: int) -> None:
        """Somebody connects to the session and leaves it without reading: what the broker has handed over is marked as
        sent again."""
        self.broker.send()
        self.settle()

    def die(self) -> None:
        """Anywhere: what was settled stands, and the next attempt looks in the target. Where nothing had come to it, it
        leaves no range behind."""
        if self.taken == self.position:
            self.connect()
            return
        if not self.tells:
            self._lose([message for _, trace, message in self.target[self.settled :] if not trace])
            del self.target[self.settled :]
        left = self.target[self.settled :]
        found = [(number, trace) for number, trace, _ in left if trace]
        self.position = max((number + 1 for number, *_ in left), default=self.position)
        self.settled = len(self.target)
        self.repeats += sum(is_doubtful(trace) for _, trace in found)
        entries = left_by(self.standing.entries, found)
        self.standing = SessionState(("t",), tuple(entries), self.standing.counts_up)
        self.connect()


HALVES = ["leave", "stay_in_the_middle"]


def perform(bridge: Bridge, actions: list[tuple[str, int]], say: bytes | None) -> list[int]:
    """The messages that were published, but for what was lost of QoS 0. At the end all of them have had time to arrive;
    of QoS 0 nothing arrives twice, and nothing out of order."""
    published, zero = 0, set[int]()
    for action, count in actions:
        if action in ("publish", "publish_zero"):
            for _ in range(count):
                getattr(bridge.broker, action)(published, b"%d" % published if say is None else say)
                zero.update([published] if action == "publish_zero" else [])
                published += 1
        elif count:
            getattr(bridge, action)(count)
        else:
            getattr(bridge, action)()
    for _ in range(3 + 2 * published):
        bridge.receive(WINDOW)
        bridge.acknowledge()
        bridge.answer(100)
        bridge.settle()
    assert not bridge.broker.under_way
    there = [message for *_, message in bridge.target if message in zero]
    assert there == sorted(zero - bridge.lost)
    return [message for message in range(published) if message not in bridge.lost]
