"""Which packets were delivered before, of a broker that behaves as RocketMQ-MQTT does. Pure, but for a clock."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from connect_core.systems.mqtt.deduplication import PacketVerdict, UnconfirmedRecord, content_of, packet_id_of

MOST = 4096
"""So many records are remembered, at most. Each is some ten bytes of what is settled."""
_LATE_S = 2.5
"""What was acknowledged later may have been sent again under another id: RocketMQ-MQTT looks after three seconds."""
_STORED_S = 60.0
"""What was acknowledged before that does not come again: RocketMQ-MQTT stores each five seconds what was acknowledged,
and ends a connection that is dead, which may store an older place, after 45 s."""


@dataclass(slots=True)
class _Written:
    """A record that was written over this connection."""

    arrival: int
    trace: int
    came_at: float
    acknowledged_at: float | None = None
    late: bool = False
    """Whether it may come under another id over this connection."""

    def record(self) -> UnconfirmedRecord:
        """`confirmed`: nothing is to be acknowledged over this connection. `sent`: that was done in time."""
        done = self.acknowledged_at is not None
        return UnconfirmedRecord(self.arrival, self.trace, sent=done and not self.late, confirmed=done)


class RocketmqMqttDeduplication:
    """The same of a broker that says nothing which could prove that a packet is one that came before: it sends again
    with DUP clear, and under new ids. `entries` are the records that were settled as written lately.

    As RocketMQ-MQTT does it (`RetryDriver`): what is not acknowledged after three seconds comes once more under its id;
    what is not acknowledged three seconds later comes as a new message, over this connection or the next one. After a
    connection whatever the broker had not stored as acknowledged comes again, as new messages.

    So one thing alone is proof: a packet with the id and the content of one that this side has not acknowledged over
    this connection. Its id is in use (MQTT 3.1.1, 2.3.1). It is dropped. What has the content of a record that may come
    again is delivered and called doubtful, once for each such record; it may be another message that says the same.
    """

    counts_up = False

    def __init__(
        self, entries: Iterable[UnconfirmedRecord] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock, self._began = clock, clock()
        self._before = sorted(entries, key=lambda one: one.arrival)
        self._written: deque[_Written] = deque(maxlen=MOST)
        self._by_id: dict[int, _Written] = {}
        """What came last under each id."""
        self._unacknowledged: dict[int, _Written] = {}
        """By id, in the order of arrival."""
        self._may_come = Counter(content_of(one.trace) for one in self._before)
        """How many records may come again as new messages, by content."""
        self._may_come += Counter(content_of(one.trace) for one in self._before if not one.sent)
        # What was not acknowledged in time may be put aside, and wait in its queue as well.

    def judge(self, trace: int, *, dup: bool) -> PacketVerdict:
        content = content_of(trace)
        here = self._by_id.get(packet_id_of(trace))
        if here is not None and content_of(here.trace) == content:
            if here.acknowledged_at is None:
                return PacketVerdict.AGAIN
            if self._clock() - here.acknowledged_at < _STORED_S:  # it may have crossed the acknowledgement
                self._is_late(here)
                return PacketVerdict.DOUBTFUL
        self._count_late()
        if not self._may_come[content]:
            return PacketVerdict.NEW
        self._may_come[content] -= 1
        return PacketVerdict.DOUBTFUL

    def written(self, number: int, trace: int) -> None:
        one = _Written(number, trace, self._clock())
        self._written.append(one)
        self._unacknowledged.pop(packet_id_of(trace), None)  # the broker has given its id to another message
        self._unacknowledged[packet_id_of(trace)] = self._by_id[packet_id_of(trace)] = one

    def came_again(self, number: int, packet_id: int) -> None:
        """It is the record that it was. It may have waited here, unread, for longer than can be known: the broker may
        be about to send it under another id."""
        self._is_late(self._unacknowledged[packet_id])

    def acknowledging(self, packet_ids: Iterable[int]) -> None:
        now = self._clock()
        self._count_late()
        for packet_id in packet_ids:
            if (one := self._unacknowledged.pop(packet_id, None)) is not None:
                one.acknowledged_at = now

    def _count_late(self) -> None:
        latest = self._clock() - _LATE_S
        for one in self._unacknowledged.values():
            if one.came_at > latest:
                return
            self._is_late(one)

    def _is_late(self, one: _Written) -> None:
        if not one.late:
            one.late = True
            self._may_come[content_of(one.trace)] += 1

    def below(self, end: int) -> list[UnconfirmedRecord]:
        """What may come again over the next connection, of records before `end`; the newest ones."""
        now = self._clock()
        before = [one._replace(confirmed=True) for one in self._before] if now - self._began < _STORED_S else []
        here = [
            one.record()
            for one in self._written
            if one.acknowledged_at is None or now - one.acknowledged_at < _STORED_S
        ]
        return [one for one in (*before, *here) if one.arrival < end][-MOST:]

    def confirmed(self, arrivals: Sequence[tuple[int, int]]) -> None:
        """That a ping is answered proves nothing: RocketMQ-MQTT works on packets side by side."""

    def all_came_again(self, *, all_settled: bool) -> None:
        """Nothing shows that."""

    def settled(self, end: int) -> None:
        """What was written stays remembered."""

    def not_come_again(self, number: int) -> int:
        """It has no shared subscriptions here."""
        return 0
