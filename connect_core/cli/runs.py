"""run and plan: one run of a connector here and now, without Airflow, and what it would move."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from connect_core.cli import completing, output, partition_states, schema_contracts, trying
from connect_core.cli.columns import Column
from connect_core.cli.history import waiting_lines
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.progress import listening

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]

EngineName = Annotated[
    str, typer.Option("--engine", help="Where workers run: spark, submit, inline or a file of conf/engines.")
]


def duration(text: str) -> float:
    from connect_core.service.durations import parse_seconds

    try:
        return parse_seconds(text)
    except ValueError as fault:
        raise typer.BadParameter(str(fault)) from None


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("plan")(plan)


def run(
    name: Name,
    engine: EngineName = "",
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Record lost offsets as gaps and continue after them (this run only).")
    ] = False,
    window: Annotated[
        float,
        typer.Option(
            "--window", parser=duration, metavar="DURATION", help="Keep running for DURATION and follow new records."
        ),
    ] = 0.0,
    as_json: JsonFlag = False,
) -> None:
    """Run a connector once, now: move the records that are there, then end. With --window, follow new records."""
    from connect_core.service.run_report import lines
    from connect_core.service.runs import How

    how = How(partial(listening, as_json), output.notice, engine, accept_gaps, window)
    told = installation().run(name, how)
    begun = [f"{name}: Airflow has begun the run: waybill runs {name}"]  # as a server has it done where there is one
    output.emit(as_json, told, lambda: output.line("\n".join(begun if "begun_in" in told else lines(told))))


def plan(
    name: Name,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", min=0, max=1000, metavar="N", help="Also show what each step makes of the newest N records."
        ),
    ] = 0,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what the next run would move, with which fields. Reads the source and the ledger; writes nothing."""
    from connect_core.service.durations import show_seconds

    told = installation().plan(name, sample=sample)
    partitions = told["partitions"]
    keys = ("partition", "task", "incarnation", "committed", "begin", "end", "lag", "waiting", "open_from", "state")
    rows = [[one[key] for key in keys] for one in partitions]
    columns = (
        Column("PARTITION", least=16),
        Column("TASK", 4),
        Column("INCARNATION", 5),
        Column("COMMITTED", 2),
        Column("BEGIN"),
        Column("END"),
        Column("LAG", unit=told["unit"]),
        Column("WAITING", 5, unit="bytes"),
        Column("OPEN FROM", 3),
        Column("STATE", 3, cut="never"),
    )

    def for_people() -> None:
        output.table(columns, rows, "the source has no partitions", wide=wide)
        for one in partitions:
            for gap in one["gaps"]:
                end = "?" if gap["end"] is None else gap["end"]
                output.line(f"gap in {one['partition']}: {gap['begin']} to {end}: {gap['reason']}")
        for sentence in (
            *waiting_lines([one["waiting"] for one in partitions]),
            *partition_states.lines(partitions),
        ):
            output.line(sentence)
        if told["window_s"]:
            output.line(f"a scheduled run follows new records for {show_seconds(told['window_s'])}")
        schema_contracts.show(told["schema"])
        if sample:
            output.line("the newest records, behind each step:")
            trying.show(told["sample"], steps=True)

    output.emit(as_json, told, for_people)
