"""What Waybill knows of Apache RocketMQ: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from connect_core.sdk.groups import ConsumerGroups, GroupStanding, GroupTranslator, ReplicatedAt
from connect_core.sdk.plugin import Plugin, ProbeResult, Role
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.sdk.whole_topic import WholeTopic
from connect_core.systems.rocketmq.compatibility import conflict, feeds, rule_target, rules_conflict
from connect_core.systems.rocketmq.flat_keys import HUB
from connect_core.systems.rocketmq.guarantee import guarantee
from connect_core.systems.rocketmq.options import NATIVE, SYSTEM, RocketMQSinkOptions, RocketMQSourceOptions

if TYPE_CHECKING:
    import pyarrow as pa


def _source(options: RocketMQSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.rocketmq.source import RocketMQSource

    return RocketMQSource(options, resources)


def _sink(options: RocketMQSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.rocketmq.sink import RocketMQSink

    return RocketMQSink(options, resources)


def _advice(role: Role, options: Json) -> Iterator[str]:
    """What the native client lacks here, when the sink wants it. Lanes may run on another host, which has it."""
    if role == "sink" and options.get("client") == NATIVE:
        from connect_core.systems.rocketmq.native_library import missing

        if lacking := missing():
            yield f"{lacking.where}: {lacking.what}. {lacking.next_step}"


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.rocketmq.probing import probe

    return probe(role, options)


def _peek_target(sink: Json, last: int) -> list[Json]:
    return _peek_topic(sink, sink["topic"], last)


def _peek_topic(cluster: Json, topic: str, last: int) -> list[Json]:
    from connect_core.systems.rocketmq.peeking import in_topic

    return in_topic(cluster, topic, last)


def _whole_topic(cluster: Json, topic: str) -> WholeTopic:
    from connect_core.systems.rocketmq.whole_topic import read_whole

    return read_whole(cluster, topic)


def _peek_source(options: RocketMQSourceOptions, last: int) -> pa.Table:
    from connect_core.systems.rocketmq.peeking import newest

    return newest(options, last)


def _in_step(sink: Json) -> Sequence[str]:
    return sink.get("groups") or ()


def _between(
    source: Json, sink: Json, partitions: Sequence[Partition], replicated_at: ReplicatedAt
) -> AbstractContextManager[GroupTranslator]:
    from connect_core.systems.rocketmq.groups import between

    return between(source, sink, partitions, replicated_at)


def _standing(options: RocketMQSourceOptions) -> GroupStanding | None:
    from connect_core.systems.rocketmq.group_standing import standing

    return standing(options)


PLUGIN = Plugin(
    name=SYSTEM,
    title="Apache RocketMQ",
    source_options=RocketMQSourceOptions,
    sink_options=RocketMQSinkOptions,
    open_source=_source,
    open_sink=_sink,
    preload=("connect_core.systems.rocketmq.sink", "connect_core.systems.rocketmq.source"),
    rule_targets="any",
    connections={"main": {"name_servers": "${stack:name_servers}"}},
    advice=_advice,
    abilities=frozenset({"topics", "queues", "scan_tells_records", "rereads"}),
    guarantee=guarantee,
    conflict=conflict,
    feeds=feeds,
    event_headers=SYSTEM,
    rules_conflict=rules_conflict,
    rule_target=rule_target,
    flat_hub=HUB,
    probe=_probe,
    peek_target=_peek_target,
    peek_topic=_peek_topic,
    whole_topic=_whole_topic,
    peek_source=_peek_source,
    groups=ConsumerGroups("RocketMQ", _in_step, _between, _standing),
)
