"""logs: what a run has logged."""

from __future__ import annotations

from typing import Annotated

import typer

from connect_core.cli import completing, output
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag
from connect_core.sdk.values import Json

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]


def register(app: typer.Typer) -> None:
    app.command("logs")(logs)


def logs(
    name: Name,
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="This run; by default the newest.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Show what a run has logged in Airflow, by attempt, and why it failed."""
    told = installation().log(name, run)
    output.emit(as_json, told, lambda: _show(told))


def _show(told: Json) -> None:
    output.notice(f"{told['connector']}: run {told['run']}, {told['state']}")
    for attempt in told["attempts"]:
        output.notice(f"Attempt {attempt['attempt']} of {told['dag']} {told['dag_run']}:")
        for line in attempt["lines"]:
            output.line(line)
    if told["dag"] is None:
        output.notice("It was begun by hand: its log went to where it was begun")
    elif not told["attempts"]:
        output.notice(f"Airflow has no log of {told['dag']} {told['dag_run']} no longer, or no Airflow is known here")
    if told["failure"]:
        failure = told["failure"]
        output.notice(". ".join(filter(None, (failure["what"], failure["where"], failure["next_step"]))))
