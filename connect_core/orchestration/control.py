"""Pause, resume, stop and delete where Airflow runs the connectors: its switch is then the only state there is.

The Airflow of a home is the one that its settings name, or the one of its local stack. Called by `service`;
imports no Airflow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from connect_core.config import Settings
from connect_core.errors import ConfigError, Retriable, Unreachable
from connect_core.ledger import Backfill, new_run_id
from connect_core.orchestration import names, parse_requests
from connect_core.orchestration.rest import Airflow, NotThere
from connect_core.replication.driver.status import Schedules, Switch

Told = TypeVar("Told")

ACTIVE = ("queued", "running")
_DAG_FILE = Path("airflow", "dags", "replication.py")
_SEEN_LIMIT_S = 15.0
_ENDED_LIMIT_S = 60.0
_LOOK_EVERY_S = 0.2
_PARSED_LIMIT_S = 20.0
_FEW = 10
"""So many connectors are asked for one by one; of more, all are listed."""


@contextmanager
def airflow_of(home: Path | None, settings: Settings) -> Iterator[Airflow | None]:
    """The Airflow that runs the connectors of this home, logged in; None when there is none, so that the ledger alone
    says what a connector shall do. Raises Unreachable when there is one and it does not answer."""
    from connect_core import stack

    if settings.airflow_url:
        password = settings.airflow_password.get_secret_value()
        with Airflow(settings.airflow_url, settings.airflow_user, password) as airflow:
            yield airflow
        return
    running = stack.load(home) if home else None
    if running is None or stack.API_SERVER not in running.parts:
        yield None
        return
    with Airflow(running.airflow_url, running.airflow_user, running.airflow_password) as airflow:
        yield airflow


def parse_now(home: Path | None, settings: Settings) -> None:
    """Asks for the DAGs to be made anew: a connector was applied or deleted. Of the local stack by the time of its DAG
    file; of another Airflow through any DAG of ours. Not being heard is no failure: Airflow parses by itself every half
    minute."""
    if not settings.airflow_url:
        parse_requests.ask(_dag_file(home))
        return
    with suppress(Unreachable, ConfigError), airflow_of(home, settings) as airflow:
        known = airflow.dags(tag="waybill") if airflow else []
        if airflow and known:
            airflow.parse_now(known[0].dag_id)


def _dag_file(home: Path | None) -> Path:
    return (home or Path()) / _DAG_FILE


def schedules(home: Path | None, settings: Settings) -> Schedules:
    """Who runs the connectors of this home, and what its switches say. Raises Unreachable when an Airflow does that,
    and it does not answer."""
    return schedules_of(asked_switches(home, settings))


def asked_switches(home: Path | None, settings: Settings, *, only_paused: bool = False) -> dict[str, Switch] | None:
    """As `switches`; None where no Airflow runs the connectors."""
    with airflow_of(home, settings) as airflow:
        return switches(airflow, only_paused=only_paused) if airflow else None


def schedules_of(switches: Mapping[str, Switch] | None) -> Schedules:
    """None: no Airflow runs the connectors."""
    return Schedules() if switches is None else Schedules(switches, names.RETRIES)


def switches(airflow: Airflow, *, only_paused: bool = False) -> dict[str, Switch]:
    """By connector; with `only_paused` those that are off."""
    found: dict[str, Switch] = {}
    for dag in airflow.dags(tag="waybill", prefix=names.LIVE_DAG, only_paused=only_paused):
        if dag.dag_id.startswith(names.LIVE_DAG):  # Airflow may take a letter of the prefix for any letter
            found[dag.dag_id.removeprefix(names.LIVE_DAG)] = "paused" if dag.is_paused else "on"
    return found


def set_paused(airflow: Airflow, connector: str, paused: bool) -> None:
    """Turns the switch of the live DAG, waiting a moment for a DAG that Airflow has only just been told of."""
    _when_seen(lambda: airflow.pause(names.live_dag(connector), paused))


def begin_run(airflow: Airflow, connector: str) -> None:
    """One run of the live DAG, behind the one that is under way; none where one waits there already."""
    dag_id = names.live_dag(connector)
    if not _when_seen(lambda: airflow.runs(dag_id, states=("queued",), limit=1)):
        airflow.trigger(dag_id)


def start_backfill(airflow: Airflow, connector: str, stored: Backfill, *, accept_gaps: bool = False) -> str:
    """Has Airflow go on with what is stored; returns the id of its run. The words are those it was begun with, so that
    the same backfill is meant; gaps may be accepted since."""
    dag_id = names.backfill_dag(connector)
    run_id = f"{stored.stream}.{new_run_id(datetime.now(UTC))}"
    asked = stored.asked
    conf = {
        "from": asked.get("from"),
        "to": asked.get("to"),
        "ranges": asked.get("ranges", []),
        "run": asked.get("run"),
        "sink": asked.get("sink", []),
        "id": stored.stream.removeprefix(f"{stored.kind}-"),
        "accept_gaps": accept_gaps or bool(asked.get("accept_gaps")),
    }
    if _when_seen(lambda: airflow.dag(dag_id)).is_paused:
        raise ConfigError(
            f"{stored.stream} would wait forever: its DAG is paused in Airflow",
            where=f"DAG {dag_id}",
            next_step=f"Switch it on there, then: waybill backfills resume {connector} {stored.stream}",
        )
    airflow.trigger(dag_id, run_id=run_id, conf=conf, note=stored.why or None)
    return run_id


def is_over(airflow: Airflow, connector: str, run_id: str) -> bool:
    """Raises Retriable when the run has failed."""
    dag_id = names.backfill_dag(connector)
    run = airflow.run(dag_id, run_id)
    if run.state == "failed":
        raise Retriable(
            "The backfill has failed in Airflow",
            where=f"DAG {dag_id}, run {run_id}",
            next_step="Read the log of its last attempt there; settled ranges stay, and the backfill can be resumed",
        )
    return run.state == "success"


def end_runs(airflow: Airflow, connector: str) -> None:
    """Marks every run of the connector's DAGs that has not ended as failed: their tasks end at the next range boundary,
    or are killed by Airflow some seconds later."""
    for dag_id in names.dag_ids(connector):
        with suppress(NotThere):  # a DAG that Airflow has not seen has no runs
            _outlasting(partial(_fail_active_runs, airflow, dag_id))


def hold(airflow: Airflow, connector: str) -> None:
    """No run of the connector's DAGs begins any more, whatever a parse stores that has read the ledger before."""
    for dag_id in names.dag_ids(connector):
        with suppress(NotThere):
            airflow.pause(dag_id, True)


def known(airflow: Airflow, connectors: Collection[str]) -> list[str]:
    """Those of which Airflow has a DAG, if only a stale one."""
    if len(connectors) <= _FEW:
        return [one for one in connectors if _is_known(airflow, one)]
    there = {dag.dag_id for dag in airflow.dags(tag="waybill", stale=True)}
    return [one for one in connectors if not there.isdisjoint(names.dag_ids(one))]


def _is_known(airflow: Airflow, connector: str) -> bool:
    for dag_id in names.dag_ids(connector):
        with suppress(NotThere):
            airflow.dag(dag_id)
            return True
    return False


def forget(airflow: Airflow, connector: str, home: Path | None, settings: Settings) -> None:
    """Removes the DAGs of a deleted connector with their runs, once no task of theirs is at work any more, and no parse
    of the local stack that still knows it. One of another Airflow may bring them back until the next. Raises
    Unreachable where a parse takes too long."""
    if not settings.airflow_url and not parse_requests.has_begun(_dag_file(home), _PARSED_LIMIT_S) and _parses(home):
        raise Unreachable(
            f"Its dag-processor has begun no parse for {_PARSED_LIMIT_S:g} s",
            where=str(_dag_file(home)),
            next_step="Look at its log: waybill dev status names it",
        )
    for dag_id in names.dag_ids(connector):
        with suppress(NotThere):
            _outlasting(partial(airflow.delete, dag_id))


def _parses(home: Path | None) -> bool:
    """Whether a dag-processor of the local stack is there: without it nothing is stored that was read before."""
    from connect_core import stack

    running = stack.load(home) if home else None
    part = running.parts.get(stack.DAG_PROCESSOR) if running else None
    return part is not None and part.process.is_alive


def _fail_active_runs(airflow: Airflow, dag_id: str) -> None:
    while runs := airflow.runs(dag_id, states=ACTIVE, limit=100):
        for run in runs:
            airflow.fail_run(dag_id, run.run_id)


def _outlasting(act: Callable[[], None]) -> None:
    """Again while Airflow cannot: a task is still at work, or its scheduler writes what is to be changed (500)."""
    until = time.monotonic() + _ENDED_LIMIT_S
    while True:
        try:
            return act()
        except NotThere:
            raise
        except (ConfigError, Unreachable):
            if time.monotonic() > until:
                raise
        time.sleep(_LOOK_EVERY_S)


def _when_seen(act: Callable[[], Told]) -> Told:
    until = time.monotonic() + _SEEN_LIMIT_S
    while True:
        try:
            return act()
        except NotThere:
            if time.monotonic() > until:
                raise
        time.sleep(_LOOK_EVERY_S)
