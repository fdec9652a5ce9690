"""The RocketMQ sink: each source partition goes to one queue of the topic, in order, exactly once.

Exactly once, unless the broker, while it serves others, holds an accepted request of a dead sender longer than its
send queue may (0.2 s); then it is repeated once and reported as surplus. Every message carries its coordinates, so that
`find` can tell what of an open range is there. A floor's target is a queue, `topic/broker/queueId`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.contracts import Floor, Json, Lane, OpenRange, Range, Search, Targets
from connect_core.errors import ConfigError, Refused, TargetChanged
from connect_core.found import Found
from connect_core.rocketmq import Client, PermissionRefused, Queue, TopicMissing
from connect_core.rocketmq.wire.batch_entries import MAX_PROPERTIES_BYTES
from connect_core.systems.rocketmq.connecting import Connecting, check_registered, queue_of, telling_who_is_away
from connect_core.systems.rocketmq.finding import find, rewound, visible_ends
from connect_core.systems.rocketmq.marking import MARK_BYTES
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.writing import QueueWriter, Span, message_bytes, uncovered

LOOK_BACK = 10_000
"""Messages of others behind our last settled one that are read before the first batch of a range: more of them would
cost a busy topic more than it is worth to know of a request that its broker had kept back."""
_SEPARATORS = "[\x01\x02]"


class RocketMQSink:
    """A `contracts.Sink`."""

    def __init__(self, options: RocketMQSinkOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._connecting = Connecting(options.name_servers, resources, options.send_timeout_s)
        self._ends: dict[Queue, int] = {}
        self._written: dict[Queue, list[Span]] = {}
        self._open: dict[Queue, list[QueueWriter]] = {}

    def exclusive(self, task: int) -> tuple[str, ...]:
        """None: several connectors may write to one topic, each finds its own messages."""
        return ()

    def claimed(self, target: Json) -> tuple[str, ...]:
        return ()

    def targets(self, task: int, floors: Sequence[Floor]) -> Targets:
        topic = self._options.topic
        with self._connecting.client() as client:
            mine = [floor for floor in floors if queue_of(floor.target).topic == topic]
            queues = self._queues(client, {queue_of(floor.target).broker for floor in mine})
            self._check_message_limit(client, queues)
            _check_ends(client, mine, queues)
        return Targets({"topic": topic, "queues": [[queue.broker, queue.queue_id] for queue in queues]})

    def floors(self, wanted: Range, known: Sequence[Floor]) -> tuple[Floor, ...]:
        """The ends of all queues are looked at once: an older end is only a lower floor."""
        queue = _queue_for(wanted)
        standing = next((floor for floor in known if floor.target == str(queue)), None)
        if standing is not None:
            return (standing,)
        if queue not in self._ends:
            with self._connecting.client() as client:
                self._ends |= visible_ends(client, _pinned(wanted))
        return (Floor(wanted.partition.id, str(queue), self._ends[queue]),)

    def find(self, search: Search) -> dict[int, Found]:
        with self._connecting.client() as client:
            return find(client, search)

    def unfit(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        sizes = message_bytes(records)
        if not len(sizes):
            return []
        limit = self._options.max_message_bytes
        properties = sizes - pc.fill_null(pc.binary_length(records.column("value")), 0).to_numpy(zero_copy_only=False)
        found = [
            (int(row), "MessageTooLarge", f"The message takes about {sizes[row]} bytes, allowed are {limit}")
            for row in np.flatnonzero(sizes > limit)
        ]
        found += [
            (int(row), "PropertiesTooLarge", f"Key, tags and headers take {properties[row] - MARK_BYTES} bytes")
            for row in np.flatnonzero((properties > MAX_PROPERTIES_BYTES) & (sizes <= limit))
        ]
        return sorted([*found, *_with_separators(records, {row for row, _, _ in found})])

    @contextmanager
    def writer(self, lane: Lane, wanted: OpenRange) -> Iterator[QueueWriter]:
        queue = _queue_for(wanted.range)
        with self._connecting.client() as client:
            with telling_who_is_away(client, [queue.broker]):
                begin = self._looked_at(client, queue, wanted)
                own = self._written.setdefault(queue, [])
                expected = max([begin, *(end for _, end in own)])
                writer = QueueWriter(client, queue, lane.uid, wanted, expected, self._connecting.options.send_timeout_s)
                writer.look_between(*uncovered(begin, expected, own))
                side_by_side = self._open.setdefault(queue, [])
                writer.others = lambda: [*own, *(span for one in side_by_side for span in one.written())]
                side_by_side.append(writer)
            try:
                yield writer
            finally:
                side_by_side.remove(writer)
                own += writer.written()

    def _looked_at(self, client: Client, queue: Queue, wanted: OpenRange) -> int:
        """Where a range begins to look for copies of its partition's records: behind what `find` has looked at, else
        behind what was settled last, so that a request which came later than that is seen. Where others have written
        much since, the queue's end. Batches of this lane for other partitions are not read back."""
        scanned = wanted.found.scanned.get(str(queue)) if wanted.found else None
        if scanned is not None:
            return scanned
        end = client.offsets.end(queue)
        settled = next((floor.position for floor in wanted.floors if floor.target == str(queue)), end)
        return settled if end - settled <= LOOK_BACK else end

    def _queues(self, client: Client, brokers: Collection[str]) -> list[Queue]:
        """The topic's write queues, in an order that does not change. Creates the topic when that is wanted, but not
        while one of the `brokers` that were written is away."""
        topic = self._options.topic
        if not client.topics.exists(topic):
            check_registered(client, brokers, topic)
            if not self._options.create:
                raise TopicMissing(
                    "The topic does not exist", where=topic, next_step="Create it, or let it be created: create: true"
                )
            client.topics.create(topic, self._options.queues)
        queues = client.topics.write_queues(topic)
        if not queues:
            raise PermissionRefused(
                "The topic has no queue that may be written",
                where=topic,
                next_step="Give it the write permission, or choose another topic",
            )
        return queues

    def _check_message_limit(self, client: Client, queues: Sequence[Queue]) -> None:
        """A message between the broker's limit and ours would stop the connector instead of being rejected."""
        wanted = int(self._options.max_message_bytes)
        for broker in sorted({queue.broker for queue in queues}):
            try:
                most = int(client.brokers.settings(broker).get("maxMessageSize", wanted))
            except Refused:
                continue  # a broker that does not show its settings
            if most < wanted:
                raise ConfigError(
                    f"The broker takes messages of {most} bytes, max_message_bytes is {wanted}",
                    where=f"{self._options.topic} on {broker}",
                    next_step=f"Set max_message_bytes: {most}, or raise the broker's maxMessageSize",
                )


def _pinned(wanted: Range) -> list[Queue]:
    pins = wanted.pins.target
    return [Queue(pins["topic"], broker, number) for broker, number in pins["queues"]]


def _queue_for(wanted: Range) -> Queue:
    """1:1 routing: a pure function of the partition's slot and the pinned queues."""
    queues = _pinned(wanted)
    return queues[wanted.slot % len(queues)]


def _check_ends(client: Client, floors: Sequence[Floor], queues: Sequence[Queue]) -> None:
    """A queue that ends before a floor lost what stood there. The end may lag an answer: then it is looked at again."""
    behind = {floor.target: floor.position for floor in sorted(floors, key=lambda f: f.position)}
    suspects = [
        queue_of(name) for name, position in behind.items() if not _reaches(client, queue_of(name), position, queues)
    ]
    for queue, end in visible_ends(client, suspects).items():
        if end < behind[str(queue)]:
            raise rewound(queue, behind[str(queue)], end)


def _reaches(client: Client, queue: Queue, position: int, queues: Sequence[Queue]) -> bool:
    if queue.broker not in {one.broker for one in queues}:
        raise TargetChanged(
            "A queue that was written is not in the topic's route any more",
            where=str(queue),
            next_step="Start its broker again, or give up the open ranges: waybill offsets set --abandon",
        )
    return client.offsets.end(queue) >= position


def _with_separators(records: pa.RecordBatch, but: set[int]) -> Iterator[tuple[int, str, str]]:
    """Rows whose key or tags hold a separator of RocketMQ's properties, which would cut them."""
    for name in ("key", "tags"):
        column = records.column(name)
        if column.null_count == len(records):
            continue
        for row in np.flatnonzero(pc.fill_null(pc.match_substring_regex(column, _SEPARATORS), False).to_numpy(False)):
            if int(row) not in but:
                but.add(int(row))
                yield int(row), "IllegalProperty", f"The {name} holds a control character (1 or 2)"
