"""From JSON to the values that use cases give: times are times again, and what a record held is bytes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from connect_core.errors import ConfigError
from connect_core.sdk.values import Json


def timed(value: Any, *keys: str) -> Any:
    """With the times under these keys, wherever they are in it."""
    return _read(value, keys, _moment)


def held(value: Any, *keys: str) -> Any:
    """With the bytes under these keys, wherever they are in it."""
    return _read(value, keys, _bytes)


def whole(told: Json, *keys: str) -> Json:
    """Raises KeyError where one of these is missing: what was asked for was not done by a Waybill."""
    if missing := [key for key in keys if key not in told]:
        raise KeyError(missing[0])
    return told


def at(name: str, *below: str) -> str:
    """Where a connector is, or something of it. Raises ConfigError for what would be another path."""
    if not is_name(name):
        raise ConfigError(f"{name!r} is no name of a connector", next_step="See `waybill connectors list`")
    if wrong := [one for one in below if not is_name(one)]:
        raise ConfigError(f"Connector {name} has no {wrong[0]!r}")
    return "/".join(["/connectors", *(quote(one, safe="") for one in (name, *below))])


def is_name(text: str) -> bool:
    """Whether it can be a part of a path."""
    return text.strip(".") != "" and "/" not in text


def pairs(given: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE. Raises ConfigError."""
    split = [one.partition("=") for one in given]
    if wrong := [one for one, (_, sign, _) in zip(given, split, strict=True) if not sign]:
        raise ConfigError(f"--sink {wrong[0]!r} is not KEY=VALUE")
    return {key: value for key, _, value in split}


def refuse(given: object, option: str) -> None:
    """Raises ConfigError where an option is given that no server has."""
    if given:
        raise ConfigError(
            f"{option} is not there for another host: its server has no such request",
            next_step=f"Leave {option} out, or give the command on the host of the server without --server",
        )


def _read(value: Any, keys: Sequence[str], read: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_read(one, keys, read) for one in value]
    if isinstance(value, dict):
        return {key: read(one) if key in keys else _read(one, keys, read) for key, one in value.items()}
    return value


def _moment(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
