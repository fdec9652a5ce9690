"""try, rules try: what records of a source, or one that is typed, would become. Reads only, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    from connect_core.service.trying import TryRequest

_LAST = 20

Last = Annotated[int, typer.Option("--last", min=1, max=1000, help="How many, the newest.")]
Payload = Annotated[str | None, typer.Option("--payload", help="A record typed by hand, instead.")]
Topic = Annotated[str | None, typer.Option("--topic", help="Its topic.")]
Tags = Annotated[str | None, typer.Option("--tags", help="Its tags.")]
Key = Annotated[str | None, typer.Option("--key", help="Its key.")]
Headers = Annotated[
    list[str] | None, typer.Option("--header", help="One of its headers. Repeat it.", metavar="NAME=VALUE")
]
Steps = Annotated[bool, typer.Option("--steps", help="Also show the record behind each transform.")]


def register(app: typer.Typer) -> None:
    app.command("try")(try_document)


def register_of_rules(app: typer.Typer) -> None:
    app.command("try")(try_connector)


def try_document(
    path: Annotated[Path, typer.Argument(help="A file with one document, applied or not.", metavar="DOCUMENT")],
    last: Last = _LAST,
    payload: Payload = None,
    topic: Topic = None,
    tags: Tags = None,
    key: Key = None,
    header: Headers = None,
    steps: Steps = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what a document would make of each of the last 20 records of its source. Nothing is written, acknowledged or
    applied."""
    told = installation().try_document(path, _asked(last, payload, topic, tags, key, header))
    output.emit(as_json, told, lambda: show(told["records"], steps=steps))


def try_connector(
    name: Annotated[
        str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
    ],
    last: Last = _LAST,
    payload: Payload = None,
    topic: Topic = None,
    tags: Tags = None,
    key: Key = None,
    header: Headers = None,
    steps: Steps = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what each of the last 20 records of the source would become. Nothing is written or acknowledged."""
    told = installation().try_rules(name, _asked(last, payload, topic, tags, key, header))
    output.emit(as_json, told, lambda: show(told["records"], steps=steps))


def _asked(
    last: int,
    payload: str | None,
    topic: str | None,
    tags: str | None,
    key: str | None,
    header: list[str] | None,
) -> TryRequest:
    from connect_core.service.trying import TryRequest

    return TryRequest(last, payload, topic, tags, key, tuple(_pairs(header or [])))


def _pairs(headers: Sequence[str]) -> Iterator[tuple[str, str]]:
    for header in headers:
        name, sign, value = header.partition("=")
        if not sign:
            raise ConfigError(f"--header {header!r} is not NAME=VALUE")
        yield name, value


def show(records: list[dict[str, Any]], *, steps: bool) -> None:
    """Each record, and what it becomes; with `steps`, behind each transform too."""
    for one in records:
        key = f"key {one['key']}: " if one["key"] not in (None, one["topic"]) else ""
        output.line(f"{one['topic'] or ''} {key}{output.shown_bytes(one['value'])}".strip())
        for step in one["steps"] if steps else ():
            output.line(f"  {step['step']}: {output.shown_bytes(step['value'])}")
        for became in one["becomes"]:
            said = [f"{name} {became[name]}" for name in ("to", "tags", "key") if became[name]]
            named = became["rule"] + (f": {', '.join(said)}" if became["rule"] and said else "")
            value = output.shown_bytes(became["value"]) if "value" in became else ""
            key = f"key {became['key']}" if not became["rule"] and became["key"] not in (None, one["key"]) else ""
            made = ": ".join(filter(None, (key, value)))
            output.line(f"  -> {' '.join(filter(None, (named, made))) or 'as it is'}")
        if not one["becomes"]:
            output.line(f"  rejected: {one['rejected']}" if "rejected" in one else "  filtered")
    if not records:
        output.line("nothing is there")
