"""What Waybill knows of Apache RocketMQ: see `sdk.plugin`."""

from __future__ import annotations

from contextlib import ExitStack

from connect_core.sdk.plugin import Plugin
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.systems.rocketmq.compatibility import against_rules, conflicts, feeds, rule_target
from connect_core.systems.rocketmq.flat_keys import HUB
from connect_core.systems.rocketmq.options import SYSTEM, RocketMQSinkOptions, RocketMQSourceOptions


def _source(options: RocketMQSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.rocketmq.source import RocketMQSource

    return RocketMQSource(options, resources)


def _sink(options: RocketMQSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.rocketmq.sink import RocketMQSink

    return RocketMQSink(options, resources)


PLUGIN = Plugin(
    name=SYSTEM,
    title="Apache RocketMQ",
    source_options=RocketMQSourceOptions,
    sink_options=RocketMQSinkOptions,
    open_source=_source,
    open_sink=_sink,
    rule_targets="named",
    abilities=frozenset({"topics", "queues", "tells_records"}),
    conflicts=conflicts,
    feeds=feeds,
    against_rules=against_rules,
    rule_target=rule_target,
    flat_hub=HUB,
)
