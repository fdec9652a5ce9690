"""peek: the newest messages of a topic, or what stands last in the target of a connector. Reads only."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import output, session
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.contracts import Json, Side
    from connect_core.rocketmq import Client, Queue, StoredMessage

_LIMIT_S = 10.0
_TAIL_BYTES = 1024 * 1024


def register(app: typer.Typer) -> None:
    app.command("peek")(peek)


def peek(
    name: Annotated[str, typer.Argument(help="A connector (its target is shown), or a topic.", metavar="NAME|TOPIC")],
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
        messages = _lines(Path(side.options["path"]), last)
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
    from connect_core.cli.probing import client_of

    with client_of(options) as client:
        found = [(queue, message) for queue in client.offsets.bounds(topic) for message in _newest(client, queue, last)]
    found.sort(key=lambda pair: (pair[1].store_timestamp_ms, pair[0], pair[1].queue_offset))
    return [_told(queue, message) for queue, message in found[-last:]]


def _newest(client: Client, queue: Queue, last: int) -> list[StoredMessage]:
    end = client.offsets.end(queue)
    begin = max(client.offsets.begin(queue), end - last)
    if begin >= end:
        return []
    reader = client.read(queue, begin, end, deadline=time.monotonic() + _LIMIT_S)
    return [message for part in reader for message in part.messages]


def _told(queue: Queue, message: StoredMessage) -> dict[str, Any]:
    from datetime import UTC, datetime

    from connect_core.records import decode_headers
    from connect_core.rocketmq.compression import decompress
    from connect_core.rocketmq.wire.stored_message import plain_body

    properties = decode_headers(message.properties)
    return {
        "queue": str(queue),
        "offset": message.queue_offset,
        "stored_at": datetime.fromtimestamp(message.store_timestamp_ms / 1000, UTC),
        "key": properties.pop("KEYS", None),
        "tags": properties.pop("TAGS", None),
        "properties": properties,
        "value": output.shown_bytes(plain_body(message, decompress)),
    }


# --------------------------------------------------------------------------------------------------------------- files


def _lines(path: Path, last: int) -> list[dict[str, Any]]:
    """The last lines, of at most the last MiB."""
    from connect_core.errors import Unreachable

    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begin = file.seek(max(0, size - _TAIL_BYTES))
            text = file.read()
    except OSError as error:
        raise Unreachable(f"the target cannot be read: {error.strerror}", where=str(path)) from None
    lines = text.split(b"\n")
    lines = lines[1 if begin else 0 : -1 if text.endswith(b"\n") else None]
    return [{"value": output.shown_bytes(line)} for line in lines[-last:]]
