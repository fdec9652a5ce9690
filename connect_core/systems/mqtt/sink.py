"""The MQTT sink: each record a publish, at least once; after a crash at most the publishes between two progress
messages are repeated (delivery rule 19).

A partition in a stream has a client id of its own and connects with it whenever it is written or looked at: the broker
throws out whoever had it before, and takes nothing more from there. So what is kept as its progress then is final. A
floor's target is the broker, its position the number of records delivered (`progress`).

For a broker that keeps no progress of ours (RocketMQ-MQTT) the ledger alone knows what is delivered: `LedgerMqttSink`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager

import pyarrow as pa

from connect_core import clock
from connect_core.errors import ConfigError, Retriable
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Targets, Writer
from connect_core.sdk.values import LIVE, Attempt, Floor, Json, Limit, OpenRange, Position, Range
from connect_core.systems.mqtt import progress
from connect_core.systems.mqtt.probing import RETAINED_NOT_KEPT, looking_id, missing
from connect_core.systems.mqtt.progress import MqttProgress
from connect_core.systems.mqtt.publications import Composer, Unfit, retained
from connect_core.systems.mqtt.publisher import Publisher
from connect_core.systems.mqtt.sink_options import MqttSinkOptions
from connect_core.systems.mqtt.writer import ANSWER_S, PublishWriter

_MISSING_S, _WRITER_S, _FIND_S = 0.5, 1.5, 5.0
"""How long a broker may take to send what it retains: where probably nothing is, where something is and a quantum has
begun, and where something is, or a ledger that was restored may not know of it, and there is time. What comes too late
counts as lost: then more is repeated, and told. A writer that has what came too late for `scan` ends."""
_LOOK_S = 1.0
_LOOKS = 5
"""A broker may be slow to send what it retains, or send it in parts."""
_KEEP_ADVICE = (
    "Let the broker grant QoS 1 and keep retained messages, at least under progress_topic, and let this user publish "
    "and subscribe to them"
)


class MqttSink:
    """A `sdk.sink.Sink`, and `RemoteState`."""

    scan_tells_records = False

    def __init__(self, options: MqttSinkOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._composer = Composer.of(options)
        self._most_bytes = int(options.max_packet_bytes)
        self._known: Mapping[str, bytes] | None = None

    def target_leases(self, task: int) -> tuple[str, ...]:
        """None: many may publish to one topic, and each partition has a progress of its own."""
        return ()

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        return ()

    def reaches(self, target: Json, name: str) -> bool:
        return bool(target["broker"] == name)

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        with self._looking() as publisher:
            self._check(publisher)
        return Targets({"broker": self._options.where})

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """The first of a partition has its progress kept before anything is planned: one that is missing later was
        lost. What is kept already was written by runs that the ledger may have forgotten."""
        target = wanted.pins.target["broker"]
        standing = tuple(floor for floor in known if floor.target == target)
        if standing:
            return standing
        kept = self._kept_before(wanted, _FIND_S if restored else _MISSING_S)
        if kept is None:
            self._make(wanted)
            return (Floor(wanted.partition.id, target, 0),)
        count = 0 if restored else kept.count
        return (Floor(wanted.partition.id, target, count, ahead=restored),)

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        return {item.id: self._found(item) for item in wanted.ranges}

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        composed = enumerate(self._composer.compose(records, self._most_bytes))
        return [(row, one.kind, one.message) for row, one in composed if isinstance(one, Unfit)]

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[Writer]:
        with self._connected(wanted.range) as publisher:
            self._most_bytes = publisher.most_bytes
            topic, floor = self._topic(wanted.range), floor_of(wanted)
            settled = floor.position
            kept = self._read(publisher, topic, _WRITER_S)
            left = tuple(floor.evidence.get("unsure", ()))
            begun = progress.begun(kept, wanted, settled, self._options.progress_every, attempt.epoch, left)
            # More may have been refused at a time than the document tolerates: then nothing of it was settled.
            careful = wanted.inherited and self._options.on_refused == "reject"
            writer = PublishWriter(publisher, self._composer, target_of(wanted), topic, begun, one_by_one=careful)
            if wanted.inherited or wanted.found is not None or kept is None or kept.count < settled:
                writer.keep(_limit_of(attempt))
            yield writer

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        """Also of backfills that are over. A connector that never ran has nothing at the broker, wherever that is."""
        if not known:
            return []
        prefix, uid = self._options.progress_topic, self._options.uid
        topics = [progress.topic_of(prefix, uid, LIVE, partition.id) for partition in known]
        with self._looking() as publisher:
            return clear_below(publisher, f"{prefix}/{uid}", topics)

    # --------------------------------------------------------------------------------------------------------- progress

    def _found(self, item: OpenRange) -> ScanResult:
        group, settled = self._options.progress_every, floor_of(item).position
        with self._connected(item.range) as publisher:
            kept = self._read(publisher, self._topic(item.range), _FIND_S)
        return ScanResult(
            scanned={target_of(item): max(kept.count if kept else 0, settled)},
            complete=True,
            prefix=progress.covered(kept, item.range, settled, group),
            possible_duplicates=progress.repeated(kept, item.range, settled),
        )

    def _read(self, publisher: Publisher, topic: str, limit_s: float) -> MqttProgress | None:
        payload = publisher.retained(topic, limit_s)
        return MqttProgress.decode(payload, topic) if payload else None

    def _kept_before(self, wanted: Range, limit_s: float) -> MqttProgress | None:
        """Of a partition that the ledger has no floor of. All are asked for at once, when the first one is. One that
        comes later than in `limit_s` is written over."""
        if self._known is None:
            with self._looking() as publisher:
                self._known = publisher.all_retained(self._topic_of_all(), limit_s)
        topic = self._topic(wanted)
        payload = self._known.get(topic)
        return MqttProgress.decode(payload, topic) if payload else None

    def _make(self, wanted: Range) -> None:
        """Raises ConfigError when the broker does not keep it."""
        topic, group = self._topic(wanted), self._options.progress_every
        first = MqttProgress(wanted.incarnation, wanted.begin, wanted.begin, group=group)
        with self._looking() as publisher:
            publisher.publish(retained(topic, first.encode()), wanted.begin)
            publisher.finish(ANSWER_S)
            publisher.require_accepted()
            if self._read(publisher, topic, _FIND_S) is None:
                raise ConfigError(RETAINED_NOT_KEPT, where=publisher.where, next_step=_KEEP_ADVICE)

    def _topic(self, wanted: Range) -> str:
        return progress.topic_of(self._options.progress_topic, self._options.uid, wanted.stream, wanted.partition.id)

    def _topic_of_all(self) -> str:
        return f"{self._options.progress_topic}/{self._options.uid}/#"

    # ------------------------------------------------------------------------------------------------------ connections

    @contextmanager
    def _connected(self, wanted: Range) -> Iterator[Publisher]:
        """As the one who has this partition: nobody else has it from here on."""
        client_id = self._options.sink_client_id(wanted.stream, wanted.partition.id)
        with closing(Publisher(self._options, client_id)) as publisher:
            yield publisher

    @contextmanager
    def _looking(self) -> Iterator[Publisher]:
        with closing(Publisher(self._options, looking_id(self._options))) as publisher:
            yield publisher

    def _check(self, publisher: Publisher) -> None:
        for what in missing(self._options, publisher.grants):
            raise ConfigError(what, where=publisher.where, next_step=_KEEP_ADVICE)


def floor_of(item: OpenRange) -> Floor:
    """Its position is the number of records that the ledger knows to be delivered."""
    nothing = Floor(item.range.partition.id, target_of(item), 0)
    return next((floor for floor in item.floors if floor.target == target_of(item)), nothing)


def target_of(item: OpenRange) -> str:
    return str(item.range.pins.target["broker"])


def _limit_of(attempt: Attempt) -> Limit:
    """For what is sent before the first record. Without a deadline in drills: as long as an answer may take."""
    deadline_ns = attempt.deadline_ns or clock.now_ns() + int(ANSWER_S * 1e9)
    return Limit(deadline_ns, deadline_ns)


class LedgerMqttSink(MqttSink):
    """A `sdk.sink.Sink` for a broker that keeps no progress of ours (RocketMQ-MQTT): the ledger alone knows what is
    delivered.

    So a range ends after `progress_every` publishes, and is settled. An attempt that dies has sent no more than these,
    and they are sent again; how many attempts have left a range is kept with what was looked for of it, so that all of
    them count. Nothing at the broker keeps two attempts apart: their leases and deadlines do."""

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        target = str(wanted.pins.target["broker"])
        standing = tuple(floor for floor in known if floor.target == target)
        return standing or (Floor(wanted.partition.id, target, 0, ahead=restored),)

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """There is nothing to look at: each attempt that has left a range may have sent all that it was let."""
        return {item.id: self._left(item) for item in wanted.ranges}

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[Writer]:
        with self._connected(wanted.range) as publisher:
            self._most_bytes = publisher.most_bytes
            floor = floor_of(wanted)
            begun = progress.begun_by_ledger(wanted, floor.position, self._options.progress_every, floor.evidence)
            yield PublishWriter(publisher, self._composer, target_of(wanted), None, begun)

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        return []

    def _left(self, item: OpenRange) -> ScanResult:
        settled = floor_of(item).position
        prefix = progress.covered_by_ledger(item, self._options.progress_every)
        return ScanResult(scanned={target_of(item): settled}, complete=True, prefix=prefix)


def clear_below(publisher: Publisher, prefix: str, known: Collection[str]) -> list[str]:
    """Clears the topics that are `known`, and whatever else is retained below the prefix: progress of backfills, and of
    partitions that are no more. Raises what the broker answers to a publish that it refuses, and Retriable when
    somebody goes on writing there."""
    heard: set[str] = set()
    left = {*known}
    for _ in range(_LOOKS):
        found = {*publisher.all_retained(f"{prefix}/#", _LOOK_S)}
        heard |= found
        left |= found
        if not left:
            return [f"its progress is cleared at the broker: {len(heard)} retained messages"] if heard else []
        for topic in sorted(left):
            publisher.publish(retained(topic, b""), 0)
            publisher.finish(ANSWER_S)
            publisher.require_accepted()
        left.clear()
    raise Retriable(
        "The progress that was cleared comes again",
        where=f"{publisher.where}, {prefix}/#",
        next_step="Find out who publishes there: perhaps an attempt on another machine still runs",
    )
