"""Reads a range of one queue in order, keeps the next pull under way while the caller works on the last answer, and
accounts for every offset: what was not there is reported as a value, never passed over.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass

from connect_core.errors import OffsetGone, WireFormatError
from connect_core.rocketmq.backoff import Backoff
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.errors import BrokerBusy, BrokerFault
from connect_core.rocketmq.network import Network
from connect_core.rocketmq.pulling import MAX_MESSAGES, PullAnswer, PullStatus, PullUnderWay, start_pull
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.wire.stored_message import StoredMessage, decode_messages

UNBOUNDED = sys.maxsize
SUSPEND_S = 15.0
HOLE = "no message has these offsets"
_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class MissingRange:
    """Offsets `begin` (included) to `end` (excluded) hold no message that can be read; `cause` is for people."""

    begin: int
    end: int
    cause: str


@dataclass(frozen=True, slots=True)
class QueueSlice:
    """The next part of a queue: every offset of [`begin`, `end`) is in `messages` or in `missing`, both in order.

    Empty (`begin == end`) only from a following reader, when nothing came for a while.
    """

    begin: int
    end: int
    messages: list[StoredMessage]
    missing: tuple[MissingRange, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredSlice:
    """The next part of a queue as the broker has it: every message of [`begin`, `end`) is in `data`, as stored (decode
    with `wire.stored_message`); offsets outside may be in it too. Without data `cause` says why (empty: nothing came
    for a while)."""

    begin: int
    end: int
    data: memoryview
    cause: str = ""


class QueueReader:
    """Iterates over slices, or over `stored` ones for who decodes in his own way. Made by `Client.read` and
    `Client.follow`; used by one thread, once.

    Ends at `end`, at the deadline, or (unless it follows) at the end of the queue, whichever comes first; `position`
    then says where: it is the next offset to read. `queue_end` is the end of the queue as the last answer told it.
    Raises `OffsetGone` when the queue ends before the position that is to be read: it was truncated or created anew. A
    busy broker is asked again until the deadline; `BrokerBusy` is raised when it was for long then, and nothing had
    come before.
    """

    def __init__(
        self,
        network: Network,
        queue: Queue,
        begin: int,
        end: int,
        *,
        deadline: float,
        group: str,
        idle_timeout_s: float = 0.0,
    ) -> None:
        """`idle_timeout_s` makes it follow: after that long without messages it gives an empty slice, and goes on."""
        self.queue = queue
        self.position = begin
        self.queue_end = -1
        self.rests_until = -math.inf
        """When the broker may be asked again (monotonic): it has said that it is busy."""
        self._begin = begin
        self._network = network
        self._end = end
        self._deadline = deadline
        self._group = group
        self._idle_timeout_s = idle_timeout_s
        self._under_way: PullUnderWay | None = None
        self._ahead = False
        self._backoff = Backoff(deadline)
        self._busy: BrokerBusy | None = None
        """What the broker said last, when that was that it is busy."""
        self._reset_seen = False

    def __iter__(self) -> Generator[QueueSlice, None, None]:
        for part in self.stored():
            yield self._decoded(part)

    def stored(self) -> Generator[StoredSlice, None, None]:
        """The slices before anything of them is decoded."""
        try:
            while self.position < self._end and time.monotonic() < self._deadline:
                answer = self._next_answer()
                if not self._idle_timeout_s and (answer is None or answer.status is PullStatus.CAUGHT_UP):
                    return
                if answer is None:
                    yield StoredSlice(self.position, self.position, _NOTHING)
                elif answer.status not in (PullStatus.CAUGHT_UP, PullStatus.RESET):
                    self.position = min(answer.header.next_offset, self._end)
                    yield _stored(answer, self.position)
        finally:
            self.give_up()

    def arrived(self) -> StoredSlice | None:
        """The next part when it has come by now; else None, and a pull for it is under way. For who follows several
        queues at once: `wait_for_any` says when it is worth asking again."""
        if self.position >= self._end:
            return None
        answer = self._arrived_answer()
        if answer is None:
            return None
        self._check(answer)
        if answer.status in (PullStatus.CAUGHT_UP, PullStatus.RESET):
            self.pull()
            return None
        self.position = min(answer.header.next_offset, self._end)
        if answer.status is PullStatus.FOUND and self.position < self._end:
            self.pull()
        return _stored(answer, self.position)

    def pull(self) -> PullUnderWay:
        """The pull that is under way for `position`; begun when there was none."""
        if self._under_way is None:
            self._under_way = self._start(self.position)
        return self._under_way

    def give_up(self) -> None:
        """Nobody waits for the pull that is under way any more."""
        if self._under_way is not None:
            self._under_way.give_up()
        self._under_way = None

    def _arrived_answer(self) -> PullAnswer | None:
        if time.monotonic() < self.rests_until:
            return None
        under_way = self.pull()
        return self._take_answer(under_way) if under_way.wait(0.0) else None

    def _next_answer(self) -> PullAnswer | None:
        """The answer for `position`, the next pull already under way; None when it is not there after the idle
        timeout or at the deadline."""
        if self._ahead and self._under_way is not None:
            self._under_way.postpone()
        self._ahead = False
        answer = None
        while answer is None:
            wake_up = self._wake_up()
            if not self._rest(wake_up):
                return None
            under_way = self.pull()
            if not under_way.wait(wake_up):
                self._check_gets_somewhere()
                return None
            answer = self._take_answer(under_way)
        self._check(answer)
        next_offset = answer.header.next_offset
        if answer.status is PullStatus.FOUND and next_offset < self._end:
            self._under_way = self._start(next_offset)
            self._ahead = True
        return answer

    def _wake_up(self) -> float:
        return min(time.monotonic() + self._idle_timeout_s, self._deadline) if self._idle_timeout_s else self._deadline

    def _rest(self, until: float) -> bool:
        """Leaves a busy broker alone; False when that moment comes before it may be asked again."""
        time.sleep(max(min(self.rests_until, until) - time.monotonic(), 0.0))
        return self.rests_until < until

    def _take_answer(self, under_way: PullUnderWay) -> PullAnswer | None:
        """None when the broker is busy, and left alone for a while."""
        self._under_way = None
        try:
            answer = under_way.answer()
        except BrokerBusy as busy:
            self._busy, self.rests_until = busy, self._backoff.again_at()
            self._check_gets_somewhere()
            return None
        self._busy, self._backoff = None, Backoff(self._deadline)
        return answer

    def _check_gets_somewhere(self) -> None:
        """Raises at the deadline when the broker has said for long that it is busy, and nothing came before. Otherwise
        a deadline at which it is busy is like any other: it ends what had come."""
        if self._busy is None or self._backoff.brief or self.position > self._begin:
            return
        if max(self.rests_until, time.monotonic()) >= self._deadline:
            raise self._busy

    def _start(self, offset: int) -> PullUnderWay:
        return start_pull(
            self._network,
            self.queue,
            offset,
            group=self._group,
            max_messages=min(MAX_MESSAGES, self._end - offset),
            suspend_s=SUSPEND_S if self._idle_timeout_s else 0.0,
        )

    def _check(self, answer: PullAnswer) -> None:
        """Raises when reading cannot go on from this answer."""
        where = f"{self.queue} at {answer.offset}"
        self.queue_end = answer.header.end
        if answer.status is PullStatus.TOO_LARGE:
            raise OffsetGone(
                f"The queue ends at {answer.header.end}, before the offset that is to be read",
                where=where,
                next_step="Find out whether the topic was created again or the broker lost data, then set the offset",
            )
        if answer.status is PullStatus.RESET:
            if self._reset_seen:
                raise BrokerFault("The group's offset is reset again and again", where=where, next_step="Stop that")
        elif answer.status is not PullStatus.CAUGHT_UP and answer.header.next_offset <= answer.offset:
            raise BrokerFault(
                f"Broker says {answer.status.value}, but continues at {answer.header.next_offset}", where=where
            )
        self._reset_seen = answer.status is PullStatus.RESET

    def _decoded(self, part: StoredSlice) -> QueueSlice:
        if not part.data:
            missing = (MissingRange(part.begin, part.end, part.cause),) if part.cause else ()
            return QueueSlice(part.begin, part.end, [], missing)
        messages = decode_messages(bytes(part.data), decompress, part.begin)
        if messages and messages[-1].queue_offset >= part.end:
            messages = [message for message in messages if message.queue_offset < part.end]
        return QueueSlice(part.begin, part.end, messages, _holes(self.queue, messages, part.begin, part.end))


def _stored(answer: PullAnswer, end: int) -> StoredSlice:
    if answer.status is PullStatus.FOUND:
        return StoredSlice(answer.offset, end, answer.data, HOLE)
    return StoredSlice(answer.offset, end, _NOTHING, answer.status.value)


def _holes(queue: Queue, messages: list[StoredMessage], begin: int, end: int) -> tuple[MissingRange, ...]:
    """What the offsets of the messages leave out of [begin, end). Raises `WireFormatError` when they do not ascend."""
    offsets = [message.queue_offset for message in messages]
    if offsets == list(range(begin, end)):
        return ()
    holes = []
    expected = begin
    for offset in (*offsets, end):
        if offset < expected:
            raise WireFormatError(f"Offset {offset} where {expected} or more was expected", where=str(queue))
        if offset > expected:
            holes.append(MissingRange(expected, offset, HOLE))
        expected = offset + 1
    return tuple(holes)
