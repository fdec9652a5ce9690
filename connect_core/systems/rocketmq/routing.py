"""Which queues the records of a range go to: pure functions of what the range pins, its partition, and each record.

By partition and by queue there is one, for good: a partition that was written before goes on in its queue (`home`),
however many the topic has by then; a new one is dealt out among those that there are now. By key a record's queue is
chosen by a hash among those that the range pinned, in their order: a retry routes as the first attempt did, however
many queues the topic has by then, on any machine and under any version of Python. A record without a key goes to the
queue that its partition has anyway.

Where rules may send a record to other topics, the range pins all of these with their queues (`to`), and of topics that
templates name those that are refused (`refused`). In each topic queues are chosen in the same way. Where every record
goes to a topic that a template names there is no first one: its name is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rocketmq import Queue
from connect_core.rocketmq.wire.properties import SHARDING_KEY
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Floor, Json, OpenRange, Range
from connect_core.systems.rocketmq.connecting import is_queue, queue_of

KEY, BY_SHARDING_KEY = "key", "sharding_key"
_BY_KEY = (KEY, BY_SHARDING_KEY)
HASH = "crc32"
"""Of the key's bytes, modulo the number of queues. Pinned by its name, so that another one can come beside it."""
_PAIR_END = b"\x02"
_SHARDING_KEY = _PAIR_END + SHARDING_KEY.encode() + b"\x01"


def pins_of(topic: str, queues: Sequence[Queue], order: str) -> Json:
    """What a range stores of its target. Ranges by partition look as they did before there was a choice."""
    pins: Json = {"topic": topic, "queues": [[queue.broker, queue.queue_id] for queue in queues]}
    if order == "partition":
        return pins
    return pins | {"order": order} | ({"hash": HASH} if order in _BY_KEY else {})


def with_rules(pins: Json, topics: Mapping[str, Json]) -> Json:
    """The same where there are rules. `topics` are what would be pinned of each that they name; often none."""
    return pins | {"to": {topic: own["queues"] for topic, own in topics.items()}}


def with_refused(pins: Json, refused: Mapping[str, str]) -> Json:
    """The same where a template has named topics that take nothing, each with why."""
    return pins | {"refused": dict(refused)} if refused else pins


def kept_homes(floors: Iterable[Floor], targets: Mapping[str, Json]) -> dict[str, dict[str, Queue]]:
    """By id of the partition and by topic the queue in which it goes on: the one that it has a floor in. `targets` are
    the pins of each topic. Of several, as a choice of before or a look everywhere leaves them, the one that was written
    last; where that is not known, none."""
    known: dict[tuple[str, str], list[Floor]] = {}
    for floor in (one for one in floors if is_queue(one.target)):  # others are of the sink before
        topic = queue_of(floor.target).topic
        if topic in targets and targets[topic].get("order") not in _BY_KEY:
            known.setdefault((floor.partition_id, topic), []).append(floor)
    homes: dict[str, dict[str, Queue]] = {}
    for (partition_id, topic), mine in known.items():
        written = [floor for floor in mine if "at" in floor.evidence] or mine
        newest = max(written, key=lambda floor: str(floor.evidence.get("id", "")))
        if len(written) == 1 or newest.evidence.get("id"):
            homes.setdefault(partition_id, {})[topic] = queue_of(newest.target)
    return homes


def with_homes(homes: Mapping[str, Queue]) -> Json:
    """What a partition adds to the pins of its range."""
    return {"home": {topic: [queue.broker, queue.queue_id] for topic, queue in homes.items()}}


def places_forgotten(wanted: Range, known: Iterable[Floor]) -> list[Queue]:
    """The other queues of each topic in which a range has one, and its partition no floor: it may have gone to any of
    them when the topic had fewer."""
    topics = {queue_of(floor.target).topic for floor in known if is_queue(floor.target)}
    return [
        queue
        for topic, own in by_topic(wanted.pins.target).items()
        if topic not in topics and not spreads(own)
        for queue in _pinned(own)
        if queue != home_queue(wanted.partition, wanted.slot, own)
    ]


def home_found(item: OpenRange) -> Json | None:
    """What a range pins so that it goes where the newest record of its partition was found; None where it does."""
    target, found = item.range.pins.target, item.known
    homes: dict[str, Queue] = {}
    for topic, own in by_topic(target).items():
        there = {place: queue_of(name) for place, name in enumerate(found.targets) if queue_of(name).topic == topic}
        hits = found.hits[np.isin(found.hits[:, 2], list(there))]
        is_home = home_queue(item.range.partition, item.range.slot, own) in there.values()
        if len(hits) and not is_home and not spreads(own):
            homes[topic] = there[int(hits[hits[:, 0].argmax(), 2])]
    return {"home": target.get("home", {}) | with_homes(homes)["home"]} if homes else None


def has_rules(target: Json) -> bool:
    """Whether a record may have several outputs."""
    return "to" in target


def by_topic(target: Json) -> dict[str, Json]:
    """What is pinned of each topic that an output can go to. The first is for those that no rule sends elsewhere."""
    own = {name: value for name, value in target.items() if name not in ("to", "refused")}
    others = {topic: own | {"topic": topic, "queues": queues} for topic, queues in target.get("to", {}).items()}
    return ({target["topic"]: own} if target["topic"] else {}) | others


def pinned(target: Json) -> list[Queue]:
    """All of its queues, in all of its topics."""
    return [queue for own in by_topic(target).values() for queue in _pinned(own)]


def _pinned(target: Json) -> list[Queue]:
    return [Queue(target["topic"], broker, number) for broker, number in target["queues"]]


def spreads(target: Json) -> bool:
    """Whether the records of one range can stand in several queues of a topic."""
    return target.get("order") in _BY_KEY and len(target["queues"]) > 1


def home_queue(partition: Partition, slot: int, target: Json) -> Queue:
    """Where the records of a partition go in the topic, by key those without one."""
    if kept := target.get("home", {}).get(target["topic"]):
        return Queue(target["topic"], *kept)
    queues = _pinned(target)
    if target.get("order") == "queue":
        return _same_queue(queue_of(partition.key), queues)
    return queues[slot % len(queues)]


def queues_for(partition: Partition, slot: int, target: Json) -> list[Queue]:
    """Every queue that an output of a record of the partition can go to."""
    return [
        queue
        for own in by_topic(target).values()
        for queue in (_pinned(own) if spreads(own) else [home_queue(partition, slot, own)])
    ]


def queues_of(wanted: Range) -> list[Queue]:
    return queues_for(wanted.partition, wanted.slot, wanted.pins.target)


class Routed(NamedTuple):
    """The rows of a batch that go to one queue, in their order."""

    queue: Queue
    rows: NDArray[np.int64]


class Router:
    """For one range whose outputs can go to several queues, or of which a record can have several."""

    def __init__(self, wanted: Range) -> None:
        self.queues = queues_of(wanted)
        self._first = wanted.pins.target["topic"]
        self._by_topic = {topic: _TopicRouter(wanted, own) for topic, own in by_topic(wanted.pins.target).items()}

    def routed(self, records: pa.RecordBatch) -> Iterator[Routed]:
        """Each row once, by queue; queues that get nothing are left out."""
        to = records.column("to")
        if to.null_count == len(to):
            yield from self._by_topic[self._first].routed(records)
            return
        encoded = pc.fill_null(to, self._first).dictionary_encode()
        for place, topic in enumerate(encoded.dictionary.to_pylist()):
            rows = np.flatnonzero(encoded.indices.to_numpy() == place)
            for queue, chosen in self._by_topic[topic].routed(records.take(pa.array(rows))):
                yield Routed(queue, rows[chosen])


class _TopicRouter:
    """In one topic."""

    def __init__(self, wanted: Range, target: Json) -> None:
        self._home = home_queue(wanted.partition, wanted.slot, target)
        self._queues = _pinned(target) if spreads(target) else [self._home]
        self._order = target.get("order", "")

    def routed(self, records: pa.RecordBatch) -> Iterator[Routed]:
        if len(self._queues) == 1:
            yield Routed(self._home, np.arange(len(records)))
            return
        places = places_of(_keys(records, self._order), len(self._queues), self._queues.index(self._home))
        by_place = np.argsort(places, kind="stable")
        counts = np.bincount(places, minlength=len(self._queues))
        ends = np.cumsum(counts)
        for place in np.flatnonzero(counts):
            yield Routed(self._queues[place], by_place[ends[place] - counts[place] : ends[place]])


def places_of(keys: pa.Array, queues: int, home: int) -> NDArray[np.int64]:
    """For each key (binary) the number of its queue; `home` for those that are null."""
    encoded = keys.dictionary_encode()
    known = np.array([crc32(key) % queues for key in encoded.dictionary.to_pylist()], dtype=np.int64)
    places: NDArray[np.int64] = np.append(known, home)[pc.fill_null(encoded.indices, -1).to_numpy()]
    return places


def _keys(records: pa.RecordBatch, order: str) -> pa.Array:
    """Null where a record has none, or an empty one."""
    if order == KEY:
        keys = records.column("key").cast(pa.binary())
        return pc.if_else(pc.equal(keys, b""), pa.scalar(None, pa.binary()), keys)
    headers = records.column("headers")
    if headers.null_count == len(records):
        return pa.nulls(len(records), pa.binary())
    return pa.array([_sharding_key(one) for one in headers.to_pylist()], pa.binary())


def _sharding_key(headers: bytes | None) -> bytes | None:
    """Of equal names the last counts, as for RocketMQ's readers."""
    _, found, rest = (_PAIR_END + (headers or b"")).rpartition(_SHARDING_KEY)
    return (rest.partition(_PAIR_END)[0] or None) if found else None


def _same_queue(source: Queue, queues: Sequence[Queue]) -> Queue:
    """The queue with the source's number, modulo what there is, on the broker that the source's name falls to. All
    queues of a source broker are on one broker of the target, so that with as many queues none of them is shared."""
    brokers = sorted({queue.broker for queue in queues})
    broker = source.broker if source.broker in brokers else brokers[crc32(source.broker.encode()) % len(brokers)]
    there = [queue for queue in queues if queue.broker == broker]
    return there[source.queue_id % len(there)]
