"""A broker's side of one session, as small as it can be: a queue, packets under way, three ways of giving out ids."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from connect_core.systems.mqtt.packets import Packet


@dataclass
class BrokerModel:
    """`counts_up` like Mosquitto, else the lowest free id like HiveMQ CE; or `renumbers` like RabbitMQ: what has no
    acknowledgement waits again when a connection ends, and each connection counts from 1. Messages are numbers; what
    they say is the same for all of `payload`s that are equal. `line` is what was sent to the client and has not arrived
    there yet, `back` what the client has sent."""

    counts_up: bool
    window: int
    renumbers: bool = False
    queue: deque[int] = field(default_factory=deque)
    payload: dict[int, bytes] = field(default_factory=dict)
    under_way: dict[int, int] = field(default_factory=dict)
    """Message by packet id, in the order of sending."""
    line: deque[tuple[int, Packet]] = field(default_factory=deque)
    back: deque[int | None] = field(default_factory=deque)
    """Packet ids of acknowledgements, and None for a ping."""
    forgettable: list[tuple[int, int]] = field(default_factory=list)
    """What was acknowledged, in order."""
    pongs: int = 0
    last_id: int = 0
    tried: set[int] = field(default_factory=set)
    """Messages that were sent over a connection that has ended."""

    def publish(self, message: int, payload: bytes) -> None:
        self.queue.append(message)
        self.payload[message] = payload

    def publish_zero(self, message: int, payload: bytes) -> None:
        """With QoS 0: it goes to who is connected, and is forgotten."""
        self.payload[message] = payload
        self.line.append((message, Packet(b"t", payload, 0)))

    def send(self) -> None:
        """As many as the window allows."""
        while self.queue and len(self.under_way) < self.window:
            message, packet_id = self.queue.popleft(), self._next_id()
            self.under_way[packet_id] = message
            self._put(packet_id, dup=message in self.tried)

    def _next_id(self) -> int:
        if self.counts_up or self.renumbers:
            self.last_id = self.last_id % 65_535 + 1
            return self.last_id
        return next(n for n in range(1, 65_536) if n not in self.under_way)

    def _put(self, packet_id: int, *, dup: bool) -> None:
        message = self.under_way[packet_id]
        self.line.append((message, Packet(b"t", self.payload[message], 1, packet_id, dup)))

    def process(self, count: int) -> None:
        """Reads so many of the client's packets."""
        for _ in range(min(count, len(self.back))):
            packet_id = self.back.popleft()
            if packet_id is None:
                self.pongs += 1
            else:
                self.forgettable.append((packet_id, self.under_way.pop(packet_id)))

    def lose_count(self, count: int) -> None:
        """Killed, and back as it was when nothing was under way and its counter was so far behind: ids that were
        acknowledged since are given out again."""
        if not self.under_way:
            self.last_id = max(self.last_id - count, 0)
            self.forgettable.clear()

    def rewind(self, count: int) -> None:
        """Killed, and back as it was when nothing was under way and so many messages waited that were delivered since:
        they come again, as if for the first time."""
        if not self.under_way and self.forgettable:
            gone, self.forgettable = self.forgettable[-count:], []
            self.queue.extendleft(message for _, message in reversed(gone))
            self.last_id = (gone[0][0] - 2) % 65_535 + 1

    def forget(self, count: int) -> None:
        """Killed, and back without the last so many acknowledgements that it had."""
        gone, self.forgettable = self.forgettable[-count:], self.forgettable[:-count]
        again = {packet_id: message for packet_id, message in gone if packet_id not in self.under_way}
        self.under_way = again | self.under_way

    def connected_again(self) -> None:
        """What was on the line in either direction is lost; what has no acknowledgement is sent again."""
        self.line.clear()
        self.back.clear()
        self.pongs = 0
        if self.renumbers:
            self.tried |= set(self.under_way.values())
            self.queue.extendleft(reversed(self.under_way.values()))
            self.under_way.clear()
            self.last_id = 0
        for packet_id in self.under_way:
            self._put(packet_id, dup=True)
