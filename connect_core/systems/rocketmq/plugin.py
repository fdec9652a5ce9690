"""What Waybill knows of Apache RocketMQ: see `sdk.plugin`."""

from __future__ import annotations

from contextlib import ExitStack

from connect_core.sdk.plugin import Plugin
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.systems.rocketmq.options import RocketMQSinkOptions, RocketMQSourceOptions


def _source(options: RocketMQSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.rocketmq.source import RocketMQSource

    return RocketMQSource(options, resources)


def _sink(options: RocketMQSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.rocketmq.sink import RocketMQSink

    return RocketMQSink(options, resources)


PLUGIN = Plugin(
    name="rocketmq",
    title="Apache RocketMQ",
    source_options=RocketMQSourceOptions,
    sink_options=RocketMQSinkOptions,
    open_source=_source,
    open_sink=_sink,
    rule_targets="named",
)
