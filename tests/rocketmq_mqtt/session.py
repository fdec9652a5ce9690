"""A connection of a client to the stand-in, and what it gets: pushed, acknowledged, sent again, put aside. Without I/O,
but for `send`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.rocketmq_mqtt import wire
from tests.rocketmq_mqtt.store import Message, Store, normal

NOT_AWAITED = 32
"""So many messages of a connection count as acknowledged when they are sent."""
BATCH = 32
RETRY_S = 3.0
LOCAL_RETRIES, MOST_TRIES = 1, 15


@dataclass
class Place:
    """How far a client has come in a queue; `sending` has, by offset, what was read from there: True when it counts as
    acknowledged. Nothing is read before `from_when`."""

    queue: str
    qos: int
    offset: int
    retries: bool = False
    sending: dict[int, bool] = field(default_factory=dict)
    from_when: float = 0.0

    def done(self, offset: int) -> None:
        if offset in self.sending:
            self.sending[offset] = True
        while self.sending and next(iter(self.sending.items()))[1]:
            self.offset = next(iter(self.sending)) + 1
            del self.sending[self.offset - 1]


@dataclass
class Sent:
    """A message that is not acknowledged."""

    message: Message
    place: Place
    offset: int
    at: float
    again: int = 0


class Session:
    def __init__(
        self,
        client_id: str,
        store: Store,
        next_id: Callable[[], int],
        send: Callable[[bytes], None],
        *,
        clean: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client_id, self._store, self._next_id, self._send, self._clean = client_id, store, next_id, send, clean
        self._clock = clock
        self.retry_queue = f"/retry/{client_id}/"
        self._places = {self.retry_queue: self._place(self.retry_queue, 1, retries=True)}
        self._sent: dict[int, Sent] = {}
        self._not_awaited: set[int] = set()

    def _place(self, queue: str, qos: int, *, retries: bool = False) -> Place:
        begin = self._store.end(queue) if self._clean else self._store.place(self.client_id, queue)
        return Place(queue, qos, begin, retries)

    def subscribe(self, topic_filter: str, qos: int) -> None:
        queue = normal(topic_filter)
        if queue not in self._places:
            self._places[queue] = self._place(queue, qos)

    def unsubscribe(self, topic_filter: str) -> None:
        self._places.pop(normal(topic_filter), None)

    def pull(self) -> None:
        """What is new, of each queue of which nothing is on its way."""
        for place in [*self._places.values()]:
            if place.sending or self._clock() < place.from_when:
                continue
            found = self._store.read(place.queue, place.offset, BATCH)
            place.sending = dict.fromkeys(range(place.offset, place.offset + len(found)), False)
            for offset, message in zip([*place.sending], found, strict=True):
                self._push(place, offset, message)

    def _push(self, place: Place, offset: int, message: Message) -> None:
        packet_id = self._next_id()
        if place.qos == 0:
            self._write(place, message, packet_id)
            place.done(offset)
            return
        self._sent[packet_id] = Sent(message, place, offset, self._clock())
        if not place.retries and len(self._not_awaited) < NOT_AWAITED:
            self._not_awaited.add(packet_id)
            place.done(offset)
        self._write(place, message, packet_id)

    def _write(self, place: Place, message: Message, packet_id: int) -> None:
        message.tries += place.retries
        head = wire.text(message.topic) + (packet_id.to_bytes(2, "big") if place.qos else b"")
        self._send(wire.packet(wire.PUBLISH, head + message.payload, flags=min(place.qos, 1) << 1))

    def acknowledged(self, packet_id: int) -> None:
        self._not_awaited.discard(packet_id)
        if sent := self._sent.pop(packet_id, None):
            sent.place.done(sent.offset)

    def send_again(self) -> None:
        """Each three seconds."""
        now = self._clock()
        for packet_id, sent in [*self._sent.items()]:
            if now - sent.at < RETRY_S:
                continue
            if sent.again < LOCAL_RETRIES:
                self._write(sent.place, sent.message, packet_id)
                sent.again, sent.at = sent.again + 1, now
            else:
                self._put_aside(sent.message)
                self.acknowledged(packet_id)
                self._places[self.retry_queue].from_when = now + RETRY_S

    def _put_aside(self, message: Message) -> None:
        if message.tries < MOST_TRIES:
            self._store.put([self.retry_queue], message)

    def save(self) -> None:
        if not self._clean:
            self._store.save(self.client_id, {queue: place.offset for queue, place in self._places.items()})

    def end(self) -> None:
        self.save()
        for packet_id in sorted(self._not_awaited):
            self._put_aside(self._sent[packet_id].message)
