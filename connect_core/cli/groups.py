"""groups translate: where consumers of a replicated topic go on at the target."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag

app = typer.Typer(no_args_is_help=True, help="Consumer groups of replicated topics.")


@app.callback()
def root() -> None:
    """Consumer groups of replicated topics."""


@app.command()
def translate(
    name: Annotated[
        str,
        typer.Argument(
            help="A connector from RocketMQ to RocketMQ.", metavar="NAME", autocompletion=completing.connectors
        ),
    ],
    group: Annotated[str, typer.Argument(help="A consumer group of the source.", metavar="GROUP")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the offsets to the target; without it, show them.")
    ] = False,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Show, or write, the offsets at which a group goes on in the target: nothing is skipped.

    What it may consume twice is counted: messages that it has consumed and that are not replicated yet, and those that
    stand between the copies of several queues in one. Exact where each queue has a target queue of its own.
    """
    told = installation().group(name, group, apply=apply)
    output.emit(as_json, told, lambda: _show(told, wide))


def _show(told: dict[str, Any], wide: bool) -> None:
    rows = [
        (
            one["source"],
            "none" if one["committed"] is None else one["committed"],
            one["target"],
            one["offset"],
            one["behind"],
        )
        for one in told["queues"]
    ]
    columns = (
        Column("SOURCE QUEUE"),
        Column("GROUP AT"),
        Column("TARGET QUEUE"),
        Column("FIRST COPY"),
        Column("NOT YET THERE", unit="records"),
    )
    output.table(columns, rows, wide=wide)
    output.line()
    output.table(
        (Column("TARGET QUEUE"), Column("OFFSET"), Column("REPEATS AT MOST", unit="records")),
        [(one["target"], one["offset"], one["repeats"]) for one in told["offsets"]],
        wide=wide,
    )
    for queue, count in told["retry_backlog"].items():
        output.line(f"not translated: {output.count(count, 'message')} of {queue} that the group has still to retry")
    output.line(f"written for {told['group']}" if told["applied"] else "nothing was written: add --apply")
