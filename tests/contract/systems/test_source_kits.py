"""A source that is made with a kit keeps the contract of its kind, whatever goes wrong in its server."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connect_core.sdk.testing.log_sources import LogSourceCase, LogSourceContract
from connect_core.sdk.testing.memory_sources import InboxServer, LogServer, MemoryInbox, MemorySourceLog
from connect_core.sdk.testing.received import ReceivedCase, ReceivedContract


class Log(LogSourceCase):
    sparse = False

    def __init__(self, page: int = 17) -> None:
        self.server = LogServer(None, page=page)

    def source(self) -> MemorySourceLog:
        return MemorySourceLog(self.server, sparse=self.sparse)

    def append(self, values: Sequence[bytes | None]) -> None:
        self.server.append(values)

    def expire(self, records: int) -> None:
        self.server.expire(records)

    def cut(self, records: int) -> None:
        self.server.cut(records)

    def recreate(self) -> None:
        self.server.recreate()

    def remove(self) -> None:
        self.server.remove()

    def break_(self) -> None:
        self.server.away = True


class SparseLog(Log):
    sparse = True


class Inbox(ReceivedCase):
    unique = True

    def __init__(self) -> None:
        self.server = InboxServer()

    def source(self) -> MemoryInbox:
        return MemoryInbox(self.server, unique=self.unique)

    def append(self, values: Sequence[bytes | None]) -> None:
        self.server.append(values)

    def shuffle(self, seed: int) -> None:
        self.server.shuffle(seed)

    def forget(self, messages: int) -> None:
        self.server.forget(messages)


class InboxByContent(Inbox):
    """A server whose messages have no ids."""

    unique = False


class TestALog(LogSourceContract):
    idle_timeout_s = 0.05

    @pytest.fixture(params=[17, 1, 1000])
    def system(self, request: pytest.FixtureRequest) -> Log:
        return Log(page=request.param)


class TestASparseLog(LogSourceContract):
    idle_timeout_s = 0.05

    @pytest.fixture
    def system(self) -> SparseLog:
        return SparseLog()


class TestAnInbox(ReceivedContract):
    @pytest.fixture
    def system(self) -> Inbox:
        return Inbox()


class TestAnInboxByContent(ReceivedContract):
    @pytest.fixture
    def system(self) -> InboxByContent:
        return InboxByContent()
