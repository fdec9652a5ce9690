"""What was written and is not known to be acknowledged: by this a packet that is sent again is told from a new one
(delivery rule 18). Pure.

A broker sends again, in a session that it kept, what it has no acknowledgement of, under the same packet id and with
DUP set. So a packet is dropped only with DUP set and when an entry here has its id and its checksum. What an entry
cannot tell is whether its acknowledgement arrived, when one was sent: then the id was free, and may stand for another
message with the same content by now. A broker that counts its ids up has not come round to it again; one that gives out
the lowest free id may have: there, such a packet is delivered and called doubtful. Losing is never chosen.

A broker that is killed may come back without acknowledgements that it had. Of one that counts ids up the last entries
are kept for that, confirmed or not; what it sends again from before them is doubtful too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

_CHECKSUM_BITS = 46
_DOUBT = 1 << _CHECKSUM_BITS
_CHECKSUM = _DOUBT - 1
_ID_SHIFT = _CHECKSUM_BITS + 1
KEPT = 256
"""So many entries that are confirmed are kept, of a broker that counts ids up."""
_IDS = 65_535


class Verdict(Enum):
    NEW = auto()
    AGAIN = auto()
    DOUBTFUL = auto()
    """It may be there already, or be another message with the same topic and payload."""


def trace_of(packet_id: int, topic: bytes, payload: bytes) -> int:
    """Packet id and checksum of topic and payload as one integer, above zero and below 2^63."""
    return packet_id << _ID_SHIFT | (xxh3_64_intdigest(payload, xxh3_64_intdigest(topic)) & _CHECKSUM)


def doubtful(trace: int) -> int:
    """The trace of a record that is delivered although it may be there already."""
    return trace | _DOUBT


def is_doubtful(trace: int) -> bool:
    return bool(trace & _DOUBT)


def packet_id_of(trace: int) -> int:
    return trace >> _ID_SHIFT


class Entry(NamedTuple):
    """A record in the target: its number of arrival, its trace, whether an acknowledgement may have been sent, and
    whether the broker is known to have had it."""

    arrival: int
    trace: int
    sent: bool = False
    confirmed: bool = False


class Unconfirmed:
    """The entries of one session, by packet id: of two with the same id the later one is there, since the id was free
    in between. `counts_up` says that the broker gives out ids one after the other."""

    def __init__(self, entries: Iterable[Entry] = (), *, counts_up: bool = False) -> None:
        ordered = sorted(entries, key=lambda one: one.arrival)
        self._by_id = {packet_id_of(one.trace): one for one in ordered}
        self._newest_id = packet_id_of(ordered[-1].trace) if ordered else None
        self.counts_up = counts_up

    def __iter__(self) -> Iterator[Entry]:
        """In the order of arrival."""
        ordered = sorted(self._by_id.values(), key=lambda one: one.arrival)
        kept = [one.arrival for one in ordered if one.confirmed][-KEPT:] if self.counts_up else []
        return (one for one in ordered if not one.confirmed or (kept and one.arrival >= kept[0]))

    def __len__(self) -> int:
        return len(self._by_id)

    def judge(self, trace: int, *, dup: bool, number: int, begin: int) -> Verdict:
        """Of a packet that has just come as `number`, in a session that the broker kept, over a connection whose first
        one was `begin`. Forgets an entry whose id is in use for something else: its acknowledgement has arrived.

        A broker sends again once a connection and first of all (MQTT 5, section 4.4). So an id that comes a second time
        over it, or when half of all ids have, stands for another message, though Mosquitto may set DUP on one that it
        could not send before: with the same content it is doubtful."""
        entry = self._by_id.get(packet_id_of(trace))
        if entry is None:
            return Verdict.DOUBTFUL if dup and self._was_there(packet_id_of(trace)) else Verdict.NEW
        if not dup or (entry.trace ^ trace) & _CHECKSUM:
            del self._by_id[packet_id_of(trace)]
            return Verdict.NEW
        too_late = entry.arrival >= begin or number - begin > _IDS // 2
        return Verdict.DOUBTFUL if too_late or (entry.sent and not self.counts_up) else Verdict.AGAIN

    def _was_there(self, packet_id: int) -> bool:
        """Whether a broker that counts up has given out the id before the newest one that is known: it came, and was
        confirmed so long ago that nothing is known of it any more."""
        if not self.counts_up or self._newest_id is None:
            return False
        return (self._newest_id - packet_id) % _IDS < _IDS // 2

    def written(self, arrival: int, trace: int) -> None:
        """The record is handed to the target; also when it was AGAIN, under the number that it came with this time."""
        self._newest_id = packet_id_of(trace)
        self._by_id[self._newest_id] = Entry(arrival, trace)

    def acknowledging(self, packet_ids: Iterable[int]) -> None:
        """Their acknowledgements are about to be sent."""
        for packet_id in packet_ids:
            if entry := self._by_id.get(packet_id):
                self._by_id[packet_id] = entry._replace(sent=True)

    def confirmed(self, arrivals: Sequence[tuple[int, int]]) -> None:
        """The broker has the acknowledgements of these packets, named by id and number of arrival."""
        for packet_id, arrival in arrivals:
            if (entry := self._by_id.get(packet_id)) and entry.arrival == arrival:
                self._confirm(packet_id, entry)

    def all_came_again(self, before: int) -> None:
        """A new packet has come over this connection, so whatever was to be sent again was: the broker had the
        acknowledgements of the others that came `before` that number."""
        for packet_id, entry in list(self._by_id.items()):
            if entry.arrival < before and not entry.confirmed:
                self._confirm(packet_id, entry)

    def _confirm(self, packet_id: int, entry: Entry) -> None:
        if self.counts_up:
            self._by_id[packet_id] = Entry(entry.arrival, entry.trace, sent=True, confirmed=True)
        else:
            del self._by_id[packet_id]

    def not_come_again(self, before: int) -> int:
        """How many entries that came `before` that number are not known to be acknowledged and have not come again. In
        a shared subscription another member may have them, under ids of its own. They count once."""
        missing = [one for one in self._by_id.values() if one.arrival < before and not one.confirmed]
        for one in missing:
            self._confirm(packet_id_of(one.trace), one)
        return len(missing)


def left_by(settled: Iterable[Entry], found: Iterable[tuple[int, int]], window: int) -> list[Entry]:
    """The entries after an attempt that died, from what was settled before it and what is in the target (numbers of
    arrival and traces): of any of them an acknowledgement may have been sent. A broker keeps at most `window` packets
    of a session under way, and acknowledgements go in order, so it has those of all but the last ones."""
    entries = [*(one._replace(sent=True) for one in settled), *(Entry(*one, sent=True) for one in found)]
    return sorted(entries, key=lambda one: one.arrival)[-window:]
