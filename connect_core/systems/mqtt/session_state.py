"""How a session stands, without I/O: what is settled of it with a position, as evidence (`SessionState`), and what
happens to its packets over one connection (`Reception`).

Every packet gets a number, one that is sent again and dropped as well: then whatever happens in a session moves its
position, and is settled. Acknowledgements go in the order of arrival (MQTT 5, [MQTT-4.6.0-2]): those of dropped packets
as soon as it is their turn, the others when the lane says that they are durable.
"""

from __future__ import annotations

import base64
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from connect_core.sdk.values import Json
from connect_core.systems.mqtt.copies import Copies
from connect_core.systems.mqtt.deduplication import (
    Deduplication,
    PacketVerdict,
    UnconfirmedRecord,
    doubtful,
    trace_of,
)
from connect_core.systems.mqtt.packets import Packet
from connect_core.systems.mqtt.rocketmq_mqtt_deduplication import RocketmqMqttDeduplication

DROPPED = "$SYS/broker/publish/messages/dropped"
"""Where a broker that counts says how many messages it has dropped since it was started: Mosquitto does."""
LARGEST_WINDOW = 16_384
"""How many packets a broker that gives out the lowest free id is taken to have under way at most, so that an id beyond
twice this shows one that counts up. It is not the receive maximum: 3.1.1 has none."""
_NOTHING = base64.b64encode(zlib.compress(b"")).decode()
_COLUMNS = 3  # number of arrival, trace, flags
_SENT, _CONFIRMED = 1, 2
_COUNTS_UP = "counts_on"
"""Former versions say `counts_up`, and have learned it within one connection, which may have begun with 1."""


@dataclass(frozen=True)
class SessionState:
    """`subscribed` are the filters of the session at the broker: none says that there is no session to go on with.
    `entries` are in the target, and not known to be acknowledged or the last that were. `counts_up`: it was learned
    that the broker gives out packet ids one after the other. `witnessed`: it has a witness (`session`). `dropped` is
    how many messages the broker said last that it has dropped, for anybody; None when it has not said. `granted` has,
    of the filters, those that the broker is known to have granted, with the QoS. `asks` is what the quantum asks for
    that begins here. `moved` are the filters of which it was told that this session leaves them to another one.
    `losses` is how often the session was lost: by this its witness has another name each time."""

    subscribed: tuple[str, ...] = ()
    entries: tuple[UnconfirmedRecord, ...] = ()
    counts_up: bool = False
    witnessed: bool = False
    dropped: int | None = None
    granted: tuple[tuple[str, int], ...] = ()
    asks: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    losses: int = 0

    @classmethod
    def of(cls, evidence: Json) -> SessionState:
        """Empty evidence is that of a session that never was, or whose place a former version has set."""
        stored = zlib.decompress(base64.b64decode(evidence.get("unconfirmed", _NOTHING)))
        rows = np.frombuffer(stored, dtype=np.int64).reshape(-1, _COLUMNS).tolist()
        entries = tuple(
            UnconfirmedRecord(one, trace, bool(flags & _SENT), bool(flags & _CONFIRMED)) for one, trace, flags in rows
        )
        subscribed, counts_up = tuple(evidence.get("subscribed", ())), bool(evidence.get(_COUNTS_UP))
        return cls(
            subscribed,
            entries,
            counts_up,
            bool(evidence.get("witnessed")),
            evidence.get("dropped"),
            tuple(evidence.get("granted", {}).items()),
            tuple(evidence.get("asks", ())),
            tuple(evidence.get("moved", ())),
            evidence.get("losses", 0),
        )

    def evidence(self) -> Json:
        flagged = [(one.arrival, one.trace, one.sent * _SENT + one.confirmed * _CONFIRMED) for one in self.entries]
        rows = np.array(flagged, dtype=np.int64)
        packed = base64.b64encode(zlib.compress(rows.tobytes())).decode() if len(rows) else _NOTHING
        told = {"unconfirmed": packed, _COUNTS_UP: self.counts_up, "witnessed": self.witnessed}
        told |= {"dropped": self.dropped, **self.of_filters()} | ({"losses": self.losses} if self.losses else {})
        return told | {name: list(given) for name, given in (("asks", self.asks), ("moved", self.moved)) if given}

    def of_filters(self) -> Json:
        """The part of the evidence that says how the session is subscribed."""
        return {"subscribed": list(self.subscribed), "granted": dict(self.granted)}

    def numbered_below(self, begin: int) -> SessionState:
        """For who gives its next packet the number `begin`. A person may have set that back: the broker sends again
        what it has to, whatever its number was, and what comes now came later than any of it."""
        below = (one._replace(arrival=min(one.arrival, begin - 1)) for one in self.entries)
        return replace(self, entries=tuple(below))

    def not_granted(self, filters: Sequence[str], qos: int) -> list[str]:
        """Those of these filters of which it is not known that the broker has granted them with this QoS."""
        return [one for one in filters if (one, qos) not in self.granted]

    def before_asking(self, filters: Sequence[str], qos: int) -> SessionState:
        """What stays true however far somebody gets who asks for these: a session that is there may be subscribed to
        both, and of what is granted only this is not taken back or granted otherwise."""
        subscribed = tuple(dict.fromkeys((*self.subscribed, *filters))) if self.subscribed else ()
        granted = tuple((one, level) for one, level in self.granted if one in filters and level == qos)
        return replace(self, subscribed=subscribed, granted=granted)

    def with_what_it_asks(self) -> SessionState:
        """Where a worker has asked and nobody knows what came of it: the session may be subscribed to both."""
        return replace(self, subscribed=tuple(dict.fromkeys((*self.subscribed, *self.asks))), asks=())

    def with_dropped(self, dropped: int | None) -> tuple[SessionState, str]:
        """How the session stands now, and what is to be told: nothing when nobody has counted, or had before, or the
        session was not there yet. A count that went back began anew with the broker."""
        before = self.dropped
        if dropped is None:
            return self, ""
        more = dropped - before if before is not None and dropped >= before else dropped
        now = replace(self, dropped=dropped)
        if before is None or not more or not self.subscribed:
            return now, ""
        return now, f"the broker has dropped {more:,} messages of some client, perhaps of this session ({DROPPED})"

    def without_session(self) -> SessionState:
        """The broker has lost it, or its witness alone: then what was under way in it comes again, is never dropped
        since this may also be a session made anew, and counts. It may be another broker, that counts in another way."""
        entries = tuple(one._replace(sent=True, confirmed=True) for one in self.entries)
        return replace(
            self,
            subscribed=(),
            entries=entries,
            witnessed=False,
            granted=(),
            counts_up=False,
            losses=self.losses + 1,
        )


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
    """`begin` is the number of the next packet. `learns`: ids may show how the broker gives them out. `largest_window`
    is the most packets that a broker which uses ids again can have under way in this session."""

    def __init__(
        self,
        begin: int,
        unconfirmed: Deduplication | RocketmqMqttDeduplication,
        largest_window: int = LARGEST_WINDOW,
        *,
        learns: bool = True,
        shares: bool = False,
        copies: Copies | None = None,
    ) -> None:
        self.next = begin
        self._copies = copies or Copies()
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
        is_copy = bool(packet.subscriptions) and self._copies.is_copy(packet.topic, packet.subscriptions)
        if not packet.qos:
            return Arrival(number, packet, 0, is_copy)
        self._learn_from(packet)
        if not packet.dup and not self._new_seen:
            self._new_seen = True
            # Before its id is looked at: in a shared subscription that is given anew though nobody acknowledged it.
            self._missing = self._unconfirmed.not_come_again(number) if self._shares else 0
        trace = trace_of(packet.packet_id, packet.topic, packet.payload)
        verdict = self._unconfirmed.judge(trace, dup=packet.dup)
        is_doubtful = is_copy or verdict is PacketVerdict.DOUBTFUL
        if is_doubtful:
            trace = doubtful(trace)
        self._owed.append(_Owed(number, packet.packet_id, verdict is PacketVerdict.AGAIN))
        if verdict is PacketVerdict.AGAIN:
            self._unconfirmed.came_again(number, packet.packet_id)
            self._dropped.append(number)
            return None
        self._unconfirmed.written(number, trace)
        return Arrival(number, packet, trace, is_doubtful)

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
