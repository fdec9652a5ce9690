"""The messages of one connection, without I/O: they get numbers, those that are in the target already are recognised,
and acknowledgements become due.

Every message gets a number, also one that is sent again and dropped: it moves the position, and is settled. A record
that is written is an *entry*: the number of arrival that it is written with, and its *trace*, a hash of the message's
key. The trace travels in the target with the coordinates, so that `scan` brings it back.
"""

from __future__ import annotations

import base64
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from connect_core.sdk.batches import record_batch
from connect_core.sdk.records import Record
from connect_core.sdk.values import Json, SourceBatch

_DOUBT = 1
_SENT, _CONFIRMED = 1, 2
_COLUMNS = 3  # number of arrival, trace, flags
_MOST_ENTRIES = 65_536


class Message(NamedTuple):
    """What a server has sent. `key` is by what it is recognised when it is sent again. `again` says that the server
    itself calls it sent before; only needed where keys are not `unique`."""

    record: Record
    key: str | bytes
    again: bool = False


@dataclass
class ArrivedRecord:
    """A record that was written. `sent`: its acknowledgement may have been sent since the message came last.
    `confirmed`: the server has it."""

    arrival: int
    trace: int
    sent: bool = False
    confirmed: bool = False

    @property
    def key(self) -> int:
        return self.trace & ~_DOUBT


class _Verdict(Enum):
    NEW = auto()
    AGAIN = auto()
    DOUBTFUL = auto()
    """It may be in the target already, or be another message with the same key."""


class Arrivals:
    """`begin` is the number of the next message, `entries` are those of the position. `window` is the most messages
    without acknowledgement. `unique` says that no two messages have the same key."""

    def __init__(self, begin: int, entries: Iterable[ArrivedRecord], *, unique: bool, window: int) -> None:
        self.next = self._begin = self._durable = begin
        self._unique, self._window = unique, window
        self._entries: dict[int, list[ArrivedRecord]] = {}
        for entry in entries:
            self._entries.setdefault(entry.key, []).append(replace(entry))
        self._came: set[int] = set()
        """The numbers of the entries from before this connection whose messages came again."""
        self._owed: deque[ArrivedRecord] = deque()
        """Of each message without acknowledgement, in the order in which they came, the entry that must be durable."""
        self._unconfirmed: list[ArrivedRecord] = []
        self._upto = 0

    def take(self, messages: Sequence[Message]) -> SourceBatch:
        """Those that are records. The numbers of the others are holes."""
        first = self.next
        taken = [(number, one, self._entry(number, one)) for number, one in enumerate(messages, first)]
        self.next += len(messages)
        rows = [(number, one.record, entry.trace) for number, one, entry in taken if entry.arrival == number]
        dropped = [number for number, _, entry in taken if entry.arrival != number]
        return SourceBatch(
            record_batch([row[1] for row in rows], [row[0] for row in rows], [row[2] for row in rows]),
            self.next,
            tuple((number, number + 1) for number in dropped),
            doubtful=tuple(number for number, _, trace in rows if is_doubtful(trace)),
        )

    def room(self) -> int:
        """How many more messages may come before some are acknowledged."""
        return self._window - len(self._owed)

    def durable(self, end: int) -> None:
        """Everything with a number below `end` is in the target for good."""
        self._durable = max(self._durable, end)

    def due(self) -> int:
        """How many messages of this connection, counted from its first one, are to be acknowledged now; 0 where that is
        none that was not before. They count as sent from here on."""
        before = self._upto
        while self._owed and self._owed[0].arrival < self._durable:
            entry = self._owed.popleft()
            entry.sent = True
            self._unconfirmed.append(entry)
            self._upto += 1
        return self._upto if self._upto > before else 0

    def confirmed(self) -> None:
        """The server has what was due."""
        for entry in self._unconfirmed:
            entry.confirmed = True
        self._unconfirmed = []

    def evidence(self, end: int) -> Json:
        """What is settled with the place `end`."""
        below = [one for some in self._entries.values() for one in some if one.arrival < end]
        return evidence_of(below, self._window)

    def _entry(self, number: int, message: Message) -> ArrivedRecord:
        """A new one for a record; the one that is in the target for a message that is dropped."""
        trace = trace_of(message.key)
        known = self._entries.get(trace, [])
        verdict, entry = self._judge(known, message)
        if entry is not None and verdict is _Verdict.AGAIN:
            self._came.add(entry.arrival)
            entry.sent = entry.confirmed = False  # the server has no acknowledgement, whatever was sent
        else:
            entry = ArrivedRecord(number, trace | (_DOUBT if verdict is _Verdict.DOUBTFUL else 0))
            self._entries.setdefault(trace, []).append(entry)
        self._owed.append(entry)
        return entry

    def _judge(self, known: Sequence[ArrivedRecord], message: Message) -> tuple[_Verdict, ArrivedRecord | None]:
        """A key that is not unique drops a message only where the server calls it sent again, and one with this key is
        in the target of which no acknowledgement was ever sent: that one comes again for certain. In every doubt the
        message is delivered, and counted."""
        if not known or not (self._unique or message.again):
            return _Verdict.NEW, None
        if self._unique:
            return _Verdict.AGAIN, known[0]
        sure = [one for one in known if one.arrival < self._begin and not one.sent and one.arrival not in self._came]
        return (_Verdict.AGAIN, sure[0]) if sure else (_Verdict.DOUBTFUL, None)


def trace_of(key: str | bytes) -> int:
    """Above zero and below 2^63; the lowest bit is left for doubt."""
    return (xxh3_64_intdigest(key.encode() if isinstance(key, str) else key) >> 2 or 1) << 1


def is_doubtful(trace: int) -> bool:
    """Whether a record was delivered although it may have been there already."""
    return bool(trace & _DOUBT)


def left_by(settled: Iterable[ArrivedRecord], found: Sequence[tuple[int, int]], window: int) -> list[ArrivedRecord]:
    """The entries after an attempt that died, from those settled before it and what is in the target (numbers of
    arrival and traces). Any of them may have been acknowledged. All but the last `window` were: no more were under
    way."""
    earlier = [ArrivedRecord(one.arrival, one.trace, sent=True, confirmed=one.confirmed) for one in settled]
    return [*earlier, *(ArrivedRecord(*one, sent=True) for one in found[-window:])]


def evidence_of(entries: Iterable[ArrivedRecord], window: int) -> Json:
    """Keeps what is not known to be acknowledged, and of the others the newest `window`: a server may forget
    acknowledgements."""
    ordered = sorted(entries, key=lambda one: one.arrival)
    confirmed = [one.arrival for one in ordered if one.confirmed][-window:]
    kept = [one for one in ordered if not one.confirmed or one.arrival >= confirmed[0]][-_MOST_ENTRIES:]
    rows = np.array([(one.arrival, one.trace, one.sent * _SENT + one.confirmed * _CONFIRMED) for one in kept], np.int64)
    return {"entries": base64.b64encode(zlib.compress(rows.tobytes())).decode()} if kept else {}


def entries_in(evidence: Json) -> list[ArrivedRecord]:
    """None of a position that was never read, or that a person has set."""
    if "entries" not in evidence:
        return []
    stored = zlib.decompress(base64.b64decode(evidence["entries"]))
    rows = np.frombuffer(stored, dtype=np.int64).reshape(-1, _COLUMNS).tolist()
    return [
        ArrivedRecord(arrival, trace, bool(flags & _SENT), bool(flags & _CONFIRMED)) for arrival, trace, flags in rows
    ]
