"""One run of a connector here and now, without Airflow."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from connect_core import engine
from connect_core.config import EngineOptions, Settings, engine_for
from connect_core.engine import submitting
from connect_core.engine.submitting import SubmitPlace
from connect_core.errors import Unreachable
from connect_core.ledger import Connector
from connect_core.replication.backfill.run import context_of_stream
from connect_core.replication.driver.attempts import recorded
from connect_core.replication.driver.prepare import run_context
from connect_core.replication.driver.run import keeping_what_is_there, run_connector
from connect_core.sdk.values import LIVE, Json
from connect_core.service.opened import AtWork, Say
from connect_core.service.run_report import RunListener, reported
from connect_core.work import Engine

Listening = Callable[[], AbstractContextManager[RunListener]]
"""Gives the listener of one attempt, for as long as it lasts; several threads may call it."""


@dataclass(frozen=True)
class How:
    """What a person says of a run: `engine` is the name of one, empty for the connector's. With `window_s` it stays so
    long and follows its source. `say` is told what an application elsewhere says."""

    listening: Listening
    say: Say
    engine: str = ""
    accept_gaps: bool = False
    window_s: float = 0.0


def run(opened: AtWork, name: str, how: How) -> Json:
    """Moves what is there, then ends: the receipts added up, and the seconds it took."""
    begun = time.monotonic()
    told = attempt(opened, opened.ledger.connector(name), how)
    return told | {"seconds": round(time.monotonic() - begun, 3)}


def attempt(opened: AtWork, connector: Connector, how: How, stream: str = LIVE) -> Json:
    """One run of the live stream, or of a backfill, wherever its engine is; what it tells at its end."""
    wanted = engine_for(connector.document, opened.settings, opened.home, how.engine)
    if wanted.kind != "submit":
        return _run_here(wanted, opened, connector, how, stream)
    with recorded(opened.ledger, connector.uid, stream, engine=wanted.kind):
        place = _submitted_at(wanted, opened.settings, opened.home)
    return submitting.run(
        place,
        connector.name,
        engine=how.engine or None,
        accept_gaps=how.accept_gaps,
        window_s=how.window_s,
        stream=stream,
        say=how.say,
    )


def _run_here(wanted: EngineOptions, opened: AtWork, connector: Connector, how: How, stream: str) -> Json:
    """This process is the driver."""
    with how.listening() as listener, recorded(opened.ledger, connector.uid, stream, engine=wanted.kind):
        live = run_context(
            opened.ledger,
            opened.settings,
            opened.home,
            connector,
            engine.engine("inline"),  # a context has one; nothing is executed yet
            listener,
            accept_gaps=how.accept_gaps,
            window_s=how.window_s,
        )
        with keeping_what_is_there(live):
            live = replace(live, engine=_engine(wanted, opened.home))
        context = context_of_stream(live, stream, opened.settings)
        return reported(run_connector(context), seconds=0)


def _submitted_at(wanted: EngineOptions, settings: Settings, home: Path) -> SubmitPlace:
    from connect_core.stack import jars, java

    return SubmitPlace(
        home=home,
        java=java.find(jars.cache_folder()).resolve(),
        master=wanted.master or settings.submit_master,
        python=wanted.python or Path(sys.executable),
        spark=wanted.spark,
        conf=wanted.conf,
    )


def _engine(wanted: EngineOptions, home: Path) -> Engine:
    """The one of the local stack when it is resident Spark."""
    remote = None
    if wanted.kind == "spark":
        from connect_core.service.local_stack import engine_remote

        remote = engine_remote(home)
        if remote is None:
            raise Unreachable(
                "The engine is not running",
                where=str(home),
                next_step="Start it with `waybill engine start` (or `waybill dev up`), or give --engine inline",
            )
    return engine.engine(wanted.kind, remote=remote, spark=wanted.spark, home=home)
