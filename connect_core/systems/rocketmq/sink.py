"""The RocketMQ sink: each source partition goes to one queue of its topic, or each key of it does, in order, exactly
once.

Exactly once, on one condition: a broker that is up stores or drops a crashed sender's request within its send-queue
timeout (0.2 s). One that takes longer may repeat the request once, and that is counted as duplicates. Every message
carries its coordinates, so that `scan` can tell what of an open range is there. A floor's target is a queue,
`topic/broker/queueId`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa

from connect_core.errors import ConfigError, Failure
from connect_core.rocketmq import Client, PermissionRefused, Queue, TopicMissing
from connect_core.sdk.records import Coordinates, Lineage
from connect_core.sdk.rereading import Claim, Reread
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Outside, Scan, Targets, Writer
from connect_core.sdk.spans import Span, uncovered
from connect_core.sdk.values import Attempt, Floor, Json, OpenRange, Range
from connect_core.systems.rocketmq import tracing
from connect_core.systems.rocketmq.appending import QueueAppender
from connect_core.systems.rocketmq.connecting import Connecting, is_queue, queue_of, telling_who_is_away
from connect_core.systems.rocketmq.dynamic_topics import DynamicTopics, outside
from connect_core.systems.rocketmq.finding import scan
from connect_core.systems.rocketmq.floors import Floors, near
from connect_core.systems.rocketmq.invalid import invalid_rows
from connect_core.systems.rocketmq.native import NativeAppender, NativeProducers, Slices, unsendable
from connect_core.systems.rocketmq.options import NATIVE, TOPIC, RocketMQSinkOptions
from connect_core.systems.rocketmq.rereading import reread
from connect_core.systems.rocketmq.routing import (
    Router,
    by_topic,
    has_rules,
    home_found,
    kept_homes,
    pinned,
    pins_of,
    queues_of,
    with_homes,
    with_refused,
    with_rules,
)
from connect_core.systems.rocketmq.standing import anchors, evidence_found, gone, passed_over, target_replaced
from connect_core.systems.rocketmq.target_topics import (
    check_message_limit,
    check_writable,
    queue_gone,
    queues_to_write,
    topic_missing,
)
from connect_core.systems.rocketmq.writing import QueueWriter, SpreadWriter


class RocketMQSink:
    """A `sdk.sink.Sink`, `ByTopic`, `Expiring`, `Homing`, `sdk.rereading.Rereadable` and `Traceable`; `Growing` where
    templates of rules name topics."""

    scan_tells_records = True

    def __init__(self, options: RocketMQSinkOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._connecting = Connecting(options, resources, options.send_timeout_s)
        self._native = NativeProducers(self._connecting.options, resources) if options.client == NATIVE else None
        self.grows = bool(options.rule_patterns)
        self._dynamic = DynamicTopics(options)
        self._floors = Floors(self._connecting, tolerant=options.on_replaced == "continue")
        self._still_there: set[Queue] = set()
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
        options, partitions = self._options, sum(topics.values())
        named = options.rule_topics or ()
        own = {} if options.only_rule_topics else self._wanted(topics)
        with self._connecting.client() as client:
            found = {
                topic: self._target(client, topic, partitions, floors, create=options.create)
                for topic in named
                if topic not in own
            }
            of_topics, unfit = self._own_targets(client, own, topics, floors)
            found |= of_topics
            dynamic, refused = self._dynamic_topics(client, floors, found.keys(), partitions)
        kept, gone = self._homes(floors, found | dynamic)
        pins = found
        if options.rule_topics is not None:
            to = {one: found[one] for one in named} | dynamic
            first = {"": pins_of("", (), options.order)} if options.only_rule_topics and not named else {}
            pins = {topic: with_refused(with_rules(one, to), refused) for topic, one in (found | first).items()}
        if options.only_rule_topics:
            return Targets(pins[named[0] if named else ""], by_partition=kept, gone=gone)
        of_topic = {topic: pins[self._options.target_for(topic)] for topic in topics if topic not in unfit}
        return Targets(pins.get(self._options.topic, {}), False, of_topic, kept, gone, unfit)

    def _dynamic_topics(
        self, client: Client, floors: Sequence[Floor], others: Collection[str], partitions: int
    ) -> tuple[dict[str, Json], dict[str, str]]:
        if not self.grows:
            return {}, {}
        create = self._options.dynamic_topics == "create"
        return self._dynamic.look(
            client, floors, others, lambda topic: self._target(client, topic, partitions, floors, create=create)
        )

    def outside(self, records: pa.RecordBatch, target: Json) -> Outside:
        return outside(records, target, self._options)

    def want(self, names: Sequence[str]) -> None:
        self._dynamic.want(names)

    def outgrown(self) -> bool:
        return self._dynamic.outgrown()

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
                gone[partition_id] = Failure.of(queue_gone(lost[0][1]))
            else:
                kept[partition_id] = with_homes(left)
        return kept, gone

    def _wanted(self, topics: Collection[str]) -> dict[str, list[str]]:
        """The target topics, and which topics of the source go to each, but for those that no topic can be for."""
        illegal = self._illegal(topics)
        wanted: dict[str, list[str]] = {} if TOPIC in self._options.topic else {self._options.topic: []}
        for topic in sorted(topics):
            if topic not in illegal:
                wanted.setdefault(self._options.target_for(topic), []).append(topic)
        return wanted

    def _own_targets(
        self, client: Client, wanted: Mapping[str, Sequence[str]], topics: Mapping[str, int], floors: Sequence[Floor]
    ) -> tuple[dict[str, Json], dict[str, Failure]]:
        """The pins of target topics, and which topics of the source have none. Raises where all go to one that is not
        there, or rules do."""
        found: dict[str, Json] = {}
        unfit = self._illegal(topics)
        for topic, sources in wanted.items():
            count = sum(topics[one] for one in sources)
            try:
                found[topic] = self._target(client, topic, count, floors, create=self._options.create)
            except (TopicMissing, PermissionRefused) as error:
                if topic in (self._options.topic, *(self._options.rule_topics or ())):
                    raise
                unfit |= dict.fromkeys(sources, Failure.of(error))
        return found, unfit

    def unfit(self, topics: Collection[str]) -> dict[str, Failure]:
        if self._options.only_rule_topics:
            return {}
        found, wanted = self._illegal(topics), self._wanted(topics)
        if not self._options.create:
            with self._connecting.client() as client:
                for topic, sources in wanted.items():
                    if not client.topics.exists(topic):
                        found |= dict.fromkeys(sources, Failure.of(topic_missing(topic)))
        return found

    def _illegal(self, topics: Collection[str]) -> dict[str, Failure]:
        """By topic of the source why what it would go to is no topic that may be written."""
        found: dict[str, Failure] = {}
        for topic in sorted(topics):
            try:
                self._options.target_for(topic)
            except ValueError as error:
                wrong = ConfigError(
                    f'"{topic}" would go to "{self._options.topic.replace(TOPIC, topic)}", which {error}',
                    where="sink.rocketmq.topic",
                    next_step="Give it another name with rename, or exclude it from the source",
                )
                found[topic] = Failure.of(wrong)
        return found

    def _target(self, client: Client, topic: str, partitions: int, floors: Sequence[Floor], *, create: bool) -> Json:
        mine = [floor for floor in floors if is_queue(floor.target) and queue_of(floor.target).topic == topic]
        brokers = {queue_of(floor.target).broker for floor in mine}
        queues = queues_to_write(client, self._options, topic, partitions, brokers, create=create)
        check_message_limit(client, self._options, topic, queues)
        self._floors.check(client, mine, queues)
        return pins_of(topic, queues, self._options.order)

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        return self._floors.of(wanted, known, restored=restored)

    def within(self, floors: Sequence[Floor]) -> list[Floor]:
        return self._floors.within(floors)

    def home_found(self, item: OpenRange) -> Json | None:
        return home_found(item)

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        with self._connecting.client() as client:
            return scan(client, wanted, self._options.on_unknown)

    def reread(self, claims: Sequence[Claim]) -> Iterator[Reread]:
        with self._connecting.client() as client:
            yield from reread(client, claims)

    def places(self, claim: Claim, offset: int) -> list[tuple[int, str]]:
        with self._connecting.client() as client:
            return tracing.places(client, claim, offset)

    def at_place(self, place: str) -> list[Coordinates]:
        with self._connecting.client() as client:
            return tracing.at_place(client, place)

    def with_key(self, target: Json, key: str) -> list[Coordinates]:
        with self._connecting.client() as client:
            return tracing.with_key(client, target, key)

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
            with telling_who_is_away(client, queues):
                check_writable(client, queues)
            yield self._paced(SpreadWriter(Router(wanted.range), opened, lineage, timeout_s, most_bytes))

    def _paced(self, writer: Writer) -> Writer:
        return Slices(writer) if self._native else writer

    @contextmanager
    def _appender(self, client: Client, queue: Queue, lineage: Lineage, wanted: OpenRange) -> Iterator[QueueAppender]:
        with telling_who_is_away(client, [queue]):
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
        return near(settled, end)


def _passed_over(client: Client, queue: Queue, wanted: OpenRange) -> Sequence[Span]:
    """What no `scan` looks at, because a plan has moved the range's floor past it (`floors`): a request that a
    broker had kept back may stand there."""
    floor = next((floor for floor in wanted.floors if floor.target == str(queue)), None)
    if floor is None:
        return ()
    begin, end = passed_over(floor)
    if begin >= end or near(begin, client.offsets.end(queue)) != begin:
        return ()
    return uncovered(max(begin, client.offsets.begin(queue)), end, ())
