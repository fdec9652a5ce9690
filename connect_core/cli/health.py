"""status and doctor: which home and ledger this is, what is there; and what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from connect_core.cli import output
from connect_core.cli.columns import Column
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag

_PUT_ASIDE_TOLD = 3
"""Of so many partitions of a connector it is said one by one why they were put aside."""


def register(app: typer.Typer) -> None:
    app.command("status")(status)
    app.command("doctor")(doctor)


def status(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Show the home, the ledger, what runs, and the state of each connector."""
    told = installation().status(output.notice)

    def for_people() -> None:
        output.fields((name, told[name]) for name in ("version", "server", "home", "ledger", "engine") if name in told)
        if told.get("stack"):
            output.line()
            output.table(("PART", "STATE"), [(part["part"], part["state"]) for part in told["stack"]], wide=wide)
        output.line()
        if "problem" in told:
            output.line(told["problem"])
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
    """Check everything that a run needs. Shows what is wrong and what to do; exits with the most serious code."""
    from connect_core.service import health

    findings = health.findings()
    rows = [
        (finding["state"].upper(), finding["subject"], finding["what"], finding["next_step"]) for finding in findings
    ]
    faults = [finding for finding in findings if finding["state"] == "fault"]
    columns = (
        Column("STATE"),
        Column("SUBJECT", cut="never"),
        Column("FOUND", cut="words"),
        Column("WHAT TO DO", cut="words"),
    )
    told = {"healthy": not faults, "findings": findings}
    output.emit(as_json, told, lambda: output.table(columns, rows, wide=wide))
    if faults:
        raise typer.Exit(max(finding["exit_code"] for finding in faults))


def _to_do(connector: dict[str, Any]) -> Iterator[str]:
    """What a person should do, and which partitions do not go on."""
    if connector["next_step"]:
        yield connector["next_step"]
    for one in connector["quarantined"][:_PUT_ASIDE_TOLD]:
        yield f"put aside since {output.cell(one['since'])}: {one['partition']}: {one['reason']}"
    more = len(connector["quarantined"]) - _PUT_ASIDE_TOLD
    if more > 0:
        yield f"{output.count(more, 'more partition')} put aside; --json lists all"
