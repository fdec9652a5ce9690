"""Takes parsed documents apart: each function gives the part that was asked for in the type that was asked for, or
raises `WireFormatError`. For the modules that build values from what `json_reader` gives.
"""

from __future__ import annotations

from typing import Any

from connect_core.errors import WireFormatError


def as_object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WireFormatError(f"{what} is not an object")
    return value


def list_of(document: dict[str, Any], name: str) -> list[Any]:
    value = document.get(name) or []
    if not isinstance(value, list):
        raise WireFormatError(f"{name} is not a list")
    return value


def as_texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise WireFormatError("Names are not a list of texts")
    return value


def text_of(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise WireFormatError(f"{name} is not a text")
    return value


def number_of(item: dict[str, Any], name: str) -> int:
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WireFormatError(f"{name} is not a whole number")
    return value
