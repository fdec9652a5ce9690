"""import: connectors of another product, taken over."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from connect_core.cli import output
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag

app = typer.Typer(no_args_is_help=True, help="Take over the connectors of another product.")


@app.callback()
def of() -> None:
    """Take over the connectors of another product."""


@app.command("rocketmq-connect")
def rocketmq_connect(
    store: Annotated[Path, typer.Option("--store", help="The folder of a worker (its storePathRootDir), or a copy.")],
    apply: Annotated[bool, typer.Option("--apply", help="Create them. Without it, only show what would be.")] = False,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Take over connectors of RocketMQ Connect: configurations, paused or not, and where their sources were.

    Stop its workers first: what they send after they have last written their positions comes again.
    """
    from connect_core.service.importing import imported, would_import

    told = imported(store, output.notice) if apply else would_import(store)
    columns = (
        Column("CONNECTOR"),
        Column("CLASS", 3),
        Column("BECOMES"),
        Column("OFFSETS", 2),
    )
    rows = [
        [
            one["connector"],
            one["class"].rpartition(".")[2],
            "nothing" if one["problems"] else one["state"],
            ", ".join(f"{place['partition']}: {place['offset']:,}" for place in one["offsets"]),
        ]
        for one in told
    ]

    def for_people() -> None:
        output.table(columns, rows, "no connectors", wide=wide)
        for one in told:
            for problem in one["problems"]:
                output.line(f"{one['connector']} is left out: {problem}")
        if not apply:
            output.line("nothing was changed; --apply creates those without a problem")

    output.emit(as_json, {"applied": apply, "connectors": told}, for_people)
    if apply and any(one["problems"] for one in told):
        raise typer.Exit(2)
