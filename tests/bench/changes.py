"""From `waybill apply` to Airflow: when a new connector, and one that was changed, can be seen there.

Seen is what Airflow has serialised, which is what its pages show and its scheduler runs. The command itself takes about
as long as Python takes to start: what counts is the time after it has returned, and the whole stands beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from connect_core.orchestration import names
from tests.bench.airflow import Web, web
from tests.bench.place import Place
from tests.bench.telling import Row, at, row, s

_LOOK_S = 0.02
_LIMIT_S = 60.0


def changes(place: Place, repeats: int) -> list[Row]:
    log = place.folder / "changes.log"
    log.write_text("one line\n")

    def apply(name: str, tasks: int) -> None:
        sink = {"rocketmq": {"connection": "main", "topic": "changes", "queues": 1}}
        place.apply(name, {"file": {"path": str(log)}}, sink, tasks, schedule={"manual": True})

    fresh, changed = [], []
    with web(place) as airflow:
        for number in range(repeats):
            name = f"change-{number}"
            fresh.append(_seen(airflow, name, lambda name=name: apply(name, 1), {names.task_id(0)}))
            changed.append(_seen(airflow, name, lambda name=name: apply(name, 2), {names.task_id(0), names.task_id(1)}))
    for number in range(repeats):
        place.delete(f"change-{number}")
    return [_told("new connector", fresh), _told("changed connector", changed)]


def _seen(airflow: Web, name: str, act: Callable[[], Any], tasks: set[str]) -> tuple[float, float]:
    """Seconds from the command's end, and from its start, until the DAG has exactly these tasks."""
    begun = time.monotonic()
    act()
    returned = time.monotonic()
    while airflow.tasks(names.live_dag(name)) - {names.RECONCILE} != tasks:
        if time.monotonic() > returned + _LIMIT_S:
            raise SystemExit(f"Airflow has not seen the change of {name} within {_LIMIT_S:.0f} s")
        time.sleep(_LOOK_S)
    return time.monotonic() - returned, time.monotonic() - begun


def _told(what: str, seen: list[tuple[float, float]]) -> Row:
    behind, whole = ([one[part] for one in seen] for part in (0, 1))
    shown = f"p50 {s(at(behind, 0.5))}, max {s(max(behind))}"
    remark = f"with the command itself p50 {s(at(whole, 0.5))}, max {s(max(whole))}; {len(seen)} times"
    return row(f"{what}: waybill apply has returned to seen in Airflow", shown, remark)
