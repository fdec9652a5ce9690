"""peek: the newest messages of a topic, or what stands last in the target of a connector. Reads only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, session
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError, Unreachable

if TYPE_CHECKING:
    from connect_core.sdk.values import Json
    from connect_core.work import Side

_TAIL_BYTES = 1024 * 1024


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
    side = None if topic else _target_of(name)
    if side is None:
        messages = _messages(_named(connection), name, last)
    elif side.system == "rocketmq":
        messages = _messages(side.options, side.options["topic"], last)
    elif side.system == "file":
        messages = [{"value": output.shown_bytes(line)} for line in last_lines(Path(side.options["path"]), last)]
    else:
        raise ConfigError(f"peek cannot look into {side.system}", next_step="It looks into rocketmq and file")
    told = {"name": name, "messages": messages}
    output.emit(as_json, told, lambda: _show(messages))


def _target_of(name: str) -> Side | None:
    """The sink of the connector of that name; None when there is no such connector."""
    if not session.ledger_exists():
        return None
    with session.reading() as opened:
        known = {connector.name: connector for connector in opened.ledger.connectors()}
        return opened.resolved(known[name]).sink if name in known else None


def _named(connection: str) -> Json:
    """The options of a RocketMQ connection of this home."""
    from connect_core.config.connections import find, folders_for
    from connect_core.config.references import resolve_stack
    from connect_core.config.resolving import stack_field

    home, _ = session.surroundings()
    return resolve_stack(find(connection, folders_for(None, home)).options, lambda field: stack_field(home, field))


def _show(messages: list[dict[str, Any]]) -> None:
    for message in messages:
        known = {key: message.get(key) for key in ("queue", "offset", "key", "tags")}
        head = [f"{key} {value}" for key, value in known.items() if value not in (None, "")]
        if message.get("stored_at"):
            head.append(output.cell(message["stored_at"]))
        if head:
            output.line(" | ".join(head))
        output.line(message["value"])
    if not messages:
        output.line("nothing there")


# ----------------------------------------------------------------------------------------------------------- RocketMQ


def _messages(options: Json, topic: str, last: int) -> list[dict[str, Any]]:
    """The newest messages over all queues, oldest of them first."""
    from connect_core.config import reveal
    from connect_core.systems.rocketmq.clusters import ClusterOptions
    from connect_core.systems.rocketmq.peeking import peek as newest

    found = [
        _told(partition.key, row)
        for partition, records in newest(ClusterOptions.of(reveal(options)), topic, last).items()
        for row in records.to_pylist()
    ]
    return sorted(found, key=lambda told: (told["stored_at"], told["queue"], told["offset"]))[-last:]


def _told(queue: str, row: dict[str, Any]) -> dict[str, Any]:
    from connect_core.sdk.records import decode_headers

    return {
        "queue": queue,
        "offset": row["offset"],
        "stored_at": row["timestamp"],
        "key": row["key"],
        "tags": row["tags"],
        "properties": decode_headers(row["headers"]),
        "value": output.shown_bytes(row["value"] or b""),
    }


# --------------------------------------------------------------------------------------------------------------- files


def last_lines(path: Path, last: int) -> list[bytes]:
    """The last lines, of at most the last MiB."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begin = file.seek(max(0, size - _TAIL_BYTES))
            text = file.read()
    except OSError as error:
        raise Unreachable(f"the file cannot be read: {error.strerror}", where=str(path)) from None
    lines = text.split(b"\n")
    lines = lines[1 if begin else 0 : -1 if text.endswith(b"\n") else None]
    return lines[-last:]
