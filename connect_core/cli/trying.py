"""rules try: what the newest records of a source, or one that is typed, would become. Reads only, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError
from connect_core.service.opened import reading

_LAST = 20


def register(app: typer.Typer) -> None:
    app.command("try")(try_)


def try_(
    name: Annotated[
        str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
    ],
    last: Annotated[int, typer.Option("--last", min=1, max=1000, help="How many, the newest.")] = _LAST,
    payload: Annotated[str | None, typer.Option("--payload", help="A record typed by hand, instead.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Its topic.")] = None,
    tags: Annotated[str | None, typer.Option("--tags", help="Its tags.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Its key.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", help="One of its headers. Repeat it.", metavar="NAME=VALUE")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what each of the last 20 records of the source would become. Nothing is written or acknowledged."""
    from connect_core.sdk.plugin import TypedRecord
    from connect_core.service import trying

    with reading() as opened:
        if payload is None and topic is None:
            told = trying.newest(opened, name, last)
        else:
            pairs = tuple(_pairs(header or []))
            told = trying.typed(opened, name, TypedRecord((payload or "").encode(), topic, tags, key, pairs))
    output.emit(as_json, {"connector": name, "records": told}, lambda: _show(told))


def _pairs(headers: Sequence[str]) -> Iterator[tuple[str, str]]:
    for header in headers:
        name, sign, value = header.partition("=")
        if not sign:
            raise ConfigError(f"--header {header!r} is not NAME=VALUE")
        yield name, value


def _show(records: list[dict[str, Any]]) -> None:
    for one in records:
        output.line(f"{one['topic'] or ''} {output.shown_bytes(one['value'])}".strip())
        for became in one["becomes"]:
            said = [f"{name} {became[name]}" for name in ("to", "tags", "key") if became[name]]
            named = became["rule"] + (f": {', '.join(said)}" if became["rule"] and said else "")
            value = output.shown_bytes(became["value"]) if "value" in became else ""
            output.line(f"  -> {' '.join(part for part in (named, value) if part) or 'as it is'}")
        if not one["becomes"]:
            output.line(f"  rejected: {one['rejected']}" if "rejected" in one else "  filtered")
    if not records:
        output.line("nothing is there")
