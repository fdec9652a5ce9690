"""trace: what became of one record. Reads only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag


def register(app: typer.Typer) -> None:
    app.command("trace")(trace)


def trace(
    name: Annotated[
        str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
    ],
    source: Annotated[
        str, typer.Option("--source", metavar="PARTITION:OFFSET", help="The record at this place of the source.")
    ] = "",
    target: Annotated[
        str, typer.Option("--target", metavar="QUEUE:OFFSET", help="The one at this place of the target.")
    ] = "",
    key: Annotated[str, typer.Option("--key", help="Those in the target with this key, or message id.")] = "",
    source_key: Annotated[
        str, typer.Option("--source-key", help="Those in the source with this key, or message id.")
    ] = "",
    when: Annotated[
        str,
        typer.Option(
            "--when", metavar="CONDITION", help="Those in a window of the source for which it holds, as in rules."
        ),
    ] = "",
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range", metavar="PARTITION:BEGIN-END", help="With --when: where to look. May be given several times."
        ),
    ] = None,
    begin: Annotated[
        str, typer.Option("--from", help='With --when: records stored since a time with its zone, or "2h" ago.')
    ] = "",
    end: Annotated[str, typer.Option("--to", help="With --when: records stored before; without it, now.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Follow one record: through which ranges and runs it went, and where it is now. Nothing is written."""
    from connect_core.service.source_search import SearchWindow

    window = SearchWindow(begin, end, tuple(ranges or ()))
    told = installation().traced(name, window, source=source, target=target, key=key, source_key=source_key, when=when)

    def for_people() -> None:
        _show(told["records"])
        if "searched" in told:
            _show_searched(len(told["records"]), told["searched"])

    output.emit(as_json, told, for_people)


def _show_searched(found: int, searched: dict[str, Any]) -> None:
    for notice in searched["notices"]:
        output.notice(notice)
    output.line(f"{output.count(found, 'record')} found in {searched['read']:,} read")
    for rest in searched["rest"]:
        output.line(f"not searched: --range {rest}")


def _show(records: list[dict[str, Any]]) -> None:
    for record in records:
        output.line(f"{record['partition']}:{record['offset']}")
        if record["what"]:
            output.line(f"  {record['what']}")
        for one in record["ranges"]:
            _show_range(one)


def _show_range(one: dict[str, Any]) -> None:
    span = f"{one['begin']:,} to {one['end']:,}" if one["end"] is not None else f"from {one['begin']:,} on"
    stream = "" if one["stream"] == "live" else f", {one['stream']}"
    settled = f", settled {output.cell(one['settled_at'])}" if one["settled_at"] else ""
    attempts = f", attempt {one['attempts']}" if one["attempts"] > 1 else ""
    output.line(f"  range {one['range']} ({span}{stream}): run {one['run']}{attempts}{settled}")
    output.line(f"    {one['state']}{': ' if one['what'] else ''}{one['what']}")
    for place in one["places"]:
        output.line(f"    at {place}")
