"""The fields that payloads have, and what happens to a record that does not fit, for people."""

from __future__ import annotations

from typing import Any

from connect_core.cli import output


def show(schema: dict[str, Any] | None, indent: str = "") -> None:
    """Nothing where payloads are not compared with fields."""
    if schema is None:
        return
    import yaml

    fields = yaml.safe_dump(
        schema["fields"], sort_keys=False, allow_unicode=True, default_flow_style=True, width=float("inf")
    )
    output.line(f"{indent}fields: {fields.strip()}")
    output.line(f"{indent}  {schema['from']}")
    output.line(f"{indent}contract: {schema['contract']}")
    for sentence in schema["misfits"]:
        output.line(f"{indent}  - {sentence}")
