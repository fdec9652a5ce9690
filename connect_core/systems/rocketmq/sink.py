"""The RocketMQ sink: each source partition goes to one queue of its topic, or each key of it does, in order, exactly
once.

Exactly once, unless the broker, while it serves others, holds an accepted request of a dead sender longer than its
send queue may (0.2 s); then it is repeated once and reported as surplus. Every message carries its coordinates, so that
`scan` can tell what of an open range is there. A floor's target is a queue, `topic/broker/queueId`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.errors import ConfigError, Failure, Refused, TargetChanged, WaybillError
from connect_core.rocketmq import Client, PermissionRefused, Queue, TopicMissing
from connect_core.rocketmq.wire.batch_entries import MAX_PROPERTIES_BYTES
from connect_core.sdk.records import Lineage, without_nulls
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Targets, Writer
from connect_core.sdk.values import Attempt, Floor, Json, OpenRange, Range
from connect_core.systems.rocketmq.appending import QueueAppender, Span, uncovered
from connect_core.systems.rocketmq.connecting import (
    Connecting,
    check_registered,
    is_queue,
    queue_of,
    telling_who_is_away,
)
from connect_core.systems.rocketmq.finding import rewound, scan, visible_ends
from connect_core.systems.rocketmq.marking import MARK_BYTES
from connect_core.systems.rocketmq.native import NativeAppender, NativeProducers, Slices, unsendable
from connect_core.systems.rocketmq.options import NATIVE, TOPIC, RocketMQSinkOptions
from connect_core.systems.rocketmq.parcels import body_bytes, message_bytes
from connect_core.systems.rocketmq.routing import (
    Router,
    by_topic,
    has_rules,
    home_found,
    kept_homes,
    pinned,
    pins_of,
    places_forgotten,
    queues_of,
    with_homes,
    with_rules,
)
from connect_core.systems.rocketmq.standing import (
    anchors,
    evidence_found,
    gone,
    moved,
    passed_over,
    replaced,
    target_replaced,
)
from connect_core.systems.rocketmq.writing import QueueWriter, SpreadWriter

LOOK_BACK = 10_000
"""Messages of others behind our last settled one that are read before the first batch of a range: more of them would
cost a busy topic more than it is worth to know of a request that its broker had kept back."""
_SEPARATORS = "[\x01\x02]"
_WHO_ALLOWS = "max_message_bytes of the sink, which must not be more than maxMessageSize of its brokers"
_LEFT = f"allowed are {MAX_PROPERTIES_BYTES - MARK_BYTES}: RocketMQ's limit, less what a copy and a broker add"


class RocketMQSink:
    """A `sdk.sink.Sink`, `Expiring` and `Homing`."""

    scan_tells_records = True

    def __init__(self, options: RocketMQSinkOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._connecting = Connecting(options, resources, options.send_timeout_s)
        self._native = NativeProducers(self._connecting.options, resources) if options.client == NATIVE else None
        self._ends: dict[Queue, int] = {}
        self._spans: dict[Queue, Span] = {}
        self._shorter: dict[str, int] = {}
        """Queues that have lost what was delivered to them, and where they end, when that is tolerated."""
        self._replaced: set[tuple[str, str]] = set()
        """Partition and queue of the floors in front of which something else stands."""
        self._still_there: set[Queue] = set()
        self._begun_anew: set[tuple[str, str]] = set()
        self._written: dict[Queue, list[Span]] = {}
        self._open: dict[Queue, list[QueueAppender]] = {}

    def target_leases(self, task: int) -> tuple[str, ...]:
        """None: several connectors may write to one topic, each finds its own messages."""
        return ()

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        return ()

    def reaches(self, target: Json, name: str) -> bool:
        return is_queue(name) and queue_of(name).topic in by_topic(target)

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        """What the pins of a range say: its topic, the queues of it there are, and how one of them is chosen; with
        rules the same of the topics that they name. Where they name all, nobody asks for the sink's own."""
        named = self._options.rule_topics or ()
        own = {} if self._options.only_rule_topics else self._wanted(topics)
        with self._connecting.client() as client:
            wanted = dict.fromkeys(named, sum(topics.values())) | own
            found = {topic: self._target(client, topic, partitions, floors) for topic, partitions in wanted.items()}
        kept, gone = self._homes(floors, found)
        pins = found
        if self._options.rule_topics is not None:
            pins = {topic: with_rules(first, {one: found[one] for one in named}) for topic, first in found.items()}
        if self._options.only_rule_topics:
            return Targets(pins[named[0]], by_partition=kept, gone=gone)
        of_topic = {topic: pins[self._options.target_for(topic)] for topic in topics}
        return Targets(pins.get(self._options.topic, {}), by_topic=of_topic, by_partition=kept, gone=gone)

    def _homes(
        self, floors: Sequence[Floor], targets: Mapping[str, Json]
    ) -> tuple[dict[str, Json], dict[str, Failure]]:
        """What partitions that were written before pin, by id, and those whose queue is not there any more. Where that
        is tolerated they are dealt out anew."""
        there = {queue for target in targets.values() for queue in pinned(target)}
        kept: dict[str, Json] = {}
        gone: dict[str, Failure] = {}
        for partition_id, homes in kept_homes(floors, targets).items():
            left = {topic: queue for topic, queue in homes.items() if queue in there}
            lost = sorted(homes.items() - left.items())
            if lost and self._options.on_replaced == "fail":
                gone[partition_id] = Failure.of(_queue_gone(lost[0][1]))
            else:
                kept[partition_id] = with_homes(left)
        return kept, gone

    def _wanted(self, topics: Mapping[str, int]) -> dict[str, int]:
        """The target topics, and of how many partitions the records come that each has to take. Raises ConfigError for
        a topic whose target cannot be written."""
        wanted: dict[str, int] = {} if TOPIC in self._options.topic else {self._options.topic: 0}
        for topic, partitions in sorted(topics.items()):
            try:
                target = self._options.target_for(topic)
            except ValueError as error:
                raise ConfigError(
                    f'"{topic}" would go to "{self._options.topic.replace(TOPIC, topic)}", which {error}',
                    where="sink.rocketmq.topic",
                    next_step="Give it another name with rename, or exclude it from the source",
                ) from None
            wanted[target] = wanted.get(target, 0) + partitions
        return wanted

    def _target(self, client: Client, topic: str, partitions: int, floors: Sequence[Floor]) -> Json:
        mine = [floor for floor in floors if is_queue(floor.target) and queue_of(floor.target).topic == topic]
        queues = self._queues(client, topic, partitions, {queue_of(floor.target).broker for floor in mine})
        self._check_message_limit(client, topic, queues)
        self._check_ends(client, mine, queues)
        self._check_standing(client, mine)
        return pins_of(topic, queues, self._options.order)

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """One for each queue that a record of the range can go to, or may have gone to where the ledger was `restored`.
        The ends of all queues are looked at once: an older end is only a lower floor."""
        standing = {floor.target: floor for floor in known}
        queues = [*queues_of(wanted), *(places_forgotten(wanted, known) if restored else ())]
        return tuple(self._floor(wanted, queue, standing.get(str(queue)), restored) for queue in queues)

    def home_found(self, item: OpenRange) -> Json | None:
        return home_found(item)

    def _floor(self, wanted: Range, queue: Queue, standing: Floor | None, restored: bool) -> Floor:
        if standing is not None and self._is_lost(standing):
            return Floor(wanted.partition.id, str(queue), self._near_begin(queue), ahead=True)
        if standing is not None:
            return standing if standing.ahead else moved(standing, self._moved_up(queue, standing.position))
        if restored:
            with self._connecting.client() as client:
                return Floor(wanted.partition.id, str(queue), client.offsets.begin(queue), ahead=True)
        return Floor(wanted.partition.id, str(queue), self._end(wanted, queue))

    def _near_begin(self, queue: Queue) -> int:
        """A request of ours may have come to the queue since it was made anew."""
        with self._connecting.client() as client:
            return _near(client.offsets.begin(queue), self._shorter[str(queue)])

    def _is_lost(self, standing: Floor) -> bool:
        """Whether the place that a floor names is gone with what its queue has lost. Asked once of each: what the range
        settles is a place in the queue as it is now."""
        name = (standing.partition_id, standing.target)
        shorter = standing.position > self._shorter.get(standing.target, standing.position)
        if not (shorter or name in self._replaced) or name in self._begun_anew:
            return False
        self._begun_anew.add(name)
        return True

    def _moved_up(self, queue: Queue, position: int) -> int:
        """A queue may get nothing of a partition for long. With nothing of ours ahead its floor is moved to the end
        when so much was written behind it by others that `writer` would not look at it either, or when it stands in the
        older half of what retention has left: retention might pass it while the range is open, and then nobody could
        say what of the range is there."""
        begin, end = self._span(queue)
        expires_soon = begin > 0 and position - begin <= end - position
        return end if expires_soon else _near(position, end)

    def _span(self, queue: Queue) -> Span:
        """As it was when this run first asked: an older end is only a lower floor."""
        if queue not in self._spans:
            with self._connecting.client() as client:
                self._spans[queue] = client.offsets.begin(queue), client.offsets.end(queue)
        return self._spans[queue]

    def _end(self, wanted: Range, queue: Queue) -> int:
        if queue not in self._ends:
            with self._connecting.client() as client:
                self._ends |= visible_ends(client, pinned(wanted.pins.target))
        return self._ends[queue]

    def within(self, floors: Sequence[Floor]) -> list[Floor]:
        return [self._within(floor) for floor in floors]

    def _within(self, floor: Floor) -> Floor:
        """What is given up may be given up because its queue is not there."""
        with suppress(WaybillError), self._connecting.client() as client:
            if is_queue(floor.target):
                return floor._replace(position=max(floor.position, client.offsets.begin(queue_of(floor.target))))
        return floor

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        with self._connecting.client() as client:
            return scan(client, wanted, self._options.on_unknown)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        found = invalid_rows(records, int(self._options.max_message_bytes))
        return sorted({one[0]: one for one in (*unsendable(records), *found)}.values()) if self._native else found

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[Writer]:
        queues, lineage = queues_of(wanted.range), wanted.range.lineage(attempt.uid)
        timeout_s, most_bytes = self._connecting.options.send_timeout_s, int(self._options.max_message_bytes)
        with self._connecting.client() as client, ExitStack() as open_queues:

            def opened(queue: Queue) -> QueueAppender:
                return open_queues.enter_context(self._appender(client, queue, lineage, wanted))

            if len(queues) == 1 and not has_rules(wanted.range.pins.target):
                yield self._paced(QueueWriter(opened(queues[0]), lineage, timeout_s, most_bytes))
                return
            with telling_who_is_away(client, {queue.broker for queue in queues}):
                _check_writable(client, queues)
            yield self._paced(SpreadWriter(Router(wanted.range), opened, lineage, timeout_s, most_bytes))

    def _paced(self, writer: Writer) -> Writer:
        return Slices(writer) if self._native else writer

    @contextmanager
    def _appender(self, client: Client, queue: Queue, lineage: Lineage, wanted: OpenRange) -> Iterator[QueueAppender]:
        with telling_who_is_away(client, [queue.broker]):
            self._check_still_there(client, queue, wanted)
            begin = self._looked_at(client, queue, wanted)
            own = self._written.setdefault(queue, [])
            expected = max([begin, *(end for _, end in own)])
            appender = self._new_appender(client, queue, lineage, expected)
            appender.look_between(*uncovered(begin, expected, own), *_passed_over(client, queue, wanted))
            side_by_side = self._open.setdefault(queue, [])
            appender.others = lambda: [*own, *(span for one in side_by_side for span in one.written())]
            side_by_side.append(appender)
            appender.stands = evidence_found(wanted).get(str(queue), {})
            if self._options.on_replaced == "fail":
                appender.anchors = anchors(wanted, queue)
        try:
            yield appender
        finally:
            side_by_side.remove(appender)
            own += appender.written()

    def _check_still_there(self, client: Client, queue: Queue, wanted: OpenRange) -> None:
        """Once a lane: in a window the driver has looked long ago."""
        known = anchors(wanted, queue)
        if not known or queue in self._still_there or self._options.on_replaced == "continue":
            return
        if lost := gone(client, queue, known):
            raise target_replaced(lost)
        self._still_there.add(queue)

    def _new_appender(self, client: Client, queue: Queue, lineage: Lineage, expected: int) -> QueueAppender:
        timeout_s = self._connecting.options.send_timeout_s
        if self._native:
            producer = self._native.connected(client, queue.broker)
            return NativeAppender(client, queue, lineage, expected, timeout_s, producer)
        return QueueAppender(client, queue, lineage, expected, timeout_s)

    def _looked_at(self, client: Client, queue: Queue, wanted: OpenRange) -> int:
        """Where a range begins to look for copies of its partition's records: behind what `scan` has looked at, else
        behind what was settled last, so that a request which came later than that is seen. Where others have written
        much since, the queue's end. Batches of this lane for other partitions are not read back."""
        scanned = wanted.found.scanned.get(str(queue)) if wanted.found else None
        if scanned is not None:
            return scanned
        end = client.offsets.end(queue)
        settled = next((floor.position for floor in wanted.floors if floor.target == str(queue)), end)
        return _near(settled, end)

    def _queues(self, client: Client, topic: str, partitions: int, brokers: Collection[str]) -> list[Queue]:
        """The topic's write queues, in an order that does not change. Creates the topic when that is wanted, but not
        while one of the `brokers` that were written is away."""
        if not client.topics.exists(topic):
            check_registered(client, brokers, topic)
            if not self._options.create:
                raise TopicMissing(
                    "The topic does not exist", where=topic, next_step="Create it, or let it be created: create: true"
                )
            client.topics.create(topic, self._queues_to_create(client, partitions))
        return write_queues(client, topic)

    def _queues_to_create(self, client: Client, partitions: int) -> int:
        """On each broker."""
        there = max(math.ceil(partitions / max(len(client.brokers.masters()), 1)), 1)
        return self._options.queues or there

    def _check_ends(self, client: Client, floors: Sequence[Floor], queues: Sequence[Queue]) -> None:
        """A queue that ends before a floor lost what stood there. The end may lag an answer: then it is looked at
        again."""
        behind = {floor.target: floor.position for floor in sorted(floors, key=lambda f: f.position)}
        suspects = [
            queue_of(name) for name, place in behind.items() if not _reaches(client, queue_of(name), place, queues)
        ]
        ends = visible_ends(client, suspects)
        shorter = {queue: end for queue, end in ends.items() if end < behind[str(queue)]}
        if shorter and self._options.on_replaced == "fail":
            queue, end = next(iter(shorter.items()))
            raise rewound(queue, behind[str(queue)], end)
        self._shorter |= {str(queue): end for queue, end in shorter.items()}

    def _check_standing(self, client: Client, floors: Sequence[Floor]) -> None:
        """A queue may have been made anew, and be longer by now than what was delivered to it."""
        for floor in replaced(client, [one for one in floors if one.target not in self._shorter]):
            if self._options.on_replaced == "fail":
                raise target_replaced(floor)
            self._replaced.add((floor.partition_id, floor.target))
            self._shorter[floor.target] = client.offsets.end(queue_of(floor.target))

    def _check_message_limit(self, client: Client, topic: str, queues: Sequence[Queue]) -> None:
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
                    where=f"{topic} on {broker}",
                    next_step=f"Set max_message_bytes: {most}, or raise the broker's maxMessageSize",
                )


def write_queues(client: Client, topic: str) -> list[Queue]:
    """Sorted. Raises TopicMissing, or PermissionRefused when nothing of it may be written."""
    queues = client.topics.write_queues(topic)
    if not queues:
        raise PermissionRefused(
            "The topic has no queue that may be written",
            where=topic,
            next_step="Give it the write permission, or choose another topic",
        )
    return queues


def _passed_over(client: Client, queue: Queue, wanted: OpenRange) -> Sequence[Span]:
    """What no `scan` looks at, because a plan has moved the range's floor past it (`_moved_up`): a request that a
    broker had kept back may stand there."""
    floor = next((floor for floor in wanted.floors if floor.target == str(queue)), None)
    if floor is None:
        return ()
    begin, end = passed_over(floor)
    if begin >= end or _near(begin, client.offsets.end(queue)) != begin:
        return ()
    return uncovered(max(begin, client.offsets.begin(queue)), end, ())


def _near(settled: int, end: int) -> int:
    """The place behind what was settled, or the queue's end when that is too far away to read up to it."""
    return settled if end - settled <= LOOK_BACK else end


def _check_writable(client: Client, queues: Sequence[Queue]) -> None:
    """Before anything is written: a range whose queues are not all there cannot be finished."""
    for topic in dict.fromkeys(queue.topic for queue in queues):
        _check_writable_in(client, topic, [queue for queue in queues if queue.topic == topic])


def _check_writable_in(client: Client, topic: str, queues: Sequence[Queue]) -> None:
    there = set(client.topics.write_queues(topic))
    gone = [queue for queue in queues if queue not in there]
    if not gone:
        return
    check_registered(client, {queue.broker for queue in gone}, topic)
    if not there:
        client.sender(gone[0])  # refused: the topic may not be written
    raise TargetChanged(
        "A queue that an open range was planned for may not be written any more, or the topic has fewer of them",
        where=str(gone[0]),
        next_step="Give the topic its queues back, or give up the open ranges: waybill offsets set --abandon",
    )


def _queue_gone(queue: Queue) -> TargetChanged:
    return TargetChanged(
        "The partition goes to this queue for good, so that its records stay in order, and the topic does not have it "
        "any more",
        where=str(queue),
        next_step="Give the topic its queues back, or let the partition be given another queue from here on "
        "(on_replaced: continue)",
    )


def _reaches(client: Client, queue: Queue, position: int, queues: Sequence[Queue]) -> bool:
    if queue.broker not in {one.broker for one in queues}:
        check_registered(client, [queue.broker], str(queue))
        raise TargetChanged(
            "A queue that was written is not in the topic's route any more",
            where=str(queue),
            next_step="Start its broker again, or give up the open ranges: waybill offsets set --abandon",
        )
    return client.offsets.end(queue) >= position


def invalid_rows(records: pa.RecordBatch, most_bytes: int) -> list[tuple[int, str, str]]:
    """Rows that cannot be sent: too large, or with a key or tags that RocketMQ would cut. See `sdk.sink.Sink`."""
    sizes, bodies = message_bytes(records), body_bytes(records)
    properties = sizes - bodies
    found = [
        (int(row), "MessageTooLarge", f"The body takes {bodies[row]} bytes, allowed are {most_bytes} ({_WHO_ALLOWS})")
        for row in np.flatnonzero(bodies > most_bytes)
    ]
    too_long = properties > MAX_PROPERTIES_BYTES
    found += [
        (int(row), "PropertiesTooLarge", f"Key, tags and headers take {properties[row] - MARK_BYTES} bytes, {_LEFT}")
        for row in np.flatnonzero(too_long & (bodies <= most_bytes))
    ]
    found += _not_alone(records, np.flatnonzero(~too_long & (sizes > most_bytes) & (bodies <= most_bytes)))
    return sorted([*found, *_with_separators(records, {row for row, _, _ in found})])


def _not_alone(records: pa.RecordBatch, rows: NDArray[np.int64]) -> Iterator[tuple[int, str, str]]:
    """Those of these rows, too long for a batch, that cannot go alone: a single message's properties are text."""
    for row in rows:
        try:
            for name in {"headers", "message_id"} & {*records.schema.names}:
                (records.column(name)[row].as_py() or b"").decode()
        except UnicodeDecodeError:
            yield int(row), "IllegalProperty", "The properties are not UTF-8, and the body is too large for a batch"


def _with_separators(records: pa.RecordBatch, but: set[int]) -> Iterator[tuple[int, str, str]]:
    """Rows whose key or tags hold a separator of RocketMQ's properties, which would cut them."""
    for name in ("key", "tags"):
        column = records.column(name)
        if column.null_count == len(records):
            continue
        for row in np.flatnonzero(without_nulls(pc.match_substring_regex(column, _SEPARATORS), False).to_numpy(False)):
            if int(row) not in but:
                but.add(int(row))
                yield int(row), "IllegalProperty", f"The {name} holds a control character (1 or 2)"
