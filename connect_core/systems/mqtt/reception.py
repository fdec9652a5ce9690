"""One session over one connection, without I/O: packets get their numbers, acknowledgements become due, and answers to
pings confirm them.

Every packet gets a number, one that is sent again and dropped as well: then whatever happens in a session moves its
position, and is settled. Acknowledgements go in the order of arrival (MQTT 5, [MQTT-4.6.0-2]): those of dropped packets
as soon as it is their turn, the others when the lane says that they are durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from connect_core.systems.mqtt.packets import Packet
from connect_core.systems.mqtt.remembered import Remembered
from connect_core.systems.mqtt.unconfirmed import PacketVerdict, Unconfirmed, UnconfirmedRecord, doubtful, trace_of


class Arrival(NamedTuple):
    """A packet that is a record. `trace` is 0 with QoS 0."""

    number: int
    packet: Packet
    trace: int
    doubtful: bool


class _Owed(NamedTuple):
    number: int
    packet_id: int
    dropped: bool


class Reception:
    """`begin` is the number of the next packet. `largest_window` is the most packets that a broker which uses ids again
    can have under way in this session; `learns` whether ids may show how the broker gives them out."""

    def __init__(
        self,
        begin: int,
        unconfirmed: Unconfirmed | Remembered,
        largest_window: int,
        *,
        learns: bool = True,
        shares: bool = False,
    ) -> None:
        self.next = begin
        self._learns = learns
        self._new_seen = self._missing_told = False
        self._shares, self._missing = shares, 0
        self._unconfirmed = unconfirmed
        self._largest_window = largest_window
        self._owed: deque[_Owed] = deque()
        self._durable = begin
        self._dropped: list[int] = []
        self._unpinged: list[tuple[int, int]] = []
        self._pinged: deque[list[tuple[int, int]]] = deque()

    def take(self, packets: Sequence[Packet]) -> list[Arrival]:
        """Those that are records, in order; `next` has moved behind all of them, also of those `dropped`."""
        self._dropped = []
        taken = [self._numbered(packet) for packet in packets]
        return [one for one in taken if one is not None]

    def dropped(self) -> Sequence[int]:
        """The numbers of those that were taken last and are no records: they were sent again."""
        return self._dropped

    def _numbered(self, packet: Packet) -> Arrival | None:
        number, self.next = self.next, self.next + 1
        if not packet.qos:
            return Arrival(number, packet, 0, False)
        self._learn_from(packet)
        if not packet.dup and not self._new_seen:
            self._new_seen = True
            # Before its id is looked at: in a shared subscription that is given anew though nobody acknowledged it.
            self._missing = self._unconfirmed.not_come_again(number) if self._shares else 0
        trace = trace_of(packet.packet_id, packet.topic, packet.payload)
        verdict = self._unconfirmed.judge(trace, dup=packet.dup)
        if verdict is PacketVerdict.DOUBTFUL:
            trace = doubtful(trace)
        self._owed.append(_Owed(number, packet.packet_id, verdict is PacketVerdict.AGAIN))
        if verdict is PacketVerdict.AGAIN:
            self._unconfirmed.came_again(number, packet.packet_id)
            self._dropped.append(number)
            return None
        self._unconfirmed.written(number, trace)
        return Arrival(number, packet, trace, verdict is PacketVerdict.DOUBTFUL)

    def passed_over(self) -> int:
        """A number without a packet; returns the one behind it."""
        self.next += 1
        return self.next

    def not_come_again(self, number: int) -> int:
        """To be asked when whatever was to be sent again has been: how many records of before may be with another
        member of a shared subscription now, which takes them for new ones. Each is told once, with this number: until
        that is settled they stand."""
        told, self._missing_told = self._missing_told, True
        return 0 if told else self._missing + self._unconfirmed.not_come_again(number)

    @property
    def new_seen(self) -> bool:
        """Whether a new packet has come, behind all that was sent again."""
        return self._new_seen

    def _learn_from(self, packet: Packet) -> None:
        """By the first id of a connection: whether ids count on from one connection to the next. A broker that gives
        out the lowest free id never gets beyond what it has under way. Twice that, to be sure of one that takes ids for
        more than it may send. One that begins with 1 each time gets as far only later."""
        if self._learns and packet.packet_id > 2 * self._largest_window:
            self._unconfirmed.counts_up = True
        self._learns = False

    def unacknowledged(self) -> int:
        """How many packets the broker has to keep because of this side."""
        return len(self._owed)

    def durable(self, end: int) -> None:
        """Everything with a number below `end` is in the target for good."""
        self._durable = max(self._durable, end)

    def settled(self, end: int) -> None:
        """What has a number below `end` is settled, as it was told, and more comes over this connection. What came
        behind it stays judged as it is: it is to be written yet."""
        self._unconfirmed.settled(end)

    def due(self) -> list[int]:
        """The ids to acknowledge now, in order; they count as sent from here on."""
        ids = []
        while self._owed and (self._owed[0].dropped or self._owed[0].number < self._durable):
            number, packet_id, _ = self._owed.popleft()
            self._unpinged.append((packet_id, number))
            ids.append(packet_id)
        self._unconfirmed.acknowledging(ids)
        return ids

    def pinged(self) -> None:
        """A PINGREQ was sent behind all acknowledgements so far."""
        self._pinged.append(self._unpinged)
        self._unpinged = []

    def answered(self) -> None:
        """The broker has answered the oldest ping, so it has what was sent before that."""
        if self._pinged:
            self._unconfirmed.confirmed(self._pinged.popleft())

    def awaits_answer(self) -> bool:
        return bool(self._pinged)

    def entries(self, end: int) -> tuple[UnconfirmedRecord, ...]:
        """What is settled with the place `end`: of records below it, what is not known to be acknowledged."""
        if self._new_seen:
            self._unconfirmed.all_came_again(all_settled=end >= self.next)
        return tuple(self._unconfirmed.below(end))

    @property
    def counts_up(self) -> bool:
        return self._unconfirmed.counts_up
