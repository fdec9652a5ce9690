"""connectors list | show | pause | resume | restart | stop | delete: what there is, and what it shall do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from connect_core.cli import completing, guarantees, output, partition_states, schema_contracts
from connect_core.cli.columns import Column
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag

if TYPE_CHECKING:
    from connect_core.service.connectors import Wish

app = typer.Typer(no_args_is_help=True, help="List, show, pause, resume, stop and delete connectors.")

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]


@app.command("list")
def list_(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """List all connectors."""
    connectors = installation().connectors(output.notice)
    keys = ("name", "source", "sink", "schedule", "tasks", "state", "revision")
    rows = [[connector[key] for key in keys] for connector in connectors]
    columns = (
        Column("NAME"),
        Column("FROM", 2),
        Column("TO", 2),
        Column("RUNS", 2),
        Column("TASKS", 3),
        Column("STATE"),
        Column("REVISION", 4),
    )
    nothing = "no connectors; see waybill apply"

    def for_people() -> None:
        output.table(columns, rows, nothing, wide=wide)
        for one in connectors:
            if "problem" in one:
                output.notice(f"{one['name']}: {one['problem']}")

    output.emit(as_json, {"connectors": connectors}, for_people)


@app.command()
def show(
    name: Name,
    revisions: Annotated[bool, typer.Option("--revisions", help="Show every revision and its changes.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show one connector with its document."""
    import yaml

    told = installation().connector(name, output.notice, revisions=revisions)

    def for_people() -> None:
        shown = ("name", "uid", "state", "since", "why", "next_step", "switch", "revision", "created_at")
        output.fields((key.replace("_", " "), told[key]) for key in shown)
        for sentence in partition_states.lines(told["aside"]):
            output.line(sentence)
        for aside in told["set_aside"]:
            output.line(f"{aside['bytes']:,} bytes that no receipt covered are in {aside['file']}")
        guarantees.show(told["guarantee"])
        schema_contracts.show(told["schema"])
        output.line()
        output.line(yaml.safe_dump(told["document"], sort_keys=False, allow_unicode=True).rstrip("\n"))
        for one in told.get("revisions", ()):
            output.line(f"\nrevision {one['revision']}: {output.cell(one['applied_at'])} by {one['who']}")
            for line in [one["why"], *one["difference"]]:
                output.line(f"  {line}" if line else "")

    output.emit(as_json, told, for_people)


@app.command()
def pause(name: Name, as_json: JsonFlag = False) -> None:
    """Start no more runs; a run at work ends at its next range boundary. The same as Airflow's switch."""
    _set_state(name, "paused", as_json)


@app.command()
def resume(name: Name, as_json: JsonFlag = False) -> None:
    """Resume a paused or stopped connector."""
    _set_state(name, "running", as_json)


@app.command()
def restart(name: Name, as_json: JsonFlag = False) -> None:
    """The same as resume: the next run finishes open ranges and continues after the last settled one."""
    _set_state(name, "running", as_json)


@app.command()
def stop(name: Name, as_json: JsonFlag = False) -> None:
    """Stop a connector for good; keeps its document and offsets. `resume` starts it again."""
    _set_state(name, "stopped", as_json)


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Delete even if a broker is unreachable; what it keeps stays there.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete a connector. Its records stay in the target, and its history in the ledger.

    Its name is free again; its offsets are not reused. What an MQTT broker keeps for it is deleted: sessions, and the
    progress of a sink.
    """

    def agree(uid: str) -> None:
        if not yes:
            typer.confirm(f"Delete connector {name} (uid {uid}) with its offsets?", abort=True, err=True)

    told = installation().delete(name, force=force, agree=agree, say=output.notice)
    output.emit(as_json, told, lambda: output.line("\n  ".join([f"{name}: deleted", *told["notes"]])))


def _set_state(name: str, state: Wish, as_json: bool) -> None:
    told = installation().set_state(name, state)
    output.emit(as_json, told, lambda: output.line(f"{name}: {told['before']} -> {state}"))
