"""snapshot: rows of tables, once more, among their changes."""

from __future__ import annotations

from typing import Annotated

import typer

from connect_core.cli import completing, output
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag


def register(app: typer.Typer) -> None:
    app.command("snapshot")(snapshot)


def snapshot(
    name: Annotated[str, typer.Argument(help="A connector.", autocompletion=completing.connectors)],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="One of its tables; again for more. All of them by default.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Have all rows of tables come among their changes."""
    told = installation().snapshot(name, table or ())
    names = ", ".join(told["tables"])
    output.emit(as_json, told, lambda: output.line(f"{name}: the next runs bring all rows of {names}"))
