"""backfill, replay, and backfills list | show | resume | cancel: a stretch of the past again, beside the live one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.progress import listening
from connect_core.cli.runs import EngineName, Name

if TYPE_CHECKING:
    from connect_core.service.backfill_runs import Request
    from connect_core.service.runs import How

app = typer.Typer(no_args_is_help=True, help="List, show, resume and cancel backfills and replays.")

Stream = Annotated[
    str,
    typer.Argument(
        help="The stream as `backfills list` shows it, or its --id.",
        metavar="STREAM",
        autocompletion=completing.backfills,
    ),
]
OptionalName = Annotated[
    str,
    typer.Argument(
        help="Name of a connector; without it, all connectors.", metavar="[NAME]", autocompletion=completing.connectors
    ),
]
Id = Annotated[str, typer.Option("--id", help="Id of a new one, or of one to resume.")]
Sink = Annotated[
    list[str] | None,
    typer.Option("--sink", help="KEY=VALUE: override an option of the sink. May be given several times."),
]
AcceptGaps = Annotated[bool, typer.Option("--accept-gaps", help="Record lost offsets as gaps and continue after them.")]
Why = Annotated[str, typer.Option("--why", help="Reason, kept with it.")]


def register(root: typer.Typer) -> None:
    root.command("backfill")(backfill)
    root.command("replay")(replay)


def backfill(
    name: Name,
    begin: Annotated[
        str, typer.Option("--from", help='Records stored since: a time with its zone, or how long ago ("2h").')
    ] = "",
    end: Annotated[
        str, typer.Option("--to", help="Records stored before: written the same way; without it, now.")
    ] = "",
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="PARTITION:BEGIN-END instead of times. May be given several times."),
    ] = None,
    sink: Sink = None,
    id_: Id = "",
    accept_gaps: AcceptGaps = False,
    why: Why = "",
    engine: EngineName = "",
    as_json: JsonFlag = False,
) -> None:
    """Move a stretch of the source again, in a separate stream. Live offsets stay as they are."""
    from connect_core.service.backfill_runs import Request

    request = Request(
        begin=begin,
        end=end,
        ranges=tuple(ranges or ()),
        sink=tuple(sink or ()),
        id=id_,
        accept_gaps=accept_gaps,
        why=why,
    )
    _begin_and_run(name, request, engine, as_json)


def replay(
    name: Name,
    run: Annotated[str, typer.Option("--run", help="Id of a run, or of an Airflow run (all its tasks).")],
    sink: Sink = None,
    id_: Id = "",
    accept_gaps: AcceptGaps = False,
    why: Why = "",
    engine: EngineName = "",
    as_json: JsonFlag = False,
) -> None:
    """Move exactly what one run moved again, in a separate stream."""
    from connect_core.service.backfill_runs import Request

    request = Request(run=run, sink=tuple(sink or ()), id=id_, accept_gaps=accept_gaps, why=why)
    _begin_and_run(name, request, engine, as_json)


@app.command("list")
def list_(name: OptionalName = "", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """List backfills and replays, newest first."""
    told = installation().backfills(name)
    keys = ("connector", "stream", "state", "done", "planned", "sink", "who", "created_at")
    rows = [[_cell(one, key) for key in keys] for one in told]
    columns = (
        Column("CONNECTOR", 2),
        Column("STREAM", least=20),
        Column("STATE"),
        Column("DONE", unit="positions"),
        Column("PLANNED", unit="positions"),
        Column("SINK", 4),
        Column("WHO", 5),
        Column("BEGUN", 3),
    )
    output.emit(as_json, {"backfills": told}, lambda: output.table(columns, rows, "no backfills", wide=wide))


@app.command()
def show(name: Name, stream: Stream, wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Show one: the request, its parts, and the progress of each."""
    told = installation().backfill(name, stream)
    keys = ("partition", "incarnation", "begin", "end", "done")
    rows = [[part[key] for key in keys] for part in told["parts"]]

    def for_people() -> None:
        facts = ("state", "asked", "sink", "revision", "who", "why", "created_at", "ended_at")
        output.fields((key.replace("_", " "), _cell(told, key)) for key in facts)
        for sentence in _unknown(told):
            output.line(sentence)
        output.line()
        columns = (
            Column("PARTITION", least=16),
            Column("INCARNATION", 2),
            Column("BEGIN"),
            Column("END"),
            Column("DONE", unit="positions"),
        )
        output.table(columns, rows, wide=wide)

    output.emit(as_json, told, for_people)


@app.command()
def resume(
    name: Name, stream: Stream, accept_gaps: AcceptGaps = False, engine: EngineName = "", as_json: JsonFlag = False
) -> None:
    """Resume one that failed or was killed."""
    told = installation().resume_backfill(name, stream, _how(engine, accept_gaps, as_json))
    _show_ended(told, as_json)


@app.command()
def cancel(name: Name, stream: Stream, why: Why = "", as_json: JsonFlag = False) -> None:
    """Cancel one for good; if it runs, it ends at its next range boundary. Delivered records stay in the target."""
    told, changed = installation().cancel_backfill(name, stream, why=why)
    text = "cancelled" if changed else f"was {told['state']} already"
    output.emit(as_json, told, lambda: output.line("\n  ".join([f"{name}: {told['stream']}: {text}", *_unknown(told)])))


def _begin_and_run(name: str, request: Request, engine: str, as_json: bool) -> None:
    told = installation().begin_backfill(name, request, _how(engine, request.accept_gaps, as_json))
    if told["stream"] is None:
        output.emit(as_json, told, lambda: output.line(f"{name}: nothing to move"))
    else:
        _show_ended(told, as_json)


def _how(engine: str, accept_gaps: bool, as_json: bool) -> How:
    from connect_core.service.runs import How

    return How(partial(listening, as_json), output.notice, engine, accept_gaps)


def _show_ended(told: dict[str, Any], as_json: bool) -> None:
    from connect_core.service.run_report import counts, noteworthy

    name, stream = told["connector"], told["stream"]

    def for_people() -> None:
        if "ranges" in told:
            output.line(f"{name}: {counts(told)} ({told['seconds']:.1f} s)")
            output.line("\n".join([*noteworthy(told), f"  receipts: waybill receipts {name} --stream {stream}"]))
        output.line(f"{name}: {stream} is {told['state']}")

    output.emit(as_json, told, for_people)


def _unknown(told: dict[str, Any]) -> list[str]:
    """Of a backfill that is cancelled: what an attempt may have delivered that no receipt tells of."""
    said = "was open: records that it delivered are in the target, without a receipt"
    return [f"{one['partition']} from {one['begin']:,} to {one['end']:,} {said}" for one in told["open"]]


def _cell(told: dict[str, Any], key: str) -> Any:
    value = told[key]
    return ", ".join(f"{name}={one}" for name, one in value.items()) if isinstance(value, dict) else value
