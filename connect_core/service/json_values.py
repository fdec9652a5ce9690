"""The form in JSON of what JSON has no form for: the `default` of `json.dumps` for every edge."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """Times in ISO 8601, dataclasses as objects, bytes as text where they are text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return shown_bytes(bytes(value))
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return sorted(value) if isinstance(value, (set, frozenset)) else list(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def fields_of(value: Any) -> dict[str, Any]:
    """Of a dataclass, in their order."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def shown_bytes(value: bytes) -> str:
    """Bytes as text; those that are no UTF-8 as \\xNN."""
    return value.decode("utf-8", errors="backslashreplace")
