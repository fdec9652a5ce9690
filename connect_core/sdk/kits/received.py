"""A source that pushes: a queue whose messages are acknowledged, a webhook that answers when it is told to.

It has no offsets. Messages are numbered as they arrive, and acknowledged when they are in the target for good. What
recognises one that is sent again, and when one is delivered twice rather than lost: `arrivals`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from typing import Protocol

from connect_core import clock
from connect_core.errors import ConfigError, Failure, WaybillError
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits.arrivals import Arrivals, Message, entries_in, evidence_of, is_doubtful, left_by
from connect_core.sdk.kits.contract import perform
from connect_core.sdk.kits.one_partition import failure_of_one
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.source import Followed, Recovered
from connect_core.sdk.values import Bounds, Json, Limit, Position, Range, SourceBatch

__all__ = ["Message", "ReceivedConnection", "ReceivedSource"]

_LOOK_S = 0.1
"""So long a quantum waits for one message at a time, so that it sees when it is over."""


class ReceivedConnection(Protocol):
    """The author's way to the server, an object of its own. Each method raises Unreachable when the server does not
    answer."""

    def receive(self, most: int, limit_s: float) -> Sequence[Message]:
        """What has come, in order, at most `most` messages. Waits up to `limit_s` for the first one. What is given out
        here and not acknowledged over this connection must come again over a later one."""

    def acknowledge(self, upto: int) -> None:
        """The first `upto` messages that came over this connection are in the target for good. Returns when the server
        has the acknowledgements."""


class ReceivedSource(ABC):
    """A `sdk.source.PushSource`. A partition is whatever is connected to by itself; there is one unless `names` says
    otherwise. Only `connect` is abstract.

    Guarantee: exactly once into a sink that can tell which records it holds, where keys are unique, and where the
    server sends again what it has no acknowledgement of. A server that forgets acknowledgements may forget the last
    `window` of them.

    Keys that are not unique, such as a digest of the content: a message that may be in the target already is delivered,
    and counted as a possible duplicate. It is dropped only where the server says that it was sent before, and one with
    this key was written of which no acknowledgement was ever sent. Condition: nobody else reads the queue and nothing
    in it expires; otherwise one of two equal messages may be taken for the other.
    """

    guarantee = Guarantee(
        "exactly once",
        (
            "The sink can tell which records it holds.",
            "No two messages have the same key.",
            "The server sends again what it has no acknowledgement of.",
        ),
    )
    unique = True
    """Whether no two messages have the same key."""
    window = 1_000
    """The most messages without acknowledgement. Of a sink that cannot tell which records it holds a quantum moves no
    more than this."""

    def __init__(self) -> None:
        self._inboxes: dict[Partition, _Inbox] = {}
        """The newest one of each partition."""

    def names(self) -> Sequence[str]:
        """What is received, each by itself."""
        return ("all",)

    @abstractmethod
    def connect(self, name: str) -> AbstractContextManager[ReceivedConnection]:
        """Worker: opens the way for one quantum. Raises Unreachable when the server does not answer."""

    # ------------------------------------------------------------------------------------------ `sdk.source.PushSource`

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return [Partition(name) for name in self.names()]

    def topic(self, partition: Partition) -> str:
        """Each record has its own, or none."""
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return {partition: _bounds(at or Position(0, 0)) for partition, at in known.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise _no_history()

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        raise _no_history()

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        raise _no_history()

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Only a worker that follows learns whether something has come."""
        clock.sleep(limit_s)

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """The worker has acknowledged what is durable."""
        return

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """Looks once even when connecting took the whole quantum."""
        with ExitStack() as opened:
            inboxes, failed = self._opened(wanted, opened)
            yield from failed
            started, came_at = clock.monotonic(), None
            over = not inboxes
            while not over:
                wait_s = min(max(limit.quantum_left_s(), 0), _LOOK_S) / len(inboxes)
                for inbox in [*inboxes]:
                    batch = inbox.received(wait_s)
                    if isinstance(batch, Failure):
                        inboxes.remove(inbox)
                        yield inbox.wanted, batch
                    elif batch is not None:
                        yield inbox.wanted, batch
                        inbox.acknowledge()
                        came_at = clock.monotonic()
                silent_s = clock.monotonic() - (started if came_at is None else came_at)
                silent = silent_s >= (limit.first_record_timeout_s if came_at is None else idle_timeout_s)
                over = silent or limit.quantum_left_s() <= 0 or all(inbox.is_full() for inbox in inboxes)

    def acknowledge(self, wanted: Range, end: int) -> None:
        self._inboxes[wanted.partition].durable(end)

    def evidence(self, wanted: Range, end: int) -> Json:
        return self._inboxes[wanted.partition].arrivals.evidence(end)

    def recovered(self, wanted: Range, found: ScanResult) -> Recovered:
        traced = found.traced()
        left = left_by(entries_in(wanted.evidence), traced, self.window)
        return Recovered(evidence_of(left, self.window), sum(is_doubtful(trace) for _, trace in traced))

    def _opened(self, wanted: Sequence[Range], opened: ExitStack) -> tuple[list[_Inbox], list[Followed]]:
        """A connection for each range, and what keeps some of them from it."""
        inboxes: list[_Inbox] = []
        failed: list[Followed] = []
        for one in wanted:
            entries = entries_in(one.evidence)
            arrivals = Arrivals(one.begin, entries, unique=self.unique, window=self.window)
            try:
                connection = opened.enter_context(self.connect(one.partition.key))
            except WaybillError as error:
                failed.append((one, failure_of_one(error)))
                continue
            inboxes.append(_Inbox(one, connection, arrivals))
        self._inboxes |= {inbox.wanted.partition: inbox for inbox in inboxes}
        return inboxes, failed


class _Inbox:
    """One connection in one quantum."""

    def __init__(self, wanted: Range, connection: ReceivedConnection, arrivals: Arrivals) -> None:
        self.wanted, self._connection, self.arrivals = wanted, connection, arrivals
        self._lost: WaybillError | None = None
        """Why an acknowledgement could not be sent: nobody knows whether the server has it."""

    def received(self, limit_s: float) -> SourceBatch | Failure | None:
        try:
            if self._lost:
                raise self._lost
            messages = () if self.is_full() else self._connection.receive(self.arrivals.room(), limit_s)
        except WaybillError as error:
            return failure_of_one(error)
        return self.arrivals.take(messages) if messages else None

    def is_full(self) -> bool:
        return self.arrivals.room() <= 0

    def durable(self, end: int) -> None:
        self.arrivals.durable(end)
        self.acknowledge()

    def acknowledge(self) -> None:
        """What is due. An error waits for the next look at the connection: what is durable is settled first."""
        if self._lost is not None or not (upto := self.arrivals.due()):
            return
        try:
            perform(self._connection.acknowledge, upto)
            self.arrivals.confirmed()
        except WaybillError as error:
            self._lost = error


def _bounds(at: Position) -> Bounds:
    return Bounds(at.incarnation, at.offset, at.offset, at.offset, evidence=at.evidence, pushes=True)


def _no_history() -> ConfigError:
    return ConfigError(
        "A source that pushes cannot give records again, so there is no backfill and no replay from it",
        next_step="Replay from the target, where they are",
    )
