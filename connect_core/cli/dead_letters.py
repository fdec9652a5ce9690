"""dead-letters list | show: the records that were rejected, as they were read."""

from __future__ import annotations

from typing import Annotated

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.service.opened import reading

app = typer.Typer(no_args_is_help=True, help="List and show rejected records.")

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]


@app.command("list")
def list_(
    name: Name,
    last: Annotated[int, typer.Option("--last", min=1, max=100_000, help="Show only this many, the newest.")] = 20,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """List rejected records of a connector, newest first."""
    from connect_core.service import dead_letters

    with reading() as opened:
        found = output.newest(dead_letters.listed(opened, name, last=last + 1), last)
    keys = ("id", "partition", "offset", "stage", "kind", "message", "stored_at")
    rows = [[letter[key] for key in keys] for letter in found]
    columns = (
        Column("ID"),
        Column("PARTITION", least=16),
        Column("OFFSET"),
        Column("STAGE", 3),
        Column("KIND", 2),
        Column("MESSAGE", 2, cut="end"),
        Column("STORED AT", 4),
    )
    told = {"connector": name, "dead_letters": found}
    output.emit(as_json, told, lambda: output.table(columns, rows, "no dead letters", wide=wide))


@app.command()
def show(
    name: Name,
    number: Annotated[int, typer.Argument(help="Number of the dead letter, as `list` shows it.", metavar="ID")],
    as_json: JsonFlag = False,
) -> None:
    """Show one rejected record with the first 64 KiB of its original bytes."""
    from connect_core.service import dead_letters

    with reading() as opened:
        told = dead_letters.shown(opened, name, number)

    def for_people() -> None:
        output.fields((key.replace("_", " "), value) for key, value in told.items() if key != "original")
        output.line()
        output.line(output.shown_bytes(told["original"]))

    output.emit(as_json, told, for_people)
