"""Sends batches (and single messages) to one queue, in order: at most one is outstanding, so arrival order is ours.

The caller encodes the next batch while one is outstanding. A broker that says it is busy has stored nothing: the same
batch goes out again after a pause, until the caller's deadline. A batch whose outcome is unknown is never sent again:
it raises `SendUnknown`, and the sender is over.
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, replace
from typing import NoReturn

from connect_core.errors import Refused, WireFormatError
from connect_core.rocketmq.backoff import Backoff
from connect_core.rocketmq.connection import Pending
from connect_core.rocketmq.errors import (
    BrokerBusy,
    ConnectionLost,
    MessageIllegal,
    NoAnswer,
    RouteStale,
    SendUnknown,
    refusal,
)
from connect_core.rocketmq.network import Network, command
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.wire.batch_entries import Batch, BatchEntry
from connect_core.rocketmq.wire.commands import RequestCode, SendRequest, SendResponse
from connect_core.rocketmq.wire.fields import from_fields
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.stored_message import SENDABLE_BITS

PRODUCER_GROUP = "WAYBILL"
_HEADER_ROOM_BYTES = 64 * 1024
_NOT_STORED = (BrokerBusy, Refused, RouteStale)


class StoreStatus(enum.Enum):
    """How durable a stored batch is, by response code. All of them mean stored."""

    OK = 0
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12


_STORED = {status.value: status for status in StoreStatus}


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """`count` messages stored at `first_offset` and the offsets right behind it. `last_id` is the broker's id for the
    last one (`StoredMessage.offset_message_id`), empty where it gives none."""

    queue: Queue
    first_offset: int
    count: int
    status: StoreStatus
    last_id: str = ""

    @property
    def next_offset(self) -> int:
        return self.first_offset + self.count


@dataclass(frozen=True, slots=True)
class _Outstanding:
    command: Command
    count: int
    pending: Pending


class BatchSender:
    """One a target queue; used by one thread. Made by `Client.sender`."""

    def __init__(self, network: Network, queue: Queue) -> None:
        self.queue = queue
        self._network = network
        self._outstanding: _Outstanding | None = None
        self._over = False

    def submit(
        self, batch: Batch | BatchEntry, *, deadline: float, sys_flag: int = 0, born_timestamp_ms: int | None = None
    ) -> Acknowledged | None:
        """Waits for the batch that is outstanding (its acknowledgement is the result), then hands this one over.

        A `BatchEntry` goes as a single message: its body may be as long as a whole batch otherwise. The broker reads
        its properties (UTF-8), and stores them in another order. It must have a body.

        `sys_flag` may say how all bodies of the batch are compressed (bits 0x701); the born time is now by default.
        Raises what `finish` raises, about the batch before; and `Unreachable` when this one could not leave: then it
        is not stored and nothing is outstanding.
        """
        acknowledged = self.finish(deadline=deadline)
        if not (batch.count if isinstance(batch, Batch) else batch.body):
            raise ValueError("A batch without messages, or a message without a body, cannot be sent")
        if len(batch.body) > self._network.options.max_frame_bytes - _HEADER_ROOM_BYTES:
            raise MessageIllegal(
                f"A batch of {len(batch.body)} bytes does not fit into a frame",
                where=str(self.queue),
                next_step="Reject messages of that size",
            )
        if sys_flag & ~SENDABLE_BITS:
            raise ValueError(f"System flag {sys_flag:#x} has bits that make messages vanish")
        request = SendRequest(
            group=PRODUCER_GROUP,
            topic=self.queue.topic,
            queue_id=self.queue.queue_id,
            born_timestamp_ms=int(time.time() * 1000) if born_timestamp_ms is None else born_timestamp_ms,
            system_flag=sys_flag,
        )
        if isinstance(batch, Batch):
            self._hand_over(command(RequestCode.SEND_BATCH_MESSAGE, request, batch.body), batch.count, deadline)
        else:
            single = replace(request, flag=batch.flag, properties=batch.properties.decode(), batch=False)
            self._hand_over(command(RequestCode.SEND_MESSAGE_V2, single, batch.body), 1, deadline)
        return acknowledged

    def finish(self, *, deadline: float) -> Acknowledged | None:
        """Waits for the batch that is outstanding; None when there is none. Nothing is outstanding afterwards.

        Raises `SendUnknown`; `BrokerBusy` when the broker was busy until the deadline, and `Refused` or `RouteStale`
        when it said no (all three: not stored).
        """
        if self._over:
            self._raise_unknown("An earlier batch has an unknown outcome")
        backoff = Backoff(deadline)
        while self._outstanding is not None:
            outstanding, self._outstanding = self._outstanding, None
            reply = self._reply(outstanding)
            if reply.code in _STORED:
                return self._acknowledged(reply, outstanding.count)
            error = refusal(reply.code, reply.remark, where=str(self.queue))
            if not isinstance(error, _NOT_STORED):
                self._raise_unknown(error.what)
            if not isinstance(error, BrokerBusy) or not backoff.pause():
                raise error
            self._hand_over(outstanding.command, outstanding.count, deadline)
        return None

    def _hand_over(self, request: Command, count: int, deadline: float) -> None:
        now = time.monotonic()
        if now >= deadline:
            raise NoAnswer("The deadline passed before the batch was sent; it is not stored", where=str(self.queue))
        answer_by = min(deadline, now + self._network.options.send_timeout_s)
        pending = self._network.start_sending(self.queue.broker, request, answer_by)
        self._outstanding = _Outstanding(request, count, pending)

    def _reply(self, outstanding: _Outstanding) -> Command:
        try:
            return outstanding.pending.result()
        except (NoAnswer, ConnectionLost) as error:
            self._raise_unknown(error.what)

    def _acknowledged(self, reply: Command, count: int) -> Acknowledged:
        try:
            stored = from_fields(SendResponse, reply.fields)
        except WireFormatError as error:
            self._raise_unknown(error.what)
        last_id = stored.message_ids.rpartition(",")[2]
        return Acknowledged(self.queue, stored.first_offset, count, _STORED[reply.code], last_id)

    def _raise_unknown(self, reason: str) -> NoReturn:
        self._over = True
        raise SendUnknown(
            f"A batch was sent and it is unknown whether it was stored: {reason}",
            where=str(self.queue),
            next_step="Look at the end of the queue before anything is sent again",
        )
