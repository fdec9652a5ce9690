"""What a connector promises, for people."""

from __future__ import annotations

from typing import Any

from connect_core.cli import output


def show(guarantee: dict[str, Any] | None, indent: str = "") -> None:
    """The promise, and below it what it depends on, a line each."""
    if guarantee is None:
        output.line(f"{indent}guarantee: none is stated")
        return
    conditions = guarantee["conditions"]
    output.line(f"{indent}guarantee: {guarantee['delivery']}{', if' if conditions else ''}")
    for condition in conditions:
        output.line(f"{indent}  - {condition}")
