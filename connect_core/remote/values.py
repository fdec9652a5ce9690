"""From JSON to the values that use cases give: times are times again. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from connect_core.errors import ConfigError


def timed(value: Any, *keys: str) -> Any:
    """With the times under these keys, wherever they are in it."""
    if isinstance(value, list):
        return [timed(one, *keys) for one in value]
    if isinstance(value, dict):
        return {key: _moment(one) if key in keys else timed(one, *keys) for key, one in value.items()}
    return value


def at(name: str) -> str:
    """Where a connector is. Raises ConfigError for what would be another path."""
    if name.strip(".") == "" or "/" in name:
        raise ConfigError(f"{name!r} is no name of a connector", next_step="See `waybill connectors list`")
    return f"/connectors/{quote(name, safe='')}"


def _moment(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
