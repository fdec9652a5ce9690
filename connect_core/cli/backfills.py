"""backfill, replay, and backfills list | show | resume | cancel: a stretch of the past again, beside the live one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, session
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.progress import listening
from connect_core.cli.runs import EngineName, How, Name, attempt
from connect_core.orchestration.names import backfill_dag

if TYPE_CHECKING:
    from connect_core.cli.session import Session
    from connect_core.ledger import Backfill, Connector, Ledger, SettledRange
    from connect_core.orchestration.rest import Airflow
    from connect_core.replication.backfill.request import Request
    from connect_core.replication.driver.context import Progress

app = typer.Typer(no_args_is_help=True, help="Backfills and replays: what became of them, and going on with them.")

_LOOK_EVERY_S = 1.0

Stream = Annotated[
    str,
    typer.Argument(
        help="As `backfills list` names it, or its --id.", metavar="STREAM", autocompletion=completing.backfills
    ),
]
OptionalName = Annotated[
    str,
    typer.Argument(
        help="Name of a connector; all of them when left out.", metavar="[NAME]", autocompletion=completing.connectors
    ),
]
Id = Annotated[str, typer.Option("--id", help="Names a new one, or goes on with the one of this id.")]
Sink = Annotated[
    list[str], typer.Option("--sink", help="KEY=VALUE: an option of the sink that differs. May be given several times.")
]
AcceptGaps = Annotated[
    bool, typer.Option("--accept-gaps", help="Records that are gone are noted as gaps; go on without them.")
]
Why = Annotated[str, typer.Option("--why", help="Kept with it.")]


def register(root: typer.Typer) -> None:
    root.command("backfill")(backfill)
    root.command("replay")(replay)


def backfill(
    name: Name,
    begin: Annotated[
        str, typer.Option("--from", help='A time with its zone, or how long ago ("2h"): records stored since.')
    ] = "",
    end: Annotated[str, typer.Option("--to", help="A time, exclusive; now when left out.")] = "",
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="PARTITION:BEGIN-END instead of times. May be given several times."),
    ] = None,
    sink: Sink | None = None,
    id_: Id = "",
    accept_gaps: AcceptGaps = False,
    why: Why = "",
    engine: EngineName = "",
    as_json: JsonFlag = False,
) -> None:
    """Move a stretch of the past again, in a stream of its own, beside the live one."""
    from connect_core.replication.backfill.request import Request

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
    run: Annotated[str, typer.Option("--run", help="Id of a run, or of an Airflow run: all its tasks.")],
    sink: Sink | None = None,
    id_: Id = "",
    accept_gaps: AcceptGaps = False,
    why: Why = "",
    engine: EngineName = "",
    as_json: JsonFlag = False,
) -> None:
    """Move again exactly what a run has moved, in a stream of its own."""
    from connect_core.replication.backfill.request import Request

    request = Request(run=run, sink=tuple(sink or ()), id=id_, accept_gaps=accept_gaps, why=why)
    _begin_and_run(name, request, engine, as_json)


@app.command("list")
def list_(name: OptionalName = "", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Backfills and replays, the newest first."""
    with session.reading() as opened:
        names = {one.uid: one.name for one in opened.ledger.connectors()}
        uid = opened.ledger.connector(name).uid if name else None
        found = [one for one in opened.ledger.backfills(uid) if one.uid in names]
        told = [_told(opened.ledger, names[one.uid], one) for one in found]
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
    """One of them: what was asked for, its parts, and how far each has come."""
    from connect_core.replication.backfill.run import stored_backfill

    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        stored = stored_backfill(opened.ledger, connector, stream)
        told = _told(opened.ledger, name, stored)
    keys = ("partition", "incarnation", "begin", "end", "done")
    rows = [[part[key] for key in keys] for part in told["parts"]]

    def for_people() -> None:
        shown = ("state", "asked", "sink", "revision", "who", "why", "created_at", "ended_at")
        output.fields((key.replace("_", " "), _cell(told, key)) for key in shown)
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
    """Go on with one that was killed, or has failed."""
    from connect_core.replication.backfill.run import stored_backfill

    with session.working() as (opened, home):
        connector = opened.ledger.connector(name)
        stored = stored_backfill(opened.ledger, connector, stream)
        _run(opened, home, connector, stored, How(engine, accept_gaps, as_json))


@app.command()
def cancel(name: Name, stream: Stream, why: Why = "", as_json: JsonFlag = False) -> None:
    """End one for good: at its next range boundary, if it runs. What it has delivered stays in its target."""
    from connect_core.replication.backfill.run import stored_backfill

    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        stream = stored_backfill(opened.ledger, connector, stream).stream
        changed = opened.ledger.cancel_backfill(connector.uid, stream, who=opened.settings.user, why=why)
        told = _told(opened.ledger, name, stored_backfill(opened.ledger, connector, stream))
    text = "cancelled" if changed else f"was {told['state']} already"
    output.emit(as_json, told, lambda: output.line("\n  ".join([f"{name}: {stream}: {text}", *_unknown(told)])))


# ------------------------------------------------------------------------------------------------------------- running


def _begin_and_run(name: str, request: Request, engine: str, as_json: bool) -> None:
    from connect_core import engine as engines
    from connect_core.replication.backfill.start import begun
    from connect_core.replication.driver.prepare import run_context

    with session.working() as (opened, home):
        connector = opened.ledger.connector(name)
        with listening(quiet=as_json) as listener:
            nobody = engines.engine("inline")  # a context has one; nothing is executed yet
            live = run_context(opened.ledger, opened.settings, home, connector, nobody, listener)
            stored = begun(live, opened.settings, request, who=opened.settings.user)
        if stored is not None:
            _run(opened, home, connector, stored, How(engine, request.accept_gaps, as_json))
            return
    told = {"connector": name, "stream": None, "state": "nothing to move"}
    output.emit(as_json, told, lambda: output.line(f"{name}: there is nothing in it to move"))


def _run(opened: Session, home: Path, connector: Connector, stored: Backfill, how: How) -> None:
    """Attempts until it is over: one ends early when the live stream's partitions are shared out anew."""
    from connect_core.orchestration import control
    from connect_core.replication.backfill.run import stored_backfill
    from connect_core.replication.driver import report

    begun = time.monotonic()
    several: list[dict[str, Any]] = []
    name, stream = connector.name, stored.stream
    output.notice(f"{name}: {stream} into {_sink(stored) or 'the sink of the document'}")
    output.notice(f"{name}: how far it is: waybill backfills show {name} {stream}")
    with control.airflow_of(opened.home, opened.settings) as airflow:
        if airflow and not how.engine and stored.state != "done":
            known = {one.id for one in _receipts(opened.ledger, stored)}
            _follow(airflow, opened.ledger, connector, stored, how)
            settled = [one.receipt for one in _receipts(opened.ledger, stored) if one.id not in known]
            several.append({"connector": name, "seconds": 0, **report.total(settled)})
        else:
            while _goes_on(opened.ledger, connector, stream, several):
                several.append(attempt(opened, home, connector, how, stream=stream))
    now = stored_backfill(opened.ledger, connector, stream)
    moved = {**report.added(several), "seconds": round(time.monotonic() - begun, 3)} if several else {}

    def for_people() -> None:
        if moved:
            output.line(f"{name}: {report.counts(moved)} ({moved['seconds']:.1f} s)")
            output.line(
                "\n".join([*report.noteworthy(moved), f"  receipts: waybill receipts {name} --stream {stream}"])
            )
        output.line(f"{name}: {stream} is {now.state}")

    output.emit(how.quiet, {**_told(opened.ledger, name, now), **moved}, for_people)


def _receipts(ledger: Ledger, stored: Backfill) -> list[SettledRange]:
    return ledger.receipts(stored.uid, stream=stored.stream, limit=None)


def _follow(airflow: Airflow, ledger: Ledger, connector: Connector, stored: Backfill, how: How) -> None:
    """Airflow runs it; this shows how far it has come. It goes on there when this is interrupted."""
    from connect_core.orchestration import control

    with listening(quiet=how.quiet) as listener:
        run_id = control.start_backfill(airflow, connector.name, stored, accept_gaps=how.accept_gaps)
        listener.log(f"Airflow runs it, as {run_id} of DAG {backfill_dag(connector.name)}")
        over = False
        while not over:
            over = control.is_over(airflow, connector.name, run_id)
            now = progress_of(ledger, stored)
            if over or now.done < now.planned:
                listener.progress(now)
            if not over:
                time.sleep(_LOOK_EVERY_S)


def progress_of(ledger: Ledger, stored: Backfill) -> Progress:
    """How far all tasks of it have come together, in positions and in records."""
    from connect_core.planning.backfill_plan import BackfillPlan
    from connect_core.replication.driver.context import Progress

    plan = BackfillPlan(stored.parts)
    positions = ledger.positions(stored.uid, stored.stream, plan.partitions())
    records = ledger.records_read(stored.uid, stored.stream)
    return Progress(0, plan.done(positions), plan.length(positions), records)


def _goes_on(ledger: Ledger, connector: Connector, stream: str, several: list[dict[str, Any]]) -> bool:
    """Whether there is something left for another attempt. Raises Retriable when the last one came to nothing."""
    from connect_core.replication.backfill.run import gets_nowhere, stored_backfill

    state = stored_backfill(ledger, connector, stream).state
    if state == "done" or (several and (state == "cancelled" or ledger.standing(connector.uid).deleted)):
        return False
    if several and not several[-1]["ranges"]:
        raise gets_nowhere(connector.name, stream)
    return True


# ------------------------------------------------------------------------------------------------------------- telling


def _told(ledger: Ledger, name: str, stored: Backfill) -> dict[str, Any]:
    from connect_core.planning.backfill_plan import BackfillPlan

    plan = BackfillPlan(stored.parts)
    positions = ledger.positions(stored.uid, stored.stream, plan.partitions())
    return {
        "connector": name,
        "stream": stored.stream,
        "kind": stored.kind,
        "state": stored.state,
        "asked": stored.asked,
        "sink": stored.sink,
        "revision": stored.revision,
        "who": stored.who,
        "why": stored.why,
        "created_at": stored.created_at,
        "ended_at": stored.ended_at,
        "open": _given_up(ledger, stored) if stored.state == "cancelled" else [],
        "done": plan.done(positions),
        "planned": plan.length(positions),
        "parts": [
            {
                "partition": part.partition.key,
                "incarnation": part.incarnation,
                "begin": part.begin,
                "end": part.end,
                "done": BackfillPlan((part,)).done(positions),
            }
            for part in stored.parts
        ],
    }


def _given_up(ledger: Ledger, stored: Backfill) -> list[dict[str, Any]]:
    """The ranges that nobody will finish."""
    return [
        {"partition": one.range.partition.key, "begin": one.range.begin, "end": one.range.end}
        for one in ledger.open_ranges(stored.uid, stored.stream)
    ]


def _unknown(told: dict[str, Any]) -> list[str]:
    """Of a backfill that is cancelled: what an attempt may have delivered that no receipt tells of."""
    said = "was open: what was delivered of it stands in the target, and no receipt tells of it"
    return [f"{one['partition']} from {one['begin']:,} to {one['end']:,} {said}" for one in told["open"]]


def _cell(told: dict[str, Any], key: str) -> Any:
    value = told[key]
    return ", ".join(f"{name}={one}" for name, one in value.items()) if isinstance(value, dict) else value


def _sink(stored: Backfill) -> str:
    return ", ".join(f"{name}={value}" for name, value in stored.sink.items())
