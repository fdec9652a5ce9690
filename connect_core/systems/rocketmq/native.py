"""The sink's `client: native`: how a batch gets to its queue by RocketMQ's own client, one message after the other.

Everything else is as with our own client: what is looked for, where, and what is counted. At most one message is
outstanding, and none follows one whose outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa

from connect_core import clock
from connect_core.errors import TargetChanged, Unreachable
from connect_core.rocketmq import Acknowledged, Client, ClientOptions, NoAnswer, Queue, SendUnknown, StoreStatus
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.system_names import BARRIER_TOPIC
from connect_core.rocketmq.wire.batch_entries import BatchEntry, decode_entries
from connect_core.rocketmq.wire.properties import UNIQUE_KEY, decode, kept_in_copies
from connect_core.rocketmq.wire.stored_message import unpacked
from connect_core.sdk.batches import whole_records
from connect_core.sdk.records import Lineage
from connect_core.sdk.sink import Writer
from connect_core.sdk.values import Delivered, Limit
from connect_core.systems.rocketmq.appending import QueueAppender
from connect_core.systems.rocketmq.connecting import check_registered
from connect_core.systems.rocketmq.native_library import NativeProducer, QueuePlace, drop_unsent
from connect_core.systems.rocketmq.parcels import Parcel

RECORDS = 32
"""Between two looks at the clock: each takes a round trip."""
_POLL_S = 0.001
_HELLO = b"native"


class NativeAppender(QueueAppender):
    """For one range and queue. The first message is read back before the second is sent: the library chooses queues by
    their place in a list of its own, and this proves that it is the list we know."""

    def __init__(
        self,
        client: Client,
        queue: Queue,
        lineage: Lineage,
        expected: int,
        send_timeout_s: float,
        producer: NativeProducer,
    ) -> None:
        super().__init__(client, queue, lineage, expected, send_timeout_s)
        self._producer = producer
        self._place = _place(client, queue)
        self._port = _port(client, queue.broker)
        self._over = False

    def send(self, parcel: Parcel, limit: Limit) -> None:
        """Returns when all of it is stored, bodies plain. Raises `SendUnknown`; `NoAnswer` when no time is left for the
        rest."""
        deadline = self._deadline(limit)
        drop_unsent(self._port, self._send_timeout_s)
        for entry in _entries(parcel):
            if clock.monotonic() >= deadline:
                raise NoAnswer("The deadline passed before the message was sent; it is not stored", where=self._where)
            self._send(entry)
            if self.records == 1:
                self._check_first(clock.monotonic() + limit.left_s())
        self.bytes += len(parcel.message.body)

    def finish(self, limit: Limit) -> None:
        """Nothing is outstanding when `send` returns."""
        if self._over:
            raise self._unknown()

    @property
    def _where(self) -> str:
        return str(self.queue)

    def _send(self, entry: BatchEntry) -> None:
        if self._over:
            raise self._unknown()
        offset = self._producer.send(self._place, entry.body, own_properties(entry))
        if offset is None:
            self._over = True
            raise self._unknown()
        self._count(Acknowledged(self.queue, offset, 1, StoreStatus.OK))

    def _unknown(self) -> SendUnknown:
        return SendUnknown(
            "The native client failed at a message, and does not say why; it is unknown whether the message is stored",
            where=self._where,
            next_step="The next attempt checks; if it fails again, remove client: Waybill's own client says why",
        )

    def _check_first(self, deadline: float) -> None:
        offset = self._written[0][0]
        while True:
            found, _, end = self._found_in(offset, offset + 1, deadline)
            if found:
                return
            if end > offset or clock.monotonic() >= deadline:
                break
            clock.sleep(_POLL_S)
        raise TargetChanged(
            f"The native client has put a message elsewhere than into this queue at offset {offset}",
            where=self._where,
            next_step="Leave client out, and look for that message in the topic's other queues",
        )


def _entries(parcel: Parcel) -> Iterator[BatchEntry]:
    """Its messages with plain bodies: the library would not say how they are packed."""
    message = parcel.message
    for entry in [message] if isinstance(message, BatchEntry) else decode_entries(message.body):
        yield entry._replace(body=unpacked(entry.body, parcel.packing, decompress))


def own_properties(entry: BatchEntry) -> Iterator[tuple[str, str]]:
    """What is given to the library: it makes a message id of its own, and a broker obeys properties of a single message
    that mean nothing in a batch (DELAY, TRAN_MSG and the like)."""
    pairs = decode(entry.properties).items()
    return ((name, value) for name, value in pairs if name != UNIQUE_KEY and kept_in_copies(name))


class NativeProducers:
    """The producer of a sink: one, kept in the caller's resources until those are closed."""

    def __init__(self, options: ClientOptions, resources: ExitStack | None) -> None:
        self._options = options
        self._resources = resources
        self._producer: NativeProducer | None = None
        self._brokers: set[str] = set()

    def connected(self, client: Client, broker: str) -> NativeProducer:
        """The producer, when it has sent something to that broker: a message to our helper topic there. So what the
        kernel has still to send goes with the process from the first record on. Raises ConfigError without the
        library, and `Unreachable`; then nothing of ours was sent."""
        if self._producer is None:
            self._producer = NativeProducer(self._options)
            if self._resources is not None:
                self._resources.callback(self._producer.close)
        if broker not in self._brokers:
            self._greet(self._producer, client, broker)
            self._brokers.add(broker)
        return self._producer

    def _greet(self, producer: NativeProducer, client: Client, broker: str) -> None:
        if producer.send(_place(client, Queue(BARRIER_TOPIC, broker, 0)), _HELLO, ()) is None:
            raise Unreachable(
                "The native client cannot send to this broker, and does not say why",
                where=f"{BARRIER_TOPIC} on {broker}",
                next_step="Check user and password, and that the broker has an IPv4 address; or leave client out: our "
                "own client says why",
            )
        drop_unsent(_port(client, broker), self._options.send_timeout_s)


def _place(client: Client, queue: Queue) -> QueuePlace:
    queues = client.topics.write_queues(queue.topic)
    return QueuePlace(queue.topic, queues.index(queue), len(queues))


def _port(client: Client, broker: str) -> int:
    check_registered(client, [broker], broker)
    return int(client.brokers.masters()[broker].rpartition(":")[2])


class Slices:
    """A `sdk.sink.Writer` that is given few records at a time, so that it stops when its time is over."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        offsets, taken = records.column("offset").to_numpy(), 0
        while taken < len(records):
            end = whole_records(offsets, min(taken + RECORDS, len(records)))
            taken += self._writer.write(records.slice(taken, end - taken), limit)
            if taken < end:
                break
        return taken

    def flush(self, limit: Limit) -> Delivered:
        return self._writer.flush(limit)


def unsendable(records: pa.RecordBatch) -> Iterator[tuple[int, str, str]]:
    """Rows that the library would change or refuse. See `sdk.sink.Sink.invalid_rows`."""
    texts = zip(*(records.column(name).to_pylist() for name in ("key", "tags", "headers")), strict=True)
    for row, (body, properties) in enumerate(zip(records.column("value").to_pylist(), texts, strict=True)):
        if not body:
            yield row, "EmptyBody", "The native client sends no message without a body"
        elif not all(map(_survives, properties)):
            yield row, "IllegalProperty", "The native client would cut a property with a zero byte, or not in UTF-8"


def _survives(text: str | bytes | None) -> bool:
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            return False
    return "\0" not in (text or "")
