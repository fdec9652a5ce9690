"""What a cluster says of one end of a document, for `check --probe`.

Reads only, but for one message to the topic of Waybill's own with which a sink waits.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

from connect_core.rocketmq import Client, PermissionRefused
from connect_core.sdk.plugin import ProbeResult, Role
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq.clusters import ClusterOptions
from connect_core.systems.rocketmq.finding import BARRIER_S
from connect_core.systems.rocketmq.native_library import missing
from connect_core.systems.rocketmq.options import NATIVE, TOPIC, RocketMQSourceOptions, is_pattern


def probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    cluster = ClusterOptions.of(options)
    with Client(cluster.client_options()) as client:
        topics, names = set(client.topics.all_names()), client.topics.names()
        effect = _effect(client) if role == "sink" else []
    yield ProbeResult(True, f"the name server answers ({', '.join(cluster.name_servers)})")
    yield from effect
    if role == "source":
        yield from _topics_read(RocketMQSourceOptions.model_validate(options), names, topics)
        return
    if options.get("client") == NATIVE:
        yield _native_client()
    own = () if options.get("only_rule_topics") else (options["topic"],)
    for topic in (*own, *(options.get("rule_topics") or ())):
        yield _topic_written(topic, topic in topics, options.get("create", True))


def _topic_written(topic: str, there: bool, made: bool) -> ProbeResult:
    if TOPIC in topic:
        return ProbeResult(
            True, f"a topic {topic} for each of the source; missing ones {'will' if made else 'may not'} be made"
        )
    words = "is there" if there else "will be created" if made else "does not exist"
    return ProbeResult(there or made, f"topic {topic} {words}")


def _effect(client: Client) -> list[ProbeResult]:
    """What the sink promises here: with its visibility barrier on every master, or without it (delivery rule 4)."""
    try:
        for broker in sorted(client.brokers.masters()):
            client.barrier(broker, deadline=time.monotonic() + BARRIER_S)
    except PermissionRefused as error:
        return [ProbeResult(False, f"at least once: requests in flight cannot be waited for. {error}")]
    return [ProbeResult(True, "exactly once: requests in flight can be waited for")]


def _native_client() -> ProbeResult:
    lacking = missing()
    return ProbeResult(lacking is None, f"{lacking or 'the native client and its library are there'}")


def _topics_read(
    options: RocketMQSourceOptions, names: Sequence[str], topics: Collection[str]
) -> Iterator[ProbeResult]:
    """`topics` are all there are, `names` those that people made."""
    for topic in options.topics:
        if is_pattern(topic):
            meant = sum(options.reads(name) and fnmatchcase(name, topic) for name in names)
            yield ProbeResult(True, f"{topic} means {meant:,} topic{'' if meant == 1 else 's'} now")
        else:
            yield ProbeResult(topic in topics, f"topic {topic} {'is there' if topic in topics else 'does not exist'}")
