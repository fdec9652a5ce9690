"""status and doctor: which home and ledger this is, what is there; and what is wrong and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from connect_core.cli import output, session
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import WaybillError

_PUT_ASIDE_TOLD = 3
"""Of so many partitions of a connector it is said one by one why they were put aside."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `state` is ok, warning or fault; `next_step` says what to do about it."""

    subject: str
    state: str
    what: str
    next_step: str = ""
    exit_code: int = 0


def register(app: typer.Typer) -> None:
    app.command("status")(status)
    app.command("doctor")(doctor)


def status(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Which home and ledger this is, what runs, and what the connectors do."""
    from connect_core import __version__

    home, settings = session.surroundings()
    told: dict[str, Any] = {
        "version": __version__,
        "home": str(home) if home else None,
        "files_roots": [str(root) for root in settings.files_roots],
        "engine": settings.engine,
        "ledger": None,
        "stack": _parts(home),
        "connectors": [],
    }
    problem = ""
    try:
        told |= _ledger_facts()
    except WaybillError as error:
        problem = told["problem"] = str(error)

    def for_people() -> None:
        output.fields((name, told[name]) for name in ("version", "home", "ledger", "engine"))
        if told["stack"]:
            output.line()
            output.table(("PART", "STATE"), [(part["part"], part["state"]) for part in told["stack"]], wide=wide)
        output.line()
        if problem:
            output.line(problem)
            return
        keys = ("connector", "state", "since", "attempts", "last_settled", "gaps", "why")
        rows = [[connector[key] for key in keys] for connector in told["connectors"]]
        columns = (
            Column("CONNECTOR"),
            Column("STATE"),
            Column("SINCE", 2),
            Column("FAILED", 3, "attempts"),
            Column("LAST SETTLED", 4),
            Column("GAPS", 3),
            Column("WHY", cut="end"),
        )
        output.table(columns, rows, "no connectors; see waybill apply", wide=wide)
        for connector in told["connectors"]:
            for said in _to_do(connector):
                output.line(f"{connector['connector']}: {said}")

    output.emit(as_json, told, for_people)


def doctor(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Look at everything a run needs; say what is wrong and what to do. Ends with the gravest exit code."""
    findings = [finding for look in (_home, _variables, _java, _pyspark, _stack, _ledger) for finding in _looked(look)]
    rows = [(finding.state.upper(), finding.subject, finding.what, finding.next_step) for finding in findings]
    faults = [finding for finding in findings if finding.state == "fault"]
    columns = (
        Column("STATE"),
        Column("SUBJECT", cut="never"),
        Column("FOUND", cut="words"),
        Column("WHAT TO DO", cut="words"),
    )
    told = {"healthy": not faults, "findings": findings}
    output.emit(as_json, told, lambda: output.table(columns, rows, wide=wide))
    if faults:
        raise typer.Exit(max(finding.exit_code for finding in faults))


# ------------------------------------------------------------------------------------------------------------- status


def _parts(home: Path | None) -> list[dict[str, Any]]:
    from connect_core import stack
    from connect_core.cli.stacks import described

    if home is None or stack.load(home) is None:
        return []
    return [described(part) for part in stack.status(home)]


def _to_do(connector: dict[str, Any]) -> Iterator[str]:
    """What a person should do, and which partitions do not go on."""
    if connector["next_step"]:
        yield connector["next_step"]
    for one in connector["quarantined"][:_PUT_ASIDE_TOLD]:
        yield f"put aside since {output.cell(one.since)}: {one.partition}: {one.reason}"
    more = len(connector["quarantined"]) - _PUT_ASIDE_TOLD
    if more > 0:
        yield f"{output.count(more, 'more partition')} put aside; --json has all"


def _ledger_facts() -> dict[str, Any]:
    from connect_core.config import database_url
    from connect_core.config.ledger_url import shown
    from connect_core.orchestration import control
    from connect_core.replication.driver.status import statuses
    from connect_core.sdk.values import LIVE

    with session.reading() as opened:
        facts: dict[str, Any] = {"ledger": shown(database_url(opened.home)), "connectors": []}
        schedules = control.schedules(opened.home, opened.settings, output.notice)
        now = statuses(opened.ledger, opened.settings, opened.home, schedules)
        for connector in opened.ledger.connectors():
            receipt = next(iter(opened.ledger.receipts(connector.uid, stream=LIVE, limit=1)), None)
            facts["connectors"].append(
                {
                    **output.plain(now[connector.name]),
                    "name": connector.name,
                    "last_settled": receipt.settled_at if receipt else None,
                    "gaps": len(opened.ledger.gaps(connector.uid)),
                }
            )
    return facts


# ------------------------------------------------------------------------------------------------------------- doctor


def _looked(look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """The findings of one look; an error of ours is one of them."""
    try:
        return list(look())
    except WaybillError as error:
        subject = look.__name__.strip("_")
        return [Finding(subject, "fault", f"{error.what} {error.where}".strip(), error.next_step, error.exit_code)]


def _home() -> Iterator[Finding]:
    home, settings = session.surroundings()
    if home is None:
        yield Finding("home", "warning", "none here or above", "`waybill dev up` or `waybill apply` make one")
    else:
        yield Finding("home", "ok", str(home))
    for root in settings.files_roots:
        state = "ok" if root.is_dir() else "fault"
        step = (
            ""
            if root.is_dir()
            else f"Make the folder, or name others: export WAYBILL_FILES_ROOTS=FOLDER{os.pathsep}FOLDER"
        )
        yield Finding("files_roots", state, str(root), step, 2)


def _variables() -> Iterator[Finding]:
    from connect_core.config import unknown_variables

    for name, meant in unknown_variables().items():
        yield Finding("environment", "warning", f"{name} is not a setting", f"Did you mean {meant}?")


def _java() -> Iterator[Finding]:
    from connect_core.stack import java

    found = java.of_machine()
    if found:
        yield Finding("java", "ok", str(found))
    else:
        yield Finding("java", "warning", "no Java 17 or newer on the PATH", "RocketMQ and the Spark engine need one")


def _pyspark() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("pyspark", "pyspark-client"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            yield Finding("pyspark", "fault", f"{package} is not installed", "Install waybill again", 3)
    if len(set(found.values())) > 1:
        both = ", ".join(f"{package} {number}" for package, number in found.items())
        yield Finding("pyspark", "fault", f"versions differ: {both}", "Install both in one version", 6)
    elif len(found) > 1:
        yield Finding("pyspark", "ok", found["pyspark"])


def _stack() -> Iterator[Finding]:
    from connect_core import stack

    home, _ = session.surroundings()
    for part in _parts(home):
        if part["state"] == "stopped" and part["part"] not in stack.startable():
            continue
        state = {"running": "ok", "stopped": "warning"}.get(part["state"], "fault")
        stuck = "" if part["state"] in ("stopped", "dead") else f"`waybill dev down --only {part['part']}`, then "
        step = "" if state == "ok" else f"{stuck}`waybill dev up`; its log: {part['log']}"
        yield Finding(part["part"], state, part["state"], step, 3)


def _ledger() -> Iterator[Finding]:
    from connect_core import ledger
    from connect_core.config import database_url, find_home
    from connect_core.config.ledger_url import shown

    if not session.ledger_exists():
        yield Finding("ledger", "warning", "none yet", "`waybill apply` or `waybill dev up` make one")
        return
    url = database_url(find_home())
    faults = ledger.check(url)
    for fault in faults:
        yield Finding("ledger", "fault", fault, "", 2)
    if not faults:
        yield Finding("ledger", "ok", shown(url))
