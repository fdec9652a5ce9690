"""Backfills and replays are begun and gone on with: here, or by the Airflow that runs the connectors. What replays dead
letters has no words in the form of its DAG, and runs here.
"""

from __future__ import annotations

import time

from connect_core import engine
from connect_core.errors import ConfigError
from connect_core.ledger import REPLAY_KIND, Backfill, Connector, Ledger, SettledRange
from connect_core.orchestration import control
from connect_core.orchestration.names import backfill_dag
from connect_core.orchestration.rest import Airflow
from connect_core.planning.backfill_plan import BackfillPlan
from connect_core.replication.backfill.request import Request
from connect_core.replication.backfill.run import gets_nowhere, stored_backfill
from connect_core.replication.backfill.start import begun
from connect_core.replication.driver.prepare import run_context
from connect_core.sdk.values import Json
from connect_core.service.backfills import told_of
from connect_core.service.opened import AtWork
from connect_core.service.run_report import Progress, added, total
from connect_core.service.runs import How, attempt

__all__ = ["CalledOff", "Request", "begin", "resume"]

_LOOK_EVERY_S = 1.0


class CalledOff(ConfigError):
    """Somebody has ended for good what this one was working on."""


def begin(opened: AtWork, name: str, request: Request, how: How) -> Json:
    """Stores it and runs it to its end. The state is `nothing to move`, with no stream, where nothing is in it."""
    connector = opened.ledger.connector(name)
    with how.listening() as listener:
        nobody = engine.engine("inline")  # a context has one; nothing is executed yet
        live = run_context(opened.ledger, opened.settings, opened.home, connector, nobody, listener)
        stored = begun(live, opened.settings, request, who=opened.settings.user)
    if stored is None:
        return {"connector": name, "stream": None, "state": "nothing to move"}
    return _run(opened, connector, stored, how)


def resume(opened: AtWork, name: str, stream: str, how: How) -> Json:
    """Goes on with one that was killed, or has failed."""
    connector = opened.ledger.connector(name)
    return _run(opened, connector, stored_backfill(opened.ledger, connector, stream), how)


def _run(opened: AtWork, connector: Connector, stored: Backfill, how: How) -> Json:
    """Attempts until it is over: one ends early when the live stream's partitions are shared out anew.

    As `backfills.shown`, and where something was to be done the receipts of these attempts added up. Raises CalledOff
    where it is cancelled meanwhile, or its connector deleted.
    """
    started = time.monotonic()
    several: list[Json] = []
    name, stream = connector.name, stored.stream
    target = ", ".join(f"{key}={value}" for key, value in stored.sink.items())
    how.say(f"{name}: {stream} into {target or 'the sink of the document'}")
    how.say(f"{name}: progress: waybill backfills show {name} {stream}")
    with control.airflow_of(opened.home, opened.settings) as airflow:
        if airflow and not how.engine and stored.state != "done" and stored.kind != REPLAY_KIND:
            known = {one.id for one in _receipts(opened.ledger, stored)}
            _follow(airflow, opened.ledger, connector, stored, how)
            settled = [one.receipt for one in _receipts(opened.ledger, stored) if one.id not in known]
            several.append({"connector": name, "seconds": 0, **total(settled)})
        else:
            while _goes_on(opened.ledger, connector, stream, several):
                several.append(attempt(opened, connector, how, stream))
    now = stored_backfill(opened.ledger, connector, stream)
    _require_not_called_off(opened.ledger, name, now)
    moved = {**added(several), "seconds": round(time.monotonic() - started, 3)} if several else {}
    return {**told_of(opened.ledger, name, now), **moved}


def _receipts(ledger: Ledger, stored: Backfill) -> list[SettledRange]:
    return ledger.receipts(stored.uid, stream=stored.stream, limit=None)


def _follow(airflow: Airflow, ledger: Ledger, connector: Connector, stored: Backfill, how: How) -> None:
    """Airflow runs it; this tells how far it has come. It goes on there when this is interrupted."""
    with how.listening() as listener:
        run_id = control.start_backfill(airflow, connector.name, stored, accept_gaps=how.accept_gaps)
        listener.log(f"Airflow runs it, as {run_id} of DAG {backfill_dag(connector.name)}")
        over = False
        while not over:
            over = control.is_over(airflow, connector.name, run_id)
            now = _progress_of(ledger, stored)
            if over or now.done < now.planned:
                listener.progress(now)
            if not over:
                time.sleep(_LOOK_EVERY_S)


def _progress_of(ledger: Ledger, stored: Backfill) -> Progress:
    """How far all tasks of it have come together, in positions and in records."""
    plan = BackfillPlan(stored.parts)
    positions = ledger.positions(stored.uid, stored.stream, plan.partitions())
    records = ledger.records_read(stored.uid, stored.stream)
    return Progress(0, plan.done(positions), plan.length(positions), records)


def _require_not_called_off(ledger: Ledger, name: str, now: Backfill) -> None:
    deleted = ledger.standing(now.uid).deleted
    if now.state == "done" or not (deleted or now.state == "cancelled"):
        return
    who = f"{now.stream} was cancelled" if now.state == "cancelled" else f"Connector {name} was deleted"
    rest = "" if deleted else "; start another one for the rest"
    step = f"It is over for good, and what it has delivered stays{rest}"
    raise CalledOff(f"{who} before everything was moved", where=f"connector {name}, {now.stream}", next_step=step)


def _goes_on(ledger: Ledger, connector: Connector, stream: str, several: list[Json]) -> bool:
    """Whether there is something left for another attempt. Raises Retriable when the last one came to nothing."""
    state = stored_backfill(ledger, connector, stream).state
    if state == "done" or (several and (state == "cancelled" or ledger.standing(connector.uid).deleted)):
        return False
    if several and not several[-1]["ranges"]:
        raise gets_nowhere(connector.name, stream)
    return True
