"""The systems that can be on either end of a connector: one package each, with options, source and sink side by side,
and a `plugin.py` that says what Waybill has to know of it.

    source(Side("file", {"path": "/logs/*.log"}))      a `sdk.source.Source`
    sink(Side("rocketmq", {...}))                      a `sdk.sink.Sink`
    SYSTEMS["rocketmq"].sink_options                   the pydantic model that describes and checks the options

Called by driver and worker alike, with options whose references are resolved. Importing this module imports option
models only: drivers are imported inside the functions that build a source or a sink.

Connections live in `resources`, an `ExitStack` of the caller: a source or sink that is given one keeps its connections
there until the caller closes it; without one, every call connects for itself.
"""

from __future__ import annotations

from contextlib import ExitStack

from pydantic import BaseModel, ValidationError

from connect_core.errors import ConfigError, Fault
from connect_core.sdk.plugin import Plugin, Role
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.systems.registry import SYSTEMS
from connect_core.work import Side

__all__ = ["SYSTEMS", "checked", "injected", "sink", "source"]


def injected(options: type[BaseModel]) -> frozenset[str]:
    """Names of the fields that no document sets: whoever applies a document fills them in."""
    extras = ((name, field.json_schema_extra) for name, field in options.model_fields.items())
    return frozenset(name for name, extra in extras if isinstance(extra, dict) and extra.get("injected"))


def source(side: Side, resources: ExitStack | None = None) -> Source:
    """Raises ConfigError, with every fault, when the system is unknown, has no source, or the options are wrong."""
    system = _known(side.system)
    if system.open_source is None or system.source_options is None:
        raise ConfigError(f"System {system.name} cannot be a source", next_step=_choices("source_options"))
    return system.open_source(checked(system.source_options, side, "source"), resources)


def sink(side: Side, resources: ExitStack | None = None) -> Sink:
    """Raises ConfigError, with every fault, when the system is unknown, has no sink, or the options are wrong."""
    system = _known(side.system)
    if system.open_sink is None or system.sink_options is None:
        raise ConfigError(f"System {system.name} cannot be a sink", next_step=_choices("sink_options"))
    return system.open_sink(checked(system.sink_options, side, "sink"), resources)


def _known(name: str) -> Plugin:
    if name not in SYSTEMS:  # a process that stays may have looked before the package came
        SYSTEMS.reload()
    system = SYSTEMS.get(name)
    if system is None and (broken := SYSTEMS.broken.get(name)):
        raise broken
    if system is None:
        raise ConfigError(f"There is no system {name!r}", next_step=f"Choose one of {', '.join(SYSTEMS)}")
    return system


def checked(options: type[BaseModel], side: Side, role: Role) -> BaseModel:
    """An instance of the options. Raises ConfigError with every fault."""
    try:
        return options.model_validate(side.options)
    except ValidationError as error:
        faults = tuple(
            Fault(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors(include_input=False)
        )
        raise ConfigError(
            f"Wrong options for the {role} {side.system}",
            next_step="Correct the document, its connection, or the value that a reference in it gives",
            faults=faults,
        ) from None


def _choices(kind: str) -> str:
    return f"Choose one of {', '.join(name for name, system in SYSTEMS.items() if getattr(system, kind))}"
