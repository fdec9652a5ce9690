"""A run whose driver is this process: the Spark application that spark-submit has started for it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from connect_core.config import EngineOptions, engine_for
from connect_core.engine import failures
from connect_core.engine.spark_checks import check_asked_for
from connect_core.engine.spark_classic import SparkClassicEngine
from connect_core.errors import VersionMismatch
from connect_core.replication.backfill.run import context_of_stream
from connect_core.replication.driver.attempts import recorded
from connect_core.replication.driver.other_hosts import require_reachable
from connect_core.replication.driver.prepare import run_context
from connect_core.replication.driver.run import RunSummary, run_connector, run_task
from connect_core.sdk.values import LIVE, Json
from connect_core.service.opened import AtWork
from connect_core.service.run_report import RunListener, reported


@dataclass(frozen=True)
class Submitted:
    """What the application was given: `task` is one of the connector's, None: all of them; `stream` a backfill, or the
    live one; `attempt_of` the run of a scheduler. `engine` names the one that this is to be, empty: the connector's.
    With `window_s` None the run of a scheduler has the window of the document, any other one none."""

    connector: str
    task: int | None = None
    stream: str = LIVE
    attempt_of: str | None = None
    accept_gaps: bool = False
    window_s: float | None = None
    engine: str = ""


def run(opened: AtWork, given: Submitted, listener: RunListener) -> Json:
    """Moves what is there, then ends: the receipts added up, and the seconds it took. Raises VersionMismatch, before
    anything is moved, unless this is the interpreter, with the Spark, that the engine names."""
    begun = time.monotonic()
    ledger, settings, home = opened.ledger, opened.settings, opened.home
    connector = ledger.connector(given.connector)
    with recorded(
        ledger, connector.uid, given.stream, task=given.task or 0, engine="submit", attempt_of=given.attempt_of
    ):
        _check_engine(engine_for(connector.document, settings, home, given.engine))
        engine = SparkClassicEngine(log=failures.log_of(home), driver_address=settings.driver_address)
        live = run_context(
            ledger,
            settings,
            home,
            connector,
            engine,
            listener,
            attempt_of=given.attempt_of,
            accept_gaps=given.accept_gaps,
            window_s=given.window_s,
        )
        context = context_of_stream(live, given.stream, settings)
        engine.open(lanes=settings.lanes)
        if engine.elsewhere:
            require_reachable(context.resolved.source, context.resolved.sink, f"connector {connector.name}")
        if given.task is None:
            summary = run_connector(context)
        else:
            done = run_task(context, given.task)
            summary = RunSummary(connector.name, (done,) if done else ())
    return reported(summary, time.monotonic() - begun)


def _check_engine(wanted: EngineOptions) -> None:
    """Of an engine of another kind nothing is said about this one."""
    if wanted.kind != "submit":
        return
    if wanted.spark:
        check_asked_for(wanted.spark)
    if wanted.python and wanted.python != Path(sys.executable):
        raise VersionMismatch(
            f"The engine requires the interpreter {wanted.python}, but this is {sys.executable}",
            next_step="Set spark.pyspark.python and spark.pyspark.driver.python, as `engine.submit.confs` does",
        )
