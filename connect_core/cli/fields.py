"""fields: what a document may begin `parse.fields` with. Reads only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag


def register(app: typer.Typer) -> None:
    app.command("fields")(fields)


def fields(
    where: Annotated[str, typer.Argument(help="A file of JSON lines, or a topic.", metavar="FILE|TOPIC")],
    last: Annotated[int, typer.Option("--last", min=1, max=10_000, help="How many records, the newest.")] = 1_000,
    connection: Annotated[str, typer.Option("--connection", help="Where the topic is.")] = "main",
    as_json: JsonFlag = False,
) -> None:
    """Suggest the fields of JSON payloads, for `parse.fields` of a document."""
    told = installation().suggested_fields(where, last, connection=connection)
    output.emit(as_json, told, lambda: _show(told))


def _show(told: dict[str, Any]) -> None:
    import yaml

    document = {"parse": {"format": "json", "fields": told["fields"]}}
    output.line(yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip("\n"))
    for remark in told["remarks"]:
        output.notice(remark)
    others = f"; {output.count(told['unread'], 'other')} no JSON object" if told["unread"] else ""
    output.notice(f"from {output.count(told['records'], 'record')}{others}: check what others may have")
