"""A connector as another product has stored it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connect_core.service.connectors import Wish


@dataclass(frozen=True)
class StoredConnector:
    """`positions` are pairs of a partition and where its source goes on, as the class of the connector names them;
    `offsets` are the same by our own keys, where another Waybill has told them. `notes` are what a person should know
    of it, and `problems` why it cannot be taken over."""

    name: str
    config: Mapping[str, str]
    state: Wish = "running"
    positions: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
