"""Many connectors on short schedules, and a stack with nothing to do: what Airflow's processor and memory go to.

The fleet is made with one command, so that all of its runs are due at the same moment: the worst that a schedule can
ask for. Each connector has a file that grows, and a topic of its own; at the end every line of every file must be in
its topic once.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connect_core.rocketmq import Client, ClientOptions
from tests.bench.airflow import web
from tests.bench.place import Place, until
from tests.bench.telling import Row, row, s, spread
from tests.bench.usage import shares, told_cores, told_memory, usage

CONNECTORS = 50
EVERY_S = 30
_IDLE_CONNECTORS = 3
_LINES_EVERY_S = 5.0
_FIRST_LIMIT_S = 900.0
_LAST_LIMIT_S = 600.0


@dataclass
class Growing:
    """One file with a line every few seconds, written by the fleet's writer."""

    name: str
    path: Path
    lines: int = 0

    def grow(self) -> None:
        with self.path.open("a") as file:
            file.write(f"{self.lines}\n")
        self.lines += 1

    def document(self, schedule: dict[str, Any]) -> dict[str, Any]:
        sink = {"connection": "main", "topic": self.name, "queues": 1}
        return {"source": {"file": {"path": str(self.path)}}, "sink": {"rocketmq": sink}, "schedule": schedule}


def fleet(place: Place, minutes: float, connectors: int = CONNECTORS) -> list[Row]:
    files = _files(place, "fleet", connectors)
    over = threading.Event()
    writer = threading.Thread(target=_write, args=(files, over), daemon=True)
    writer.start()
    place.apply_all({one.name: one.document({"every": f"{EVERY_S}s"}) for one in files})
    with web(place) as airflow:
        until(lambda: _have_run(airflow.starts("fleet-"), connectors), "the first run of each", _FIRST_LIMIT_S)
        begun, before, load = datetime.now(UTC), usage(place.running), os.getloadavg()[0]
        time.sleep(minutes * 60)
        ended, after = datetime.now(UTC), usage(place.running)
        over.set()
        writer.join()
        until(lambda: _arrived(place, files), "every line in its topic", _LAST_LIMIT_S)
        due = [one for one in airflow.starts("fleet-") if begun <= one.due <= ended]
    wall_s = (ended - begun).total_seconds()
    lags = [one.lag_s for one in due if one.begun]
    what = f"{connectors} connectors every {EVERY_S} s for {minutes:g} min"
    wanted = round(connectors * wall_s / EVERY_S)
    cores, parts = told_cores(shares(before, after, wall_s))
    return [
        row(f"{what}: due to task started", spread(lags, s), f"{len(lags)} runs of {wanted} periods; load {load:.1f}"),
        row(f"{what}: processor", cores, parts),
        row(f"{what}: memory", *told_memory(after)),
        row(f"{what}: lines", f"{sum(one.lines for one in files):,} written", "each in its topic once"),
    ]


def idle(place: Place, seconds: float) -> list[Row]:
    """Settles for so long, and is looked at for as long again."""
    files = _files(place, "idle", _IDLE_CONNECTORS)
    place.apply_all({one.name: one.document({"every": "10s"}) for one in files})
    with web(place) as airflow:
        until(lambda: _have_run(airflow.starts("idle-"), len(files)), "the first run of each", _FIRST_LIMIT_S)
    for one in files:
        place.waybill("connectors", "pause", one.name)
    time.sleep(seconds)
    begun, before = time.monotonic(), usage(place.running)
    time.sleep(seconds)
    after = usage(place.running)
    cores, parts = told_cores(shares(before, after, time.monotonic() - begun))
    for one in files:
        place.delete(one.name)
    what = f"idle stack, {len(files)} connectors paused"
    return [row(f"{what}: processor", cores, parts), row(f"{what}: memory", *told_memory(after))]


def _files(place: Place, name: str, number: int) -> list[Growing]:
    folder = place.folder / name
    folder.mkdir()
    files = [Growing(f"{name}-{one:02d}", folder / f"{one:02d}.log") for one in range(number)]
    for one in files:
        one.grow()
    return files


def _write(files: list[Growing], over: threading.Event) -> None:
    while not over.wait(_LINES_EVERY_S):
        for one in files:
            one.grow()


def _have_run(starts: list[Any], wanted: int) -> bool:
    return len({one.dag_id for one in starts if one.state in ("success", "failed")}) >= wanted


def _arrived(place: Place, files: list[Growing]) -> bool:
    """True when every line is there. One that is there twice, or in the wrong place, ends the benchmark."""
    with Client(ClientOptions(name_servers=tuple(place.name_servers.split(";")))) as client:
        return all(_has_arrived(client, one) for one in files)


def _has_arrived(client: Client, one: Growing) -> bool:
    seen: list[int] = []
    for queue, bounds in client.offsets.bounds(one.name).items():
        for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + 30):
            seen += [int(bytes(message.body)) for message in part.messages]
    if seen != list(range(len(seen))):
        raise SystemExit(f"{one.name} has lines twice, or not in their order")
    return len(seen) == one.lines
