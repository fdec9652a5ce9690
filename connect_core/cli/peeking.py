"""peek: the newest messages of a topic, or what stands last in the target of a connector. Reads only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag


def register(app: typer.Typer) -> None:
    app.command("peek")(peek)


def peek(
    name: Annotated[
        str,
        typer.Argument(
            help="A connector (its target is shown), or a topic.",
            metavar="NAME|TOPIC",
            autocompletion=completing.connectors,
        ),
    ],
    last: Annotated[int, typer.Option("--last", min=1, max=10_000, help="How many, the newest.")] = 5,
    topic: Annotated[bool, typer.Option("--topic", help="A topic, even when a connector has this name.")] = False,
    connection: Annotated[str, typer.Option("--connection", help="Where the topic is.")] = "main",
    as_json: JsonFlag = False,
) -> None:
    """Look at the newest messages."""
    told = installation().newest(name, last, is_topic=topic, connection=connection)
    output.emit(as_json, told, lambda: _show(told["messages"]))


def _show(messages: list[dict[str, Any]]) -> None:
    for message in messages:
        known = {key: message.get(key) for key in ("queue", "offset", "key", "tags")}
        head = [f"{key} {value}" for key, value in known.items() if value not in (None, "")]
        if message.get("stored_at"):
            head.append(output.cell(message["stored_at"]))
        if head:
            output.line(" | ".join(head))
        output.line(output.shown_bytes(message["value"]))
    if not messages:
        output.line("nothing there")
