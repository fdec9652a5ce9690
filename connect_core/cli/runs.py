"""run and plan: one run of a connector here and now, without Airflow, and what it would move."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, partition_states, session
from connect_core.cli.columns import Column
from connect_core.cli.history import lag_unit, waiting_lines
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.progress import listening
from connect_core.errors import Unreachable

if TYPE_CHECKING:
    from connect_core.cli.session import Session
    from connect_core.config import EngineOptions, Settings
    from connect_core.engine.submitting import Place
    from connect_core.ledger import Connector
    from connect_core.work import Engine

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]

EngineName = Annotated[
    str, typer.Option("--engine", help="Where lanes run: spark, submit, inline or a file of conf/engines.")
]


def _duration(text: str) -> float:
    from connect_core.config.units import parse_seconds

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
        bool, typer.Option("--accept-gaps", help="Records that are gone are noted as gaps; go on behind them, once.")
    ] = False,
    window: Annotated[
        float,
        typer.Option("--window", parser=_duration, metavar="DURATION", help="Stay so long and follow the source."),
    ] = 0.0,
    as_json: JsonFlag = False,
) -> None:
    """Run a connector once, here and now: moves what is there, then ends; with --window it stays and follows."""
    from connect_core.replication.driver import report

    begun = time.monotonic()
    with session.working() as (opened, home):
        told = attempt(opened, home, opened.ledger.connector(name), How(engine, accept_gaps, as_json, window))
    told |= {"seconds": round(time.monotonic() - begun, 3)}
    output.emit(as_json, told, lambda: output.line("\n".join(report.lines(told))))


def plan(name: Name, wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """What the next run would move. Asks the source and the ledger; writes nothing."""
    from connect_core.config.units import show_seconds
    from connect_core.replication.driver.preview import plan_connector

    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        resolved = opened.resolved(connector)
        previews = plan_connector(opened.ledger, connector, resolved)
    keys = ("partition", "task", "incarnation", "committed", "begin", "end", "lag", "waiting", "open_from", "state")
    rows = [[getattr(preview, key) for key in keys] for preview in previews]
    unit, put_aside = lag_unit(connector), partition_states.of_previews(previews)
    columns = (
        Column("PARTITION", least=16),
        Column("TASK", 4),
        Column("INCARNATION", 5),
        Column("COMMITTED", 2),
        Column("BEGIN"),
        Column("END"),
        Column("LAG", unit=unit),
        Column("WAITING", 5, unit="bytes"),
        Column("OPEN FROM", 3),
        Column("STATE", 3, cut="never"),
    )

    def for_people() -> None:
        output.table(columns, rows, "the source has no partitions", wide=wide)
        for preview in previews:
            for gap in preview.gaps:
                end = "?" if gap.end is None else gap.end
                output.line(f"gap in {preview.partition}: {gap.begin} to {end}: {gap.reason}")
        for sentence in (*waiting_lines([preview.waiting for preview in previews]), *partition_states.lines(put_aside)):
            output.line(sentence)
        if resolved.window_s:
            output.line(f"a scheduled run stays for {show_seconds(resolved.window_s)} and moves what comes meanwhile")

    told = {"connector": name, "state": connector.target_state, "lag": sum(p.lag for p in previews)}
    told |= {"unit": unit, "window_s": resolved.window_s}
    output.emit(as_json, {**told, "partitions": previews}, for_people)


@dataclass(frozen=True)
class How:
    """What a person says of a run: `engine` is the name of one, empty for the connector's; `quiet` for scripts."""

    engine: str
    accept_gaps: bool
    quiet: bool
    window_s: float = 0.0


def attempt(opened: Session, home: Path, connector: Connector, how: How, stream: str | None = None) -> dict[str, Any]:
    """One run of the live stream, or of a backfill, wherever its engine is; what it tells at its end."""
    from connect_core.config import engine_for
    from connect_core.engine import submitting
    from connect_core.replication.driver.attempts import recorded
    from connect_core.sdk.values import LIVE

    wanted = engine_for(connector.document, opened.settings, home, how.engine)
    if wanted.kind != "submit":
        return _run_here(wanted, opened, home, connector, how, stream or LIVE)
    with recorded(opened.ledger, connector.uid, stream or LIVE, engine=wanted.kind):
        place = _submitted_at(wanted, opened.settings, home)
    return submitting.run(
        place,
        connector.name,
        engine=how.engine or None,
        accept_gaps=how.accept_gaps,
        window_s=how.window_s,
        stream=stream or LIVE,
        say=output.notice,
    )


def _run_here(
    wanted: EngineOptions, opened: Session, home: Path, connector: Connector, how: How, stream: str
) -> dict[str, Any]:
    """This process is the driver."""
    from connect_core.replication.backfill.run import context_of_stream
    from connect_core.replication.driver import report
    from connect_core.replication.driver.attempts import recorded
    from connect_core.replication.driver.prepare import run_context
    from connect_core.replication.driver.run import run_connector

    with listening(how.quiet) as listener, recorded(opened.ledger, connector.uid, stream, engine=wanted.kind):
        live = run_context(
            opened.ledger,
            opened.settings,
            home,
            connector,
            _engine(wanted, home),
            listener,
            accept_gaps=how.accept_gaps,
            window_s=how.window_s,
        )
        context = context_of_stream(live, stream, opened.settings)
        return report.reported(run_connector(context), seconds=0)


def _submitted_at(wanted: EngineOptions, settings: Settings, home: Path) -> Place:
    from connect_core.engine.submitting import Place
    from connect_core.stack import jars, java

    return Place(
        home=home,
        java=java.find(jars.cache_folder()).resolve(),
        master=wanted.master or settings.submit_master,
        python=wanted.python or Path(sys.executable),
        spark=wanted.spark,
        conf=wanted.conf,
    )


def _engine(wanted: EngineOptions, home: Path) -> Engine:
    """The one of the local stack when it is resident Spark."""
    from connect_core import engine, stack

    remote = None
    if wanted.kind == "spark":
        running = stack.load(home)
        if running is None or stack.ENGINE not in running.parts:
            raise Unreachable(
                "the engine is not running",
                where=str(home),
                next_step="Start it with `waybill engine start` (or `waybill dev up`), or give --engine inline",
            )
        remote = running.spark_remote
    return engine.engine(wanted.kind, remote=remote, spark=wanted.spark, home=home)
