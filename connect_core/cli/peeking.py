"""peek: the newest messages of a topic, or what stands last in the target of a connector. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, session
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.sdk.plugin import Plugin
    from connect_core.sdk.values import Json
    from connect_core.work import Side


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
    found = _in_topic(_named(connection), name, last) if side is None else _in_target(side, last)
    messages = [{**one, "value": output.shown_bytes(one["value"])} for one in found]
    told = {"name": name, "messages": messages}
    output.emit(as_json, told, lambda: _show(messages))


def _target_of(name: str) -> Side | None:
    """The sink of the connector of that name; None when there is no such connector."""
    if not session.ledger_exists():
        return None
    with session.reading() as opened:
        known = {connector.name: connector for connector in opened.ledger.connectors()}
        return opened.resolved(known[name]).sink if name in known else None


def _named(connection: str) -> Side:
    """What a connection of this home says."""
    from connect_core.config.connections import find, folders_for
    from connect_core.config.references import resolve_stack
    from connect_core.config.resolving import stack_field
    from connect_core.work import Side

    home, _ = session.surroundings()
    found = find(connection, folders_for(None, home))
    return Side(found.system, resolve_stack(found.options, lambda field: stack_field(home, field)))


def _in_target(side: Side, last: int) -> list[Json]:
    from connect_core.config import reveal
    from connect_core.systems import SYSTEMS

    look = SYSTEMS[side.system].peek_target
    if look is None:
        raise _cannot_look(side, [one for one in SYSTEMS.values() if one.peek_target])
    return look(reveal(side.options), last)


def _in_topic(side: Side, topic: str, last: int) -> list[Json]:
    from connect_core.config import reveal
    from connect_core.systems import SYSTEMS

    plugin = SYSTEMS.get(side.system)
    if plugin is None or plugin.peek_topic is None:
        raise _cannot_look(side, [one for one in SYSTEMS.values() if one.peek_topic])
    return plugin.peek_topic(reveal(side.options), topic, last)


def _cannot_look(side: Side, able: list[Plugin]) -> ConfigError:
    names = " and ".join(one.name for one in sorted(able, key=lambda one: one.title))
    return ConfigError(f"peek cannot look into {side.system}", next_step=f"It looks into {names}")


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
