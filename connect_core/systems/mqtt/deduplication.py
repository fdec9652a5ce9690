"""Which packets were delivered before (delivery rule 18). Pure, but for a clock. docs/mqtt-source.md draws it.

A broker sends again, in a session that it kept, what it has no acknowledgement of, under the same packet id and with
DUP set. So a packet is dropped only with DUP set and when an entry here has its id and its checksum. An entry is one of
these, by its flags (`sent`, `confirmed`):

    written         in the target; no acknowledgement was sent          `came_again` leads back to here from all three
    acknowledged    one was sent, and may not have arrived              `acknowledging`
    confirmed       the broker has it; not kept but of ids that count   `confirmed`, `all_came_again`, `not_come_again`
                    up, where the newest one shows how far they came,
                    and for a moment of others (`_lately`)

    entry under its id                   ids count up                        the lowest free id is given out
    none or confirmed, or DUP clear      DOUBTFUL at or before the newest    NEW; DOUBTFUL with the content of what may
                                         id known, else NEW                  be forgotten; with DUP as in the last row,
                                                                             or when confirmed lately with this content
    not confirmed, same content, DUP     AGAIN before anything new, the      AGAIN when it has to come next, the first
                                         first time; else DOUBTFUL           time; else DOUBTFUL
    not confirmed, other content, DUP    NEW                                 NEW; DOUBTFUL when ids tell nothing and any
                                                                             entry has this content

What an entry cannot tell is whether its acknowledgement arrived, when one was sent: then the id was free, and may stand
for another message with the same content by now. Ids that count up have not come round to it again; the lowest free id
may have: there such a packet is delivered and called doubtful. Losing is never chosen.

Not every broker keeps the ids: RabbitMQ begins with 1 over each connection, and sends again under the next ones. It is
known by what it has to send first, in order: that of which no acknowledgement was sent. Where anything else comes, an
id tells nothing any more: nothing is dropped then, nor behind acknowledgements that may not have arrived.

A broker that is killed may come back without acknowledgements that it had, or with an older count, and give an id that
was confirmed to another message with the same content. Nobody can tell these two apart, so what is confirmed is never
dropped; nor has DUP what a broker has forgotten that it sent. A ping that it has answered behind an acknowledgement
does not show that it has stored it: HiveMQ CE, killed a moment later, sends it again. When a new packet comes, all that
comes again has come: what is not confirmed and has not come is acknowledged or forgotten, and as many packets with that
content are doubtful (`_forgotten`).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

_CHECKSUM_BITS = 46
_DOUBT = 1 << _CHECKSUM_BITS
_CHECKSUM = _DOUBT - 1
_ID_SHIFT = _CHECKSUM_BITS + 1
_IDS = 65_535
_LATELY_S = 5.0
"""What was confirmed earlier is taken for stored. What a killed HiveMQ CE had forgotten was less than a second old."""


class PacketVerdict(Enum):
    NEW = auto()
    AGAIN = auto()
    DOUBTFUL = auto()
    """It may be there already, or be another message with the same topic and payload."""


def trace_of(packet_id: int, topic: bytes, payload: bytes) -> int:
    """Packet id and checksum of topic and payload as one integer, above zero and below 2^63."""
    return packet_id << _ID_SHIFT | (xxh3_64_intdigest(payload, xxh3_64_intdigest(topic)) & _CHECKSUM)


def content_of(trace: int) -> int:
    """The checksum alone."""
    return trace & _CHECKSUM


def doubtful(trace: int) -> int:
    """The trace of a record that is delivered although it may be there already."""
    return trace | _DOUBT


def is_doubtful(trace: int) -> bool:
    return bool(trace & _DOUBT)


def packet_id_of(trace: int) -> int:
    return trace >> _ID_SHIFT


class UnconfirmedRecord(NamedTuple):
    """A record in the target: the number of arrival that it is written with, its trace, whether an acknowledgement may
    have been sent since the packet came last, and whether the broker is known to have had it."""

    arrival: int
    trace: int
    sent: bool = False
    confirmed: bool = False


def left_by(settled: Iterable[UnconfirmedRecord], found: Iterable[tuple[int, int]]) -> list[UnconfirmedRecord]:
    """The entries after an attempt that died, from what was settled before it and what is in the target (numbers of
    arrival and traces): of any of them an acknowledgement may have been sent. Acknowledgements go in order, and a
    broker has ids for no more packets under way, so it has those of all but the last ones."""
    entries = [*(one._replace(sent=True) for one in settled), *(UnconfirmedRecord(*one, sent=True) for one in found)]
    return sorted(entries, key=lambda one: one.arrival)[-_IDS:]


def _is_lately(one: UnconfirmedRecord) -> bool:
    """How what was confirmed just before is stored, which nothing else is like: what is confirmed was sent."""
    return one.confirmed and not one.sent


class Deduplication:
    """The entries of one session, by packet id: of two with the same id the later one is there, since the id was free
    in between. `counts_up` says that the broker gives out ids one after the other, from one connection to the next."""

    def __init__(
        self,
        entries: Iterable[UnconfirmedRecord] = (),
        *,
        counts_up: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        ordered = sorted(entries, key=lambda one: one.arrival)
        self._clock, self._began = clock, clock()
        self._before = {packet_id_of(one.trace): one for one in ordered if _is_lately(one)}
        """What the connection before had confirmed when it ended, by id."""
        self._lately: dict[int, tuple[float, UnconfirmedRecord]] = {}
        """By id what this connection has confirmed, and when."""
        self._by_id = {packet_id_of(one.trace): one for one in ordered if not _is_lately(one)}
        self._came: dict[int, int] = {}
        """By id the number with which a packet came last over this connection."""
        self._new_came = False
        standing = sorted(self._by_id.values(), key=lambda one: one.arrival)
        self._expected = deque(packet_id_of(one.trace) for one in standing if not one.sent)
        """The ids that have to come before all others over this connection: no acknowledgement of them was sent."""
        self._contents = {one.trace & _CHECKSUM for one in ordered}
        self._in_doubt = any(one.sent for one in ordered)
        """Whether what comes again may come under other ids."""
        self._forgotten: Counter[int] | None = None
        """Contents that the broker does not know that it has sent; None before a new packet has come."""
        self._replaced: dict[int, list[tuple[int, UnconfirmedRecord]]] = {}
        """By id what stood there before, each with the number of what took its place: as long as that is not settled,
        it stands."""
        self.counts_up = counts_up
        self._newest_id: int | None = None
        for one in ordered:
            self._comes_to(packet_id_of(one.trace))

    def below(self, end: int) -> list[UnconfirmedRecord]:
        """What is to be known with the place `end`, in the order of arrival: what is not confirmed, and of the others
        the newest one, which shows how far a broker has counted."""
        written = {packet_id: one for packet_id, one in self._by_id.items() if one.arrival < end}
        ordered = sorted((written | self._replaced_at(end)).values(), key=lambda one: one.arrival)
        if not self.counts_up:
            return [*self._lately_below(end), *ordered]
        confirmed = [one for one in ordered if one.confirmed]
        newest = [one for one in confirmed if packet_id_of(one.trace) == self._newest_id] or confirmed[-1:]
        return [one for one in ordered if not one.confirmed or one in newest]

    def _lately_below(self, end: int) -> list[UnconfirmedRecord]:
        now = self._clock()
        before = self._before if now - self._began < _LATELY_S else {}
        here = {packet_id: one for packet_id, (at, one) in self._lately.items() if now - at < _LATELY_S}
        return sorted((one for one in (before | here).values() if one.arrival < end), key=lambda one: one.arrival)

    def _replaced_at(self, end: int) -> dict[int, UnconfirmedRecord]:
        return {
            packet_id: one
            for packet_id, replaced in self._replaced.items()
            for number, one in replaced
            if one.arrival < end <= number
        }

    def settled(self, end: int) -> None:
        """What was told for the place `end` is settled, and more comes over this connection: of what is confirmed the
        newest is enough."""
        kept = {packet_id_of(one.trace) for one in self.below(end)}
        self._by_id = {
            packet_id: one for packet_id, one in self._by_id.items() if packet_id in kept or one.arrival >= end
        }
        standing = {one: [pair for pair in replaced if pair[0] >= end] for one, replaced in self._replaced.items()}
        self._replaced = {packet_id: replaced for packet_id, replaced in standing.items() if replaced}

    def judge(self, trace: int, *, dup: bool) -> PacketVerdict:
        """Of a packet that has just come, in a session that the broker kept. Forgets an entry whose id is in use for
        something else: its acknowledgement has arrived.

        A broker sends again what it has to once a connection, in its order, before anything else (MQTT 5, 4.4 and 4.6).
        So an id that comes a second time over it stands for another message, and of ids that count up one that comes
        behind something new; Mosquitto may set DUP on what it could not send before, and there may be more of that than
        there are ids. With the same content it is doubtful."""
        packet_id = packet_id_of(trace)
        entry = self._by_id.get(packet_id)
        if entry and entry.confirmed:
            entry = None
        same = entry is not None and dup and not (entry.trace ^ trace) & _CHECKSUM
        if not dup and self._forgotten is None:
            self._forgotten = self._missing()
        expected = self._comes_as_expected(packet_id, same=same)
        if (entry is None or not dup) and self._was_there(packet_id):
            self._new_came = self._new_came or not dup
            return PacketVerdict.DOUBTFUL
        if not same:
            return self._of_another(trace, dup=dup)
        may_be_free = self._new_came if self.counts_up else not expected
        return PacketVerdict.DOUBTFUL if may_be_free or packet_id in self._came else PacketVerdict.AGAIN

    def _comes_as_expected(self, packet_id: int, *, same: bool) -> bool:
        """Whether it is what the broker has to send now, if it keeps its ids. When not, whatever has not come yet may
        come under any id, now or over the next connection."""
        if self.counts_up or not self._expected:
            return False
        if same and packet_id == self._expected[0]:
            self._expected.popleft()
            return True
        self._expected.clear()
        self._in_doubt = True
        self.acknowledging([one for one, _ in self._not_come()])
        return False

    def _missing(self) -> Counter[int]:
        """The contents of what would have come before anything new, but for acknowledgements that were sent and are not
        confirmed. They have arrived, or else the broker has forgotten that it sent this. Of ids that count up their own
        order tells more."""
        if self.counts_up:
            return Counter()
        return Counter(one.trace & _CHECKSUM for _, one in self._not_come())

    def _of_another(self, trace: int, *, dup: bool) -> PacketVerdict:
        """Of a packet that is not what was written under its id."""
        in_doubt, content = self._in_doubt and not self.counts_up, trace & _CHECKSUM
        if in_doubt and dup and content in self._contents:
            return PacketVerdict.DOUBTFUL
        if dup and self._was_confirmed_lately(trace):
            return PacketVerdict.DOUBTFUL
        if not dup and self._forgotten and self._forgotten[content]:
            self._forgotten[content] -= 1
            self._new_came = True
            return PacketVerdict.DOUBTFUL
        if not in_doubt:
            self._by_id.pop(packet_id_of(trace), None)
        self._new_came = True
        return PacketVerdict.NEW

    def _was_confirmed_lately(self, trace: int) -> bool:
        before = None if self.counts_up else self._before.get(packet_id_of(trace))
        return before is not None and not (before.trace ^ trace) & _CHECKSUM

    def _was_there(self, packet_id: int) -> bool:
        """Whether a broker that counts up has given out the id already: it is not behind the newest known."""
        if not self.counts_up or self._newest_id is None:
            return False
        return (self._newest_id - packet_id) % _IDS < _IDS // 2

    def _comes_to(self, packet_id: int) -> None:
        """A broker that has lost count comes to the newest id again later."""
        if not self._was_there(packet_id):
            self._newest_id = packet_id

    def written(self, number: int, trace: int) -> None:
        """The record is handed to the target."""
        packet_id = packet_id_of(trace)
        self._comes_to(packet_id)
        if entry := self._by_id.get(packet_id):
            self._replaced.setdefault(packet_id, []).append((number, entry))
        self._by_id[packet_id] = UnconfirmedRecord(number, trace)
        self._came[packet_id] = number

    def came_again(self, number: int, packet_id: int) -> None:
        """The broker has no acknowledgement of it, whatever was sent. The record keeps the number that it is written
        with: that may be all that is settled of this connection."""
        self._comes_to(packet_id)
        self._by_id[packet_id] = self._by_id[packet_id]._replace(sent=False, confirmed=False)
        self._came[packet_id] = number

    def acknowledging(self, packet_ids: Iterable[int]) -> None:
        """Their acknowledgements are about to be sent."""
        for packet_id in packet_ids:
            if entry := self._by_id.get(packet_id):
                self._by_id[packet_id] = entry._replace(sent=True)

    def confirmed(self, arrivals: Sequence[tuple[int, int]]) -> None:
        """The broker has the acknowledgements of these packets, named by id and the number that they came with."""
        for packet_id, number in arrivals:
            if (entry := self._by_id.get(packet_id)) and self._came.get(packet_id) == number:
                self._confirm(packet_id, entry)
                self._lately[packet_id] = (self._clock(), entry._replace(sent=False, confirmed=True))

    def all_came_again(self, *, all_settled: bool) -> None:
        """A new packet has come over this connection, so whatever was to be sent again was: the broker had the
        acknowledgements of the others. In doubt they may have come under other ids, and count until that is settled."""
        if self._in_doubt and not (self.counts_up or all_settled):
            return
        for packet_id, entry in [one for one in self._by_id.items() if one[0] not in self._came]:
            self._confirm(packet_id, entry)

    def _confirm(self, packet_id: int, entry: UnconfirmedRecord) -> None:
        if self.counts_up:
            self._by_id[packet_id] = UnconfirmedRecord(entry.arrival, entry.trace, sent=True, confirmed=True)
        else:
            del self._by_id[packet_id]

    def not_come_again(self, number: int) -> int:
        """How many entries are not known to be acknowledged and have not come over this connection. In a shared
        subscription another member may have them, under ids of its own. They count once, with `number`."""
        missing = self._not_come()
        for packet_id, entry in missing:
            self._replaced.setdefault(packet_id, []).append((number, entry))
            self._confirm(packet_id, entry)
        return len(missing)

    def _not_come(self) -> list[tuple[int, UnconfirmedRecord]]:
        return [(one, entry) for one, entry in self._by_id.items() if one not in self._came and not entry.confirmed]
