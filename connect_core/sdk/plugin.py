"""What Waybill has to know of a system: a `Plugin`, filled in by the package that brings the system.

    PLUGIN = Plugin("file", "Files of lines", FileSourceOptions, FileSinkOptions, _source, _sink)

Only the name is needed, and one of the two ends. Everything else has a default: what a plugin does not say, its system
does not have or nobody can ask it. A plugin is loaded with the options of its system and before any driver: its
functions import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source

Role = Literal["source", "sink"]
"""Which end of a connector."""
ROLES: tuple[Role, Role] = ("source", "sink")

RuleTargets = Literal["none", "named", "any"]


@dataclass(frozen=True)
class Plugin:
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
    lasting: tuple[Role, ...] = ()

    def options(self, role: Role) -> type[BaseModel] | None:
        """The model that describes and checks the options of one end; None where there is no such end."""
        return self.source_options if role == "source" else self.sink_options
