"""The systems that can be on either end of a connector: one package each, with options, source and sink side by side.

    source(Side("file", {"path": "/logs/*.log"}))      a `sdk.source.Source`
    sink(Side("rocketmq", {...}))                      a `sdk.sink.Sink`
    SYSTEMS["rocketmq"].sink_options                   the pydantic model that describes and checks the options

Called by driver and worker alike, with options whose references are resolved. Systems of other packages are found by
the entry point group `waybill.systems`; each entry is a `System`. Importing this module imports option models only:
drivers are imported inside the functions that build a source or a sink, and entry points are looked up when a name is.

Connections live in `resources`, an `ExitStack` of the caller: a source or sink that is given one keeps its connections
there until the caller closes it; without one, every call connects for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from connect_core.errors import ConfigError, Fault
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.systems.file.options import FileSinkOptions, FileSourceOptions
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.sink_options import MqttSinkOptions
from connect_core.systems.rocketmq.options import RocketMQSinkOptions, RocketMQSourceOptions
from connect_core.work import Side

ENTRY_POINTS = "waybill.systems"

RuleTargets = Literal["none", "named", "any"]
End = Literal["source", "sink"]


@dataclass(frozen=True)
class System:
    """One kind of thing on the other side. A system without a source has no `source_options`; likewise for sinks.

    `rule_targets` says what a rule may name with `to`: nothing; topics by name, which the sink is told of before a
    range is planned (an injected option `rule_topics`); or any text for each record (its column `to`). `open_source`
    and `open_sink` take an instance of the options and the caller's resources.
    `lasting`: which of its two ends are a `sdk.source.Lasting`.
    """

    name: str
    title: str
    source_options: type[BaseModel] | None = None
    sink_options: type[BaseModel] | None = None
    open_source: Callable[[Any, ExitStack | None], Source] | None = None
    open_sink: Callable[[Any, ExitStack | None], Sink] | None = None
    rule_targets: RuleTargets = "none"
    lasting: tuple[End, ...] = ()


def injected(options: type[BaseModel]) -> frozenset[str]:
    """Names of the fields that no document sets: whoever applies a document fills them in."""
    extras = ((name, field.json_schema_extra) for name, field in options.model_fields.items())
    return frozenset(name for name, extra in extras if isinstance(extra, dict) and extra.get("injected"))


def source(side: Side, resources: ExitStack | None = None) -> Source:
    """Raises ConfigError, with every fault, when the system is unknown, has no source, or the options are wrong."""
    system = _known(side.system)
    if system.open_source is None or system.source_options is None:
        raise ConfigError(f"System {system.name} cannot be a source", next_step=_choices("source_options"))
    return system.open_source(_checked(system.source_options, side), resources)


def sink(side: Side, resources: ExitStack | None = None) -> Sink:
    """Raises ConfigError, with every fault, when the system is unknown, has no sink, or the options are wrong."""
    system = _known(side.system)
    if system.open_sink is None or system.sink_options is None:
        raise ConfigError(f"System {system.name} cannot be a sink", next_step=_choices("sink_options"))
    return system.open_sink(_checked(system.sink_options, side), resources)


def _known(name: str) -> System:
    system = SYSTEMS.get(name)
    if system is None:
        raise ConfigError(f"There is no system {name!r}", next_step=f"Choose one of {', '.join(SYSTEMS)}")
    return system


def _checked(options: type[BaseModel], side: Side) -> BaseModel:
    try:
        return options.model_validate(side.options)
    except ValidationError as error:
        faults = tuple(
            Fault(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors(include_input=False)
        )
        raise ConfigError(f"Wrong options for system {side.system}", faults=faults) from None


def _choices(kind: str) -> str:
    return f"Choose one of {', '.join(name for name, system in SYSTEMS.items() if getattr(system, kind))}"


def _file_source(options: FileSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.file.source import FileSource

    return FileSource(options)


def _file_sink(options: FileSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.file.sink import FileSink

    return FileSink(options)


def _mqtt_source(options: MqttSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.mqtt.source import MqttSource

    return MqttSource(options, resources)


def _mqtt_sink(options: MqttSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.mqtt.sink import MqttSink

    return MqttSink(options, resources)


def _rocketmq_source(options: RocketMQSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.rocketmq.source import RocketMQSource

    return RocketMQSource(options, resources)


def _rocketmq_sink(options: RocketMQSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.rocketmq.sink import RocketMQSink

    return RocketMQSink(options, resources)


class _Registry(Mapping[str, System]):
    """Our own systems, and those of other packages, which are looked up at the first use."""

    @cached_property
    def _systems(self) -> dict[str, System]:
        outside = {entry.name: entry.load() for entry in entry_points(group=ENTRY_POINTS)}
        return {**outside, **_OWN}

    def __getitem__(self, name: str) -> System:
        return self._systems[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._systems)

    def __len__(self) -> int:
        return len(self._systems)


_OWN = {
    system.name: system
    for system in (
        System("file", "Files of lines", FileSourceOptions, FileSinkOptions, _file_source, _file_sink),
        System(
            "mqtt",
            "MQTT",
            MqttSourceOptions,
            MqttSinkOptions,
            _mqtt_source,
            _mqtt_sink,
            rule_targets="any",
            lasting=("source", "sink"),
        ),
        System(
            "rocketmq",
            "Apache RocketMQ",
            RocketMQSourceOptions,
            RocketMQSinkOptions,
            _rocketmq_source,
            _rocketmq_sink,
            rule_targets="named",
        ),
    )
}

SYSTEMS: Mapping[str, System] = _Registry()
