"""run and plan: one run of a connector here and now, without Airflow, and what it would move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connect_core.cli import output, session
from connect_core.cli.output import JsonFlag
from connect_core.cli.progress import listening
from connect_core.errors import Unreachable

if TYPE_CHECKING:
    from connect_core.contracts import Engine

Name = Annotated[str, typer.Argument(help="Name of the connector.", metavar="NAME")]


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("plan")(plan)


def run(
    name: Name,
    engine: Annotated[str, typer.Option("--engine", help="Where lanes run: spark or inline.")] = "",
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Records that are gone are noted as gaps; go on behind them, once.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a connector once, here and now: moves what is there, then ends."""
    from connect_core.replication import telling
    from connect_core.replication.run import run_connector
    from connect_core.replication.setting import setting_for

    begun = time.monotonic()
    with session.working(engine or None) as (opened, home):
        connector = opened.ledger.connector(name)
        with listening(quiet=as_json) as listener, _engine(opened.settings.engine, home) as found:
            setting = setting_for(
                opened.ledger, opened.settings, home, connector, found, listener, accept_gaps=accept_gaps
            )
            summary = run_connector(setting)
    told = telling.told(summary, time.monotonic() - begun)
    output.emit(as_json, told, lambda: output.line("\n".join(telling.lines(told))))


def plan(name: Name, as_json: JsonFlag = False) -> None:
    """What the next run would move. Asks the source and the ledger; writes nothing."""
    from connect_core.replication.preview import plan_connector

    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        previews = plan_connector(opened.ledger, connector, opened.resolved(connector))
    keys = ("partition", "task", "incarnation", "committed", "begin", "end", "lag", "open_from")
    rows = [[getattr(preview, key) for key in keys] for preview in previews]

    def for_people() -> None:
        output.table([key.replace("_", " ").upper() for key in keys], rows, "the source has no partitions")
        for preview in previews:
            for gap in preview.gaps:
                end = "?" if gap.end is None else gap.end
                output.line(f"gap in {preview.partition}: {gap.begin} to {end}: {gap.reason}")

    told = {"connector": name, "state": connector.target_state, "lag": sum(p.lag for p in previews)}
    output.emit(as_json, {**told, "partitions": previews}, for_people)


@contextmanager
def _engine(kind: str, home: Path) -> Iterator[Engine]:
    """The engine of that kind; the one of the local stack when it is Spark."""
    from connect_core import engine, stack

    remote = None
    if kind == "spark":
        running = stack.load(home)
        if running is None or stack.ENGINE not in running.parts:
            raise Unreachable(
                "the engine is not running",
                where=str(home),
                next_step="Start it with `waybill engine start` (or `waybill dev up`), or give --engine inline",
            )
        remote = running.spark_remote
    yield engine.engine(kind, remote=remote)
