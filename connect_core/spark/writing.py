"""Appends a DataFrame's rows to topics: `prepare` once, where Spark plans; `write` in each task.

At least once: a row is acknowledged by its broker before its task is done, and Spark may run a task twice. To one
queue at most one batch is outstanding, so rows of one task stand in it in their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from connect_core import clock
from connect_core.errors import DataError
from connect_core.rocketmq import Acknowledged, BatchSender, Client, Queue, TopicMissing
from connect_core.spark.messages import Mapped, message_ids, property_strings, queue_numbers
from connect_core.spark.options import WriteOptions
from connect_core.systems.rocketmq.encoding import encode_entries
from connect_core.systems.rocketmq.invalid import invalid_rows
from connect_core.systems.rocketmq.options import TargetTopic
from connect_core.systems.rocketmq.parcels import Load, batch_sizes, message_bytes
from connect_core.systems.rocketmq.target_topics import write_queues

_TOPIC = TypeAdapter(TargetTopic)
MAX_SHOWN = 127


def prepare(options: WriteOptions) -> None:
    """Looks whether the topic of the options can be written; creates it when that is wanted."""
    if options.topic is None:
        return
    with Client(options.client_options()) as client:
        if options.create and not client.topics.exists(options.topic):
            client.topics.create(options.topic, options.queues)
        queues_of(client, options.topic)


def write(
    options: WriteOptions, mapped: Mapped, batches: Iterable[pa.RecordBatch], job: str, partition: int
) -> Mapping[str, int]:
    """Returns when all rows are stored: how many in which queue."""
    with Client(options.client_options()) as client:
        writer = TaskWriter(client, options, job, partition)
        for batch in batches:
            writer.write(mapped.records(batch))
        return writer.finish()


def summary(written: Iterable[Mapping[str, int]]) -> str:
    """One line, the same counts in any order of the tasks."""
    total: Counter[str] = Counter()
    for one in written:
        total.update(one)
    told = ", ".join(f"{queue}: {count:,}" for queue, count in sorted(total.items()))
    return f"{total.total():,} messages ({told})" if total else "0 messages"


def queues_of(client: Client, topic: str) -> list[Queue]:
    """As `write_queues`; what to do about a missing topic is said in the words of an option."""
    try:
        return write_queues(client, topic)
    except TopicMissing:
        raise TopicMissing(
            "The topic does not exist", where=topic, next_step='Create it, or let it be created: option("create", true)'
        ) from None


class TaskWriter:
    """What one task writes: one sender for each queue that it comes to."""

    def __init__(self, client: Client, options: WriteOptions, job: str, partition: int) -> None:
        self._client = client
        self._options = options
        self._job = job
        self._partition = partition
        self._rows = 0
        self._queues: dict[str, list[Queue]] = {}
        self._senders: dict[Queue, BatchSender] = {}
        self._written: Counter[str] = Counter()

    def write(self, records: pa.RecordBatch) -> None:
        self._check(records)
        numbers = np.arange(self._rows, self._rows + len(records))
        self._rows += len(records)
        for topic, rows in self._by_topic(records):
            queues = self._queues_of(topic)
            some = _taken(records, rows)
            chosen = queue_numbers(some.column("key"), self._options.routing, self._partition, len(queues))
            for number in np.unique(chosen):
                own = chosen == number
                self._send(queues[number], _taken(some, np.flatnonzero(own)), numbers[rows][own])

    def finish(self) -> Mapping[str, int]:
        for sender in self._senders.values():
            self._count(sender.finish(deadline=self._deadline()))
        return dict(self._written)

    def _check(self, records: pa.RecordBatch) -> None:
        for row, _, message in invalid_rows(records, int(self._options.max_message_bytes)):
            raise DataError(
                f"A row cannot be sent: {message}",
                where=f"partition {self._partition} of the DataFrame, row {self._rows + row}",
                next_step="Leave such rows out; what stood before them may be written already",
            )

    def _by_topic(self, records: pa.RecordBatch) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Each topic with its rows, in order."""
        if self._options.topic is not None:
            yield self._options.topic, np.arange(len(records))
            return
        topics = records.column("topic")
        if topics.null_count:
            raise DataError(
                "A row names no topic",
                where=f"partition {self._partition} of the DataFrame",
                next_step="Fill its topic in, or leave such rows out",
            )
        for topic in pc.unique(topics).to_pylist():
            yield topic, np.flatnonzero(pc.equal(topics, topic).to_numpy(zero_copy_only=False))

    def _queues_of(self, topic: str) -> list[Queue]:
        if topic not in self._queues:
            try:
                _TOPIC.validate_python(topic)
            except ValidationError as error:
                raise DataError("A row names a topic that may not be written", where=topic[:MAX_SHOWN]) from error
            self._queues[topic] = queues_of(self._client, topic)
        return self._queues[topic]

    def _send(self, queue: Queue, records: pa.RecordBatch, numbers: NDArray[np.int64]) -> None:
        if queue not in self._senders:
            self._senders[queue] = self._client.sender(queue)
        begin, most_bytes = 0, int(self._options.max_message_bytes)
        for rows in batch_sizes(message_bytes(records)):
            some = records.slice(begin, rows)
            ids = message_ids(self._job, self._partition, numbers[begin : begin + rows])
            entries = encode_entries(pc.fill_null(some.column("value"), b""), property_strings(some, ids))
            for parcel in Load(entries, message_bytes(some), None, most_bytes, some).parcels():
                self._count(self._senders[queue].submit(parcel.message, deadline=self._deadline()))
            begin += rows

    def _count(self, stored: Acknowledged | None) -> None:
        if stored is not None:
            self._written[str(stored.queue)] += stored.count

    def _deadline(self) -> float:
        return clock.monotonic() + self._options.busy_s


def _taken(records: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    return records if len(rows) == len(records) else records.take(pa.array(rows))
