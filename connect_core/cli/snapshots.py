"""snapshot: rows of tables, once more, among their changes."""

from __future__ import annotations

from typing import Annotated

import typer

from connect_core.cli import completing, output
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError


def register(app: typer.Typer) -> None:
    app.command("snapshot")(snapshot)


def snapshot(
    name: Annotated[str, typer.Argument(help="A connector.", autocompletion=completing.connectors)],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="One of its tables; again for more. All of them by default.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Only rows that fulfil this condition: what follows WHERE, in the SQL of the database."),
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Have no more rows come that were asked for of these tables.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have rows of tables come among their changes: all, or those that fulfil a condition."""
    from connect_core.sdk.plugin import SnapshotWish

    if cancel and where is not None:
        step = "Leave out --where: all that was asked for of a table is cancelled"
        raise ConfigError("--cancel takes no condition", where=f"connector {name}", next_step=step)
    if cancel:
        told = installation().cancel_snapshot(name, table or ())
        sentence = f"{name}: no more rows come of snapshots that were asked for of {', '.join(told['tables'])}"
    else:
        told = installation().snapshot(name, SnapshotWish(tuple(table or ()), where))
        which = "all rows" if where is None else "the rows that fulfil the condition"
        sentence = f"{name}: the next runs bring {which} of {', '.join(told['tables'])}"
    output.emit(as_json, told, lambda: output.line(sentence))
