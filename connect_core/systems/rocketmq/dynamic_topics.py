"""Topics that templates of rules name, so that only records say which there are (docs/decisions/dynamic-topics.md).

A range pins all that are known: those in which something of the connector stands, and those that records have asked
for in this run. What else a record names ends its range (`sdk.sink.Growing`); then it is looked for, or created.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa

from connect_core import clock
from connect_core.rocketmq import Client, PermissionRefused, TopicMissing
from connect_core.rocketmq.system_names import is_system_topic
from connect_core.rocketmq.wire.route import Cluster
from connect_core.sdk.sink import Outside
from connect_core.sdk.values import Floor, Json
from connect_core.systems.rocketmq.connecting import check_registered, check_route, is_queue, queue_of
from connect_core.systems.rocketmq.options import RocketMQSinkOptions, check_target

LOOK_AGAIN_S = 10.0
"""A topic that was refused is looked for again, when a record names it, after so long."""
_MISSING = "does not exist (dynamic_topics: existing)"
_OF_ROCKETMQ = "is one that RocketMQ or Waybill uses for itself"
_NOT_WRITABLE = "may not be written, or not be created"

_Target = Callable[[str], Json]


class DynamicTopics:
    """What one run of a sink knows of them. Used by its driver."""

    def __init__(self, options: RocketMQSinkOptions) -> None:
        self._options = options
        self._wanted: dict[str, None] = {}
        self._targets: dict[str, Json] = {}
        self._refused: dict[str, str] = {}
        self._refused_since = 0.0

    def want(self, names: Iterable[str]) -> None:
        self._wanted |= dict.fromkeys(names)

    def outgrown(self) -> bool:
        return bool(self._wanted) or self._may_be_there_by_now()

    def look(
        self, client: Client, floors: Sequence[Floor], others: Collection[str], target: _Target
    ) -> tuple[dict[str, Json], dict[str, str]]:
        """What is pinned of each of them, and which are refused and why. `target` looks at a topic, which may be
        created for that, and gives its pins; `others` are targets anyway. Raises Unreachable when a broker is away that
        was written: what only that one has is not known to the name server."""
        if self._may_be_there_by_now():
            self._refused = {}
        written = [queue_of(floor.target) for floor in floors if is_queue(floor.target)]
        brokers = {queue.broker for queue in written}
        for topic in sorted({queue.topic for queue in written} - self._targets.keys() - {*others}):
            if self._is_meant(topic) and self._is_there(client, topic, brokers):
                self._targets[topic] = target(topic)
        wanted = [one for one in self._wanted if one not in self._targets and one not in others]
        cluster = client.brokers.cluster() if wanted else Cluster()
        for topic in wanted:
            if len(self._targets) < self._options.max_topics:
                check_registered(client, brokers, topic)
                self._take(cluster, topic, target)
        self._wanted = {}
        return dict(self._targets), dict(self._refused)

    def _may_be_there_by_now(self) -> bool:
        return bool(self._refused) and clock.monotonic() - self._refused_since >= LOOK_AGAIN_S

    def _is_meant(self, topic: str) -> bool:
        return any(fnmatchcase(topic, pattern) for pattern in self._options.rule_patterns)

    def _is_there(self, client: Client, topic: str, brokers: Collection[str]) -> bool:
        """One that was deleted is no target, as long as no record names it."""
        if client.topics.exists(topic):
            return True
        check_route(client, topic, brokers)
        return False

    def _take(self, cluster: Cluster, topic: str, target: _Target) -> None:
        """Brokers and clusters have topics of their names, which no record may write to."""
        if is_system_topic(topic, cluster):
            self._refuse(topic, _OF_ROCKETMQ)
            return
        try:
            self._targets[topic] = target(topic)
        except TopicMissing:
            self._refuse(topic, _MISSING)
        except PermissionRefused:
            self._refuse(topic, _NOT_WRITABLE)

    def _refuse(self, topic: str, why: str) -> None:
        if not self._refused:
            self._refused_since = clock.monotonic()
        self._refused[topic] = why


def outside(records: pa.RecordBatch, target: Json, options: RocketMQSinkOptions) -> Outside:
    """See `sdk.sink.Growing`. Pure."""
    to = records.column("to")
    if to.null_count == len(to):
        return Outside()
    encoded = to.dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    pinned = {target["topic"], *target["to"]} - {""}
    strange = [place for place, name in enumerate(names) if name not in pinned]
    if not strange:
        return Outside()
    full = len(target["to"].keys() - {*(options.rule_topics or ())}) >= options.max_topics
    why = {place: _refusal(names[place], target, options.max_topics, full=full) for place in strange}
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(np.isin(places, strange)).tolist()
    refused = [(row, *said) for row in rows if (said := why[int(places[row])])]
    wanted = [row for row in rows if not why[int(places[row])]]
    return Outside(refused, wanted, [names[int(places[row])] for row in wanted])


def _refusal(name: str, target: Json, most: int, *, full: bool) -> tuple[str, str] | None:
    """Error class and message; None for a topic that is to be looked for."""
    try:
        check_target(name)
    except ValueError as error:
        return "IllegalTopic", f"It would go to a topic whose name {error}"
    if why := target.get("refused", {}).get(name):
        return "TopicRefused", f"It would go to {name}, which {why}"
    return ("TooManyTopics", f"It would go to one topic more than max_topics ({most})") if full else None
