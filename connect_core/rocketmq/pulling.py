"""One pull: the request, and its answer as a value. What to do about an answer is the reader's affair (`reading`)."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass

from connect_core.rocketmq.channel import Asked
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.connection import Pending
from connect_core.rocketmq.errors import refusal
from connect_core.rocketmq.network import Network, command
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.wire.commands import (
    PULL_CARRIES_SUBSCRIPTION,
    PULL_SUSPENDS,
    PullRequest,
    PullResponse,
    RequestCode,
    ResponseCode,
)
from connect_core.rocketmq.wire.fields import from_fields
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.stored_message import StoredMessage, decode_messages

DEFAULT_GROUP = "WAYBILL"
MAX_MESSAGES = 4096
"""What is asked for; the broker's own caps (32 hot, 8 cold by default) are usually lower."""
SUSPEND_GRANULARITY_S = 5.0
"""Brokers look only this often whether a suspended pull's time is up."""


class PullStatus(enum.Enum):
    """What a pull found at its offset. Every one but `FOUND` comes without messages."""

    FOUND = "found"
    CAUGHT_UP = "caught up"
    FILTERED = "everything scanned was filtered out"
    REMOVED = "the log of these messages is deleted"
    INDEX_GONE = "the index of these messages is deleted"
    TOO_SMALL = "the offset lies before the oldest message"
    TOO_LARGE = "the offset is after the newest message"
    RESET = "an operator has reset the group's offset"


_STATUS: dict[tuple[int, str], PullStatus] = {
    (ResponseCode.PULL_NOT_FOUND, "OFFSET_FOUND_NULL"): PullStatus.INDEX_GONE,
    # With any other remark: a broker that is no master says so of messages that it has.
    (ResponseCode.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE"): PullStatus.FILTERED,
    (ResponseCode.PULL_RETRY_IMMEDIATELY, "MESSAGE_WAS_REMOVING"): PullStatus.REMOVED,
    (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL"): PullStatus.TOO_SMALL,
    (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET"): PullStatus.RESET,
}
_STATUS_BY_CODE: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.CAUGHT_UP,
    # Also: the queue is empty or its index is gone, and the offset is not 0.
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.TOO_LARGE,
}


@dataclass(frozen=True, slots=True)
class PullResult:
    """`next_offset` is where the broker says reading goes on; the queue spans [`begin`, `end`)."""

    queue: Queue
    offset: int
    status: PullStatus
    next_offset: int
    begin: int
    end: int
    messages: list[StoredMessage]


class PullUnderWay:
    """A pull whose answer is not there yet. `answer` gives its header first, so that the next pull can leave before
    the messages are decoded."""

    def __init__(self, queue: Queue, offset: int, asked: Asked, patience_s: float) -> None:
        self.queue = queue
        self.offset = offset
        self._asked = asked
        self._patience_s = patience_s

    def postpone(self) -> None:
        """Lets its time begin now: the caller worked on something else, perhaps for long, before it came to wait."""
        self._asked.postpone(time.monotonic() + self._patience_s)

    def wait(self, until: float) -> bool:
        """Whether the answer is there by that moment."""
        return self._asked.wait(until)

    @property
    def pending(self) -> Pending:
        """For who waits for several of them at once."""
        return self._asked.pending

    def give_up(self) -> None:
        self._asked.give_up()

    def answer(self) -> PullAnswer:
        """Raises the error of the answer's code when it is none of the statuses, and what `Asked.result` raises."""
        return _answer(self.queue, self.offset, self._asked.result())


@dataclass(frozen=True, slots=True)
class PullAnswer:
    """An answer whose messages are not decoded yet."""

    queue: Queue
    offset: int
    status: PullStatus
    header: PullResponse
    reply: Command

    @property
    def data(self) -> memoryview:
        """The messages as stored."""
        return memoryview(self.reply.body)

    def decode(self) -> PullResult:
        messages: list[StoredMessage] = []
        if self.status is PullStatus.FOUND:
            messages = decode_messages(bytes(self.data), decompress, self.offset)
        header = self.header
        return PullResult(self.queue, self.offset, self.status, header.next_offset, header.begin, header.end, messages)


def start_pull(
    network: Network, queue: Queue, offset: int, *, group: str, max_messages: int = MAX_MESSAGES, suspend_s: float = 0.0
) -> PullUnderWay:
    """Hands over a pull. With `suspend_s` the broker keeps it at the end of the queue until a message comes or about
    that time (rounded up to 5 s) is over."""
    patience_s = network.options.request_timeout_s + (suspend_s + SUSPEND_GRANULARITY_S if suspend_s else 0.0)
    asked = network.start_asking(
        queue.broker, _request(queue, offset, group, max_messages, suspend_s), time.monotonic() + patience_s
    )
    return PullUnderWay(queue, offset, asked, patience_s)


def pull(network: Network, queue: Queue, offset: int, *, group: str, max_messages: int) -> PullResult:
    """One pull and its answer. After an operator has reset the group the first one says only that: it is repeated."""
    request = _request(queue, offset, group, max_messages)
    answer = _answer(queue, offset, network.ask_broker(queue.broker, request))
    if answer.status is PullStatus.RESET:
        answer = _answer(queue, offset, network.ask_broker(queue.broker, request))
    return answer.decode()


def _request(queue: Queue, offset: int, group: str, max_messages: int, suspend_s: float = 0.0) -> Command:
    request = PullRequest(
        group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        offset=offset,
        max_messages=max_messages,
        system_flag=PULL_CARRIES_SUBSCRIPTION | (PULL_SUSPENDS if suspend_s else 0),
        suspend_ms=int(suspend_s * 1000),
    )
    return command(RequestCode.PULL_MESSAGE, request)


def _answer(queue: Queue, offset: int, reply: Command) -> PullAnswer:
    status = _STATUS.get((reply.code, reply.remark)) or _STATUS_BY_CODE.get(reply.code)
    if status is None:
        raise refusal(reply.code, reply.remark, where=f"{queue} at {offset}")
    return PullAnswer(queue, offset, status, from_fields(PullResponse, reply.fields), reply)
