"""What a connector promises, for people."""

from __future__ import annotations

from typing import Any

from connect_core.cli import output


def show(guarantee: dict[str, Any] | None, indent: str = "") -> None:
    """The promise, below it what it depends on, a line each, and the order that is kept."""
    if guarantee is None:
        output.line(f"{indent}guarantee: none is stated")
        return
    conditions = guarantee["conditions"]
    output.line(f"{indent}guarantee: {guarantee['delivery']}{', if' if conditions else ''}")
    for condition in conditions:
        output.line(f"{indent}  - {condition}")
    order = guarantee["order"]
    output.line(f"{indent}order: {f'within {order}' if order else 'none is promised'}")
