"""Servers in memory that a source reads, one for each kit, with all that can go wrong in them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from connect_core import clock
from connect_core.errors import Unreachable
from connect_core.sdk.kits.log_source import Ends, Fetched, LogSource
from connect_core.sdk.kits.received import Message, ReceivedSource
from connect_core.sdk.records import Record


@dataclass
class LogServer:
    """One log: values by offset, and where it ends; without values where it was removed. `page` is the most records of
    one answer."""

    values: dict[int, bytes | None] | None = field(default_factory=dict)
    begin: int = 0
    end: int = 0
    name: str = ""
    page: int = 17
    away: bool = False
    """It does not answer."""

    def append(self, values: Sequence[bytes | None]) -> None:
        if self.values is None:
            self.recreate()
        assert self.values is not None
        self.values |= dict(enumerate(values, self.end))
        self.end += len(values)

    def expire(self, records: int) -> None:
        """The oldest ones."""
        self.begin += records

    def cut(self, records: int) -> None:
        """The newest ones are lost."""
        self.end -= records

    def recreate(self, name: str = "") -> None:
        """It is deleted, and made anew without a record."""
        self.values, self.begin, self.end, self.name = {}, 0, 0, name

    def remove(self) -> None:
        self.values = None

    def drop(self, *offsets: int) -> None:
        """As compaction does, or a damaged disk."""
        for offset in offsets:
            del (self.values or {})[offset]


class MemorySourceLog(LogSource):
    every_s = 0.01

    def __init__(self, server: LogServer, *, sparse: bool = False) -> None:
        super().__init__()
        self._server, self.sparse = server, sparse

    def logs(self, known: Sequence[str]) -> Sequence[str]:
        return ["log"]

    def ends(self, log: str) -> Ends | None:
        server = self._reached()
        return None if server.values is None else Ends(server.begin, server.end, server.name)

    def fetch(self, log: str, begin: int, end: int) -> Fetched:
        server = self._reached()
        values = server.values or {}
        readable = range(max(begin, server.begin), min(end, server.end))
        there = ((offset, Record(values[offset])) for offset in readable if offset in values)
        page = [*islice(there, server.page)]
        return Fetched(page, page[-1][0] + 1 if len(page) == server.page else max(readable.stop, begin))

    def _reached(self) -> LogServer:
        if self._server.away:
            raise Unreachable("The server does not answer", where="memory")
        return self._server


@dataclass
class InboxServer:
    """Messages by key: it sends again whatever was not acknowledged. Where it has no ids, the key is the content."""

    waiting: list[tuple[str, bytes | None]] = field(default_factory=list)
    acknowledged: list[tuple[str, bytes | None]] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    """Ids of those that were sent before."""
    count: int = 0

    def append(self, values: Sequence[bytes | None]) -> None:
        self.waiting += [(f"id {number}", value) for number, value in enumerate(values, self.count)]
        self.count += len(values)

    def shuffle(self, seed: int) -> None:
        """It sends what is waiting in another order."""
        random.Random(seed).shuffle(self.waiting)

    def forget(self, messages: int) -> None:
        """That the newest ones were acknowledged: as a server does that is killed."""
        kept = max(len(self.acknowledged) - messages, 0)
        self.waiting = self.acknowledged[kept:] + self.waiting
        self.acknowledged = self.acknowledged[:kept]


class MemoryInbox(ReceivedSource):
    window = 20

    def __init__(self, server: InboxServer, *, unique: bool = True) -> None:
        super().__init__()
        self._server, self.unique = server, unique

    @contextmanager
    def connect(self, name: str) -> Iterator[_Line]:
        yield _Line(self._server, unique=self.unique)


class _Line:
    def __init__(self, server: InboxServer, *, unique: bool) -> None:
        self._server, self._unique = server, unique
        self._given: list[tuple[str, bytes | None]] = []

    def receive(self, most: int, limit_s: float) -> Sequence[Message]:
        server = self._server
        given = {*self._given}
        come = [*islice((one for one in server.waiting if one not in given), min(most, 7))]
        if not come:
            clock.sleep(min(limit_s, 0.005))
        self._given += come
        messages = [
            Message(Record(one[1]), one[0] if self._unique else one[1] or b"", one[0] in server.sent) for one in come
        ]
        server.sent |= {one[0] for one in come}
        return messages

    def acknowledge(self, upto: int) -> None:
        done, waiting = self._given[:upto], {*self._server.waiting}
        self._server.acknowledged += [one for one in done if one in waiting]
        left = waiting - {*done}
        self._server.waiting = [one for one in self._server.waiting if one in left]
