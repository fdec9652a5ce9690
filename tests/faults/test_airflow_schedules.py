"""Each kind of schedule through the real Airflow, backfills that Airflow itself makes, and Spark applications: killed,
paused or left in peace, they move every record once."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.ledger import Ledger, SettledRange
from connect_core.orchestration import names
from connect_core.orchestration.rest import Airflow
from connect_core.rocketmq import Client, ClientOptions
from connect_core.sdk.values import LIVE
from tests.faults.kit.airflow import GrowingFiles, Scheduled, client_of, running_at, site_of, wait_for
from tests.faults.kit.topics import fill
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(900)]

INWARD = {"where": "file → RocketMQ, Airflow", "database": "PostgreSQL"}
OUTWARD = {"where": "RocketMQ → file, Airflow", "database": "PostgreSQL"}
EVERY_S = 5
TICKS = 3
QUIET_S = 6
"""As many looks of a trigger, and longer than it takes Airflow to begin a run."""


@pytest.mark.parametrize(
    "schedule",
    [
        {"every": "10s", "window": "8s"},
        {"continuous": True},
        {"continuous": True, "window": "8s"},
        {"on_change": True},
    ],
    ids=lambda schedule: "-".join(schedule),
)
def test_a_task_killed_under_each_kind_of_schedule(
    journey: GrowingFiles, row: FaultRow, schedule: Mapping[str, Any]
) -> None:
    row.describe(f"SIGKILL of Airflow's task process, schedule {' with a '.join(schedule)}", **INWARD)
    journey.begin(schedule=dict(schedule))
    journey.outlives(row, journey.driver())


def test_on_change_begins_a_run_when_lines_come_and_none_otherwise(
    own_airflow: Path, journey: GrowingFiles, row: FaultRow
) -> None:
    row.describe("silence, then three lines, schedule on_change", **INWARD)
    journey.begin_still(schedule={"on_change": True})
    dag = names.live_dag(journey.name)
    with client_of(own_airflow) as client:
        wait_for(lambda: _stays(lambda: _runs(client, dag)), "no run begins while no line comes")
        behind = journey.settled()
        row.strikes()
        journey.append(3)
        journey.moves_again(row, behind)
        wait_for(lambda: _stays(lambda: _runs(client, dag)), "no run begins when they are moved")
    journey.check(row)


def test_a_spark_application_is_started_again_by_airflow(journey: GrowingFiles, row: FaultRow) -> None:
    """Its driver dies when the records are in the topic and the ledger does not know it yet."""
    row.describe("SIGKILL of the driver of a Spark application, started by SparkSubmitOperator", **INWARD)
    journey.begin(engine="submit")
    fault = journey.site.fault("executed")
    wait_for(fault.with_name("executed.taken").exists, "the driver is killed")
    row.strikes()
    engines = wait_for(lambda: _engines(journey), "another attempt")
    row.moves_again()
    assert all(engine.startswith("submit, Spark ") for engine in engines), engines
    journey.check(row)


def _engines(journey: GrowingFiles) -> tuple[str, ...]:
    """Of a run that was lost and of the one that took its place in the same run of Airflow, when that is done."""
    with Ledger.open(journey.site.database_url) as opened:
        uid = opened.connector(journey.name).uid
        lost = [run for run in opened.runs(uid) if run.state == "lost"]
        if not lost or lost[0].attempt_of is None:
            return ()
        done = [run for run in opened.runs_of(uid, lost[0].attempt_of) if run.state == "done"]
    return (lost[0].engine, done[0].engine) if done else ()


def test_a_backfill_whose_dag_is_paused_goes_on_when_it_is_switched_on(
    own_airflow: Path, journey: GrowingFiles, row: FaultRow
) -> None:
    row.describe("the DAG of a backfill paused in mid-run, then switched on", **INWARD)
    journey.folder.mkdir()
    journey.append(6_000)
    limits = {"records_per_second": 300, "range_records": 100}
    journey.apply(schedule={"manual": True}, limits=limits)
    dag, topic = names.backfill_dag(journey.name), f"{journey.site.topic}-again"
    ranges = [f"{host}.log:-" for host in range(len(journey.counts))]
    with client_of(own_airflow) as client:
        wait_for(lambda: client.dag(dag), "the DAG of the backfill")
        conf = {"ranges": ranges, "sink": [f"topic={topic}"], "id": "again"}
        client.trigger(dag, run_id="again", conf=conf)
        wait_for(lambda: journey.settled() > 0, "the first receipt")
        row.strikes()
        client.pause(dag, True)
        wait_for(lambda: not _is_at_work(journey, "backfill-again"), "the task to end")
        still = journey.settled()
        assert _stays(journey.settled)
        assert client.run(dag, "again").state == "running"
        client.pause(dag, False)
        journey.moves_again(row, still)
        wait_for(lambda: client.run(dag, "again").state == "success", "the end of the backfill")
    journey.compare(row, _bodies(journey, topic))
    row.duplicates = journey.duplicates()
    assert (row.lost, row.repeated, row.reordered, row.duplicates) == (0, 0, 0, 0)


def _is_at_work(connector: Scheduled, stream: str) -> bool:
    with Ledger.open(connector.site.database_url) as opened:
        return bool(opened.live_leases(opened.connector(connector.name).uid, stream))


def _bodies(connector: Scheduled, topic: str) -> list[bytes]:
    return [body for _, body in _stored(connector, topic)]


def _stored(connector: Scheduled, topic: str) -> list[tuple[datetime, bytes]]:
    """When each record was stored, queue by queue in order."""
    found = []
    with Client(ClientOptions(name_servers=tuple(connector.site.name_servers))) as client:
        for queue, bounds in sorted(client.offsets.bounds(topic).items(), key=lambda pair: pair[0].queue_id):
            for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + 60):
                for message in part.messages:
                    at = datetime.fromtimestamp(message.store_timestamp_ms / 1000, UTC)
                    found.append((at, bytes(message.body)))
    return found


@pytest.fixture
def outward(own_airflow: Path) -> Iterator[Scheduled]:
    """A topic that goes to a file every few seconds; deleted behind the test."""
    made = Scheduled(site_of(own_airflow), f"copy-{uuid.uuid4().hex[:8]}")
    fill(made.site.name_servers, made.site.topic, [[b"0 first"], [b"1 first"]])
    document = {
        "source": {"rocketmq": {"name_servers": made.site.name_servers[0], "topics": [made.site.topic]}},
        "sink": {"file": {"path": f"{made.name}.log"}},
        "schedule": {"every": f"{EVERY_S}s"},
    }
    made.site.apply(made.name, document)
    yield made
    made.site.waybill("connectors", "delete", made.name, "--yes")


def test_airflow_s_own_backfill_moves_what_came_between_its_ticks(
    own_airflow: Path, outward: Scheduled, row: FaultRow
) -> None:
    """As `airflow backfill create` does, beside the live stream: a file for each tick, and nothing in two of them."""
    row.describe(f"none: Airflow's own backfill of {TICKS} ticks, beside the live stream", **OUTWARD)
    wait_for(lambda: outward.settled() > 0, "the first receipt")
    asked = _Asked(datetime.now(UTC) + timedelta(seconds=EVERY_S))
    number = 0
    while datetime.now(UTC) < asked.last + timedelta(seconds=2):
        fill(outward.site.name_servers, outward.site.topic, [[f"{queue} {number}".encode()] for queue in (0, 1)])
        number += 1
    row.strikes()
    _create_backfill(own_airflow, names.live_dag(outward.name), asked)
    wait_for(lambda: len(_done(outward)) == TICKS, "the end of every tick")
    row.moves_again()
    stored = _stored(outward, outward.site.topic)
    path = outward.site.folder / f"{outward.name}.log"
    wait_for(lambda: len(path.read_bytes().splitlines()) >= len(stored), "every record in the live file")
    for tick in asked.ticks:
        between = [body for at, body in stored if tick - timedelta(seconds=EVERY_S) <= at < tick]
        assert between, "nothing was stored in the time of a tick: the test proves nothing"
        stream = f"backfill-{tick:%Y%m%dT%H%M%SZ}"
        _compare(row, between, path.with_name(f"{path.name}.{stream}"), _receipts(outward, stream))
    _compare(row, [body for _, body in stored], path, _receipts(outward, LIVE))


@dataclass(frozen=True)
class _Asked:
    """A backfill of Airflow's: both ends are ticks, `EVERY_S` seconds apart."""

    first: datetime

    @property
    def ticks(self) -> list[datetime]:
        return [self.first + timedelta(seconds=EVERY_S * number) for number in range(TICKS)]

    @property
    def last(self) -> datetime:
        return self.ticks[-1]


def _create_backfill(home: Path, dag_id: str, asked: _Asked) -> None:
    running = running_at(home)
    with httpx.Client(base_url=running.airflow_url, timeout=60) as web:
        login = {"username": running.airflow_user, "password": running.airflow_password}
        web.headers["Authorization"] = f"Bearer {web.post('/auth/token', json=login).json()['access_token']}"
        dates = {"from_date": asked.first.isoformat(), "to_date": asked.last.isoformat()}
        answer = web.post("/api/v2/backfills", json={"dag_id": dag_id, "max_active_runs": 2, **dates})
    assert answer.status_code == 200, answer.text


def _done(connector: Scheduled) -> list[str]:
    with Ledger.open(connector.site.database_url) as opened:
        uid = opened.connector(connector.name).uid
        return [one.stream for one in opened.backfills(uid) if one.state == "done"]


def _receipts(connector: Scheduled, stream: str) -> list[SettledRange]:
    with Ledger.open(connector.site.database_url) as opened:
        return opened.receipts(opened.connector(connector.name).uid, stream=stream, limit=None)


def _compare(row: FaultRow, wanted: list[bytes], path: Path, receipts: list[SettledRange]) -> None:
    """A file with what it should hold, and with what its receipts say; adds to the row."""
    there, expected = Counter(path.read_bytes().splitlines()), Counter(wanted)
    row.lost = (row.lost or 0) + (expected - there).total()
    row.repeated = (row.repeated or 0) + (there - expected).total()
    row.duplicates = (row.duplicates or 0) + sum(one.receipt.duplicates for one in receipts)
    delivered = sum(one.receipt.delivered for one in receipts)
    assert (row.lost, row.repeated, row.duplicates, delivered) == (0, 0, 0, len(wanted)), path.name


def _runs(client: Airflow, dag_id: str) -> int:
    return len(client.runs(dag_id, limit=100))


def _stays(look: Callable[[], object]) -> bool:
    """Whether it is the same for some seconds."""
    before = look()
    time.sleep(QUIET_S)
    return look() == before
