"""connectors list | show | pause | resume | restart | stop | delete: what there is, and what it shall do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, partition_states, session
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag

if TYPE_CHECKING:
    from connect_core.cli.session import Session
    from connect_core.ledger import Connector
    from connect_core.orchestration.rest import Airflow
    from connect_core.replication.driver.status import Status, Switch

app = typer.Typer(no_args_is_help=True, help="What connectors there are, and what they shall do.")

_LEFT_BEHIND = {
    "source": "its sessions were not ended, and hold messages until they expire",
    "sink": "its progress was not cleared, and stays at the broker",
}

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]


@app.command("list")
def list_(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """All connectors."""
    with session.reading() as opened:
        now = _statuses(opened)
        connectors = [_outline(connector, now[connector.name]) for connector in opened.ledger.connectors()]
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
    output.emit(as_json, {"connectors": connectors}, lambda: output.table(columns, rows, nothing, wide=wide))


@app.command()
def show(
    name: Name,
    revisions: Annotated[bool, typer.Option("--revisions", help="Every revision and what it changed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """One connector with its document."""
    import yaml

    from connect_core.config import masked

    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        history = opened.ledger.revisions(connector.uid) if revisions else []
        now = _statuses(opened)[name]
        put_aside = partition_states.of_states(opened.ledger.partition_states(connector.uid))
    unsettled = _set_aside(connector)
    told = {**_outline(connector, now), "created_at": connector.created_at, "document": masked(connector.document)}
    told |= {"aside": put_aside, "set_aside": [{"file": file, "bytes": count} for file, count in unsettled]}
    if revisions:
        told["revisions"] = [
            {"revision": r.revision, "difference": r.difference, "who": r.who, "why": r.why, "applied_at": r.applied_at}
            for r in history
        ]

    def for_people() -> None:
        shown = ("name", "uid", "state", "since", "why", "next_step", "switch", "revision", "created_at")
        output.fields((key.replace("_", " "), told[key]) for key in shown)
        for sentence in partition_states.lines(put_aside):
            output.line(sentence)
        for file, count in unsettled:
            output.line(f"{count:,} bytes that no receipt covered stand in {file}")
        output.line()
        output.line(yaml.safe_dump(told["document"], sort_keys=False, allow_unicode=True).rstrip("\n"))
        for revision in history:
            output.line(f"\nrevision {revision.revision}: {output.cell(revision.applied_at)} by {revision.who}")
            for line in [revision.why, *revision.difference]:
                output.line(f"  {line}" if line else "")

    output.emit(as_json, told, for_people)


@app.command()
def pause(name: Name, as_json: JsonFlag = False) -> None:
    """Begin no more runs; one that is under way ends at the next range boundary. The same as Airflow's switch."""
    _set_state(name, "paused", as_json)


@app.command()
def resume(name: Name, as_json: JsonFlag = False) -> None:
    """Let a paused or stopped connector run again."""
    _set_state(name, "running", as_json)


@app.command()
def restart(name: Name, as_json: JsonFlag = False) -> None:
    """The same as resume: the next run goes on behind what was settled, and finishes what was left open."""
    _set_state(name, "running", as_json)


@app.command()
def stop(name: Name, as_json: JsonFlag = False) -> None:
    """Stop for good, keeping document and offsets; resume starts it again."""
    _set_state(name, "stopped", as_json)


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also when a broker cannot be told: what that keeps for it stays there.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete a connector. What it moved stays where it is, and its history in the ledger; its name is free again, its
    offsets are not reused. What an MQTT broker keeps for it is ended: sessions, and the progress of a sink."""
    from connect_core.orchestration import control

    with session.working() as (opened, home), control.airflow_of(home, opened.settings) as airflow:
        connector = opened.ledger.connector(name)
        if not yes:
            typer.confirm(f"Delete connector {name} (uid {connector.uid}) with its offsets?", abort=True, err=True)
        with _parted(opened, home, connector, airflow, force) as notes:
            opened.ledger.delete(connector.uid, who=opened.settings.user, told=notes)
        control.parse_now(home, opened.settings)
        if airflow:
            control.end_runs(airflow, name)
            control.forget(airflow, name)
    told = {"name": name, "uid": connector.uid, "deleted": True, "notes": notes}
    output.emit(as_json, told, lambda: output.line("\n  ".join([f"{name}: deleted", *notes])))


@contextmanager
def _parted(
    opened: Session, home: Path, connector: Connector, airflow: Airflow | None, force: bool
) -> Iterator[list[str]]:
    """Its other sides keep nothing for the connector any more. When one cannot be told that, the connector stays,
    stopped; with `force` it goes all the same."""
    from connect_core.errors import WaybillError
    from connect_core.orchestration import control
    from connect_core.replication.driver import clean_up

    ends = clean_up.ends_with_remote_state(connector)
    if not ends:
        yield []
        return
    opened.ledger.set_target_state(connector.uid, "stopped", who=opened.settings.user)
    if airflow:
        control.end_runs(airflow, connector.name)
    with ExitStack() as leases:
        try:
            notes = leases.enter_context(
                clean_up.cleaned_up(opened.ledger, opened.settings, home, connector, output.notice)
            )
        except WaybillError as error:
            if not force:
                raise type(error)(
                    f"{error.what}; {connector.name} is stopped, and not deleted",
                    where=error.where,
                    next_step="Try again when nothing works for it and the broker answers; or delete it with --force: "
                    "then the broker keeps what it has of it",
                ) from None
            notes = [f"{_LEFT_BEHIND[end]} ({error.what})" for end in ends]
        yield notes


def _set_aside(connector: Connector) -> list[tuple[str, int]]:
    """Beside the files that it writes, as far as they are on this machine."""
    from connect_core.systems.file.aside import set_aside_beside
    from connect_core.systems.file.options import path_of_task

    path, tasks = (connector.document["sink"].get("file") or {}).get("path"), connector.document.get("tasks", 1)
    if not path:
        return []
    return [found for task in range(tasks) for found in set_aside_beside(path_of_task(path, task, tasks))]


def _set_state(name: str, state: str, as_json: bool) -> None:
    """Where Airflow runs the connectors its switch is what pauses them, and the ledger only keeps whether one is
    stopped; without Airflow the ledger keeps all of it."""
    from connect_core.orchestration import control

    with session.reading() as opened, control.airflow_of(opened.home, opened.settings) as airflow:
        connector = opened.ledger.connector(name)
        before = _wish(connector, control.switches(airflow) if airflow else None)
        kept = state if airflow is None or state == "stopped" else "running"
        if connector.target_state != kept:
            opened.ledger.set_target_state(connector.uid, kept, who=opened.settings.user)
        if airflow:
            control.set_paused(airflow, name, state != "running")
            if state == "stopped":
                control.end_runs(airflow, name)
    told = {"name": name, "uid": connector.uid, "before": before, "state": state}
    output.emit(as_json, told, lambda: output.line(f"{name}: {before} -> {state}"))


def _statuses(opened: Session) -> dict[str, Status]:
    from connect_core.orchestration import control
    from connect_core.replication.driver.status import statuses

    schedules = control.schedules(opened.home, opened.settings, output.notice)
    return statuses(opened.ledger, opened.settings, opened.home, schedules)


def _wish(connector: Connector, switches: Mapping[str, Switch] | None) -> str:
    """What it shall do, in the words of the verbs: running, paused or stopped."""
    if switches is None or connector.target_state == "stopped":
        return connector.target_state
    switch = switches.get(connector.name, "unknown")
    return "running" if switch == "on" else switch


def _outline(connector: Connector, now: Status) -> dict[str, Any]:
    from connect_core.config import load_document

    document = load_document(connector.document, f"connector {connector.name}")
    return {
        "name": connector.name,
        "uid": connector.uid,
        "state": now.state,
        "since": now.since,
        "why": now.why,
        "next_step": now.next_step,
        "switch": now.switch,
        "revision": connector.revision,
        "source": document.source.system,
        "sink": document.sink.system,
        "tasks": document.tasks,
        "schedule": document.schedule.words(),
        "description": document.description,
    }
