"""The sink of a backfill: that of the document with other options, checked like a document. Opens no connection.

What can have one writer only (a file) must be another one for each stream: unless it is given, it is that of the
document with the stream's name behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connect_core.config.checking import check
from connect_core.config.option_models import find, single_writer_fields
from connect_core.config.settings import Settings
from connect_core.config.written import Written
from connect_core.sdk.values import Json


def sink_changes(data: Json, given: Mapping[str, str], stream: str, home: Path | None, settings: Settings) -> Json:
    """The options of the document's sink that are others for `stream`. Raises ConfigError with every fault."""
    system, options = _sink(data)
    changes = {**{name: f"{options[name]}.{stream}" for name in single_writers(data)}, **given}
    checked = check(Written(diverted(data, changes), f"the sink of {stream}"), home, settings)
    kept = checked.data["sink"][system]
    return {name: kept[name] for name in changes}


def single_writers(data: Json) -> list[str]:
    """The options of the document's sink that name what can have one writer only, and so are others for each stream."""
    system, options = _sink(data)
    model = find("sink", system)
    return [name for name in single_writer_fields(model) if name in options] if model else []


def diverted(data: Json, changes: Json) -> Json:
    """The document with these options of its sink changed."""
    system, options = _sink(data)
    return {**data, "sink": {system: {**options, **changes}}}


def _sink(data: Json) -> tuple[str, dict[str, Any]]:
    ((system, options),) = data["sink"].items()
    return system, options or {}
