"""`up`, `down`, `status` and the supervisor, with PostgreSQL as the part: it is the quickest to start."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from connect_core import stack
from connect_core.errors import Unreachable
from connect_core.stack import MQTT_BROKER, POSTGRESQL, Options, Stack, postgresql, processes

pytestmark = pytest.mark.server

PARTS = (POSTGRESQL,)
OPTIONS = Options(well_known_ports=False, postgresql={"fsync": "off"})


@pytest.fixture(scope="module", autouse=True)
def clusters_are_copied(worker_folder: Path) -> Iterator[None]:
    """The first is made by initdb, as each is for users; the others are copies of it."""
    first = worker_folder / "first-cluster"
    initialise = postgresql.initialise

    def copied(data: Path) -> None:
        if not first.exists():
            initialise(data)
            subprocess.run(["cp", "-a", data, first], check=True)
        subprocess.run(["cp", "-aT", first, data], check=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgresql, "initialise", copied)
        yield
    shutil.rmtree(first, ignore_errors=True)


@pytest.fixture
def home(worker_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    place = worker_folder / request.node.name / ".waybill"
    yield place
    stack.down(place)
    postgresql.forget(place)


def up(home: Path, supervise: bool = False, said: list[str] | None = None) -> Stack:
    return stack.up(home, parts=PARTS, supervise=supervise, options=OPTIONS, report=(said or []).append)


def state(home: Path) -> stack.PartStatus:
    return next(part for part in stack.status(home) if part.name == POSTGRESQL)


def answers(running: Stack) -> bool:
    url = running.database_url.replace("+psycopg2", "")
    connection = psycopg2.connect(url)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_database()")
            row = cursor.fetchone()
            return row is not None and row[0] == "waybill"
    finally:
        connection.close()


def test_a_part_is_started_found_and_stopped(home: Path) -> None:
    running = up(home)
    assert answers(running)
    assert stack.load(home) == running
    assert state(home).state == "running"
    stack.down(home)
    assert stack.load(home) is None
    assert state(home).state == "stopped"
    assert not running.part(POSTGRESQL).process.is_alive


def test_a_second_call_starts_nothing_and_says_so_at_once(home: Path) -> None:
    first = up(home)
    said: list[str] = [""]
    begun = time.monotonic()
    assert up(home, said=said) == first
    assert time.monotonic() - begun < 1
    assert said[1:] == ["already running: postgresql"]


def test_calls_at_the_same_time_start_one_server(home: Path) -> None:
    found: list[Stack] = []
    calls = [threading.Thread(target=lambda: found.append(up(home))) for _ in range(3)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert len({running.part(POSTGRESQL).process for running in found}) == 1


def test_two_homes_live_side_by_side(home: Path) -> None:
    first = up(home / "one")
    second = up(home / "two")
    try:
        assert first.database_url != second.database_url
        stack.down(home / "one")
        assert answers(second)
    finally:
        stack.down(home / "one")
        stack.down(home / "two")


def test_what_was_killed_is_seen_and_started_by_the_next_call(home: Path) -> None:
    first = up(home)
    stack.kill(home, POSTGRESQL)
    assert state(home).state == "dead"
    second = up(home)
    assert answers(second)
    assert second.part(POSTGRESQL).process != first.part(POSTGRESQL).process


def test_a_killed_server_that_nobody_reaps_is_started_again(home: Path) -> None:
    """Its zombie keeps the pid that stands in its lock files, as long as the process that started it lives."""
    first = up(home, supervise=True).part(POSTGRESQL).process
    os.kill(first.pid, signal.SIGKILL)
    log = home / "logs" / "supervisor.log"  # asking the stack would reap it
    assert processes.wait_until(lambda: "postgresql 18 ready" in log.read_text(), 20)
    assert Path(f"/proc/{first.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z", (
        "it shows nothing otherwise"
    )


def test_the_supervisor_starts_again_what_died_and_says_why(home: Path) -> None:
    running = up(home, supervise=True)
    stack.kill(home, POSTGRESQL)
    assert processes.wait_until(lambda: state(home).state == "running" and state(home).restarts == 1, 20)
    again = stack.load(home)
    assert again is not None
    assert again.supervisor == running.supervisor
    log = (home / "logs" / "supervisor.log").read_text()
    assert f"postgresql (pid {running.part(POSTGRESQL).process.pid}) has ended" in log
    assert processes.wait_until(lambda: "postgresql 18 ready" in (home / "logs" / "supervisor.log").read_text(), 10)


def test_what_is_stopped_on_purpose_stays_stopped(home: Path) -> None:
    running = up(home, supervise=True)
    supervisor = running.supervisor
    assert supervisor is not None
    assert supervisor.is_alive
    stack.down(home)
    assert not supervisor.is_alive
    assert state(home).state == "stopped"


def test_a_dead_supervisor_is_replaced_by_the_next_call(home: Path) -> None:
    first = up(home, supervise=True).supervisor
    assert first is not None
    processes.stop(first, sign=signal.SIGKILL)
    second = up(home, supervise=True).supervisor
    assert second is not None
    assert second != first


def test_data_outlive_the_server(home: Path) -> None:
    run(up(home), "CREATE TABLE kept (id int)")
    stack.kill(home, POSTGRESQL)
    run(up(home), "INSERT INTO kept VALUES (1)")
    stack.down(home)
    run(up(home), "INSERT INTO kept VALUES (2)")


def test_a_part_that_cannot_start_is_named_with_the_end_of_its_log(home: Path) -> None:
    broken = Options(well_known_ports=False, postgresql={"no_such_setting": "1"})
    with pytest.raises(Unreachable, match=r"postgresql ended while it started(.|\n)*no_such_setting"):
        stack.up(home, parts=PARTS, supervise=False, options=broken)
    assert state(home).state == "stopped"
    assert answers(up(home))


def test_a_home_that_the_server_s_account_cannot_reach(home: Path) -> None:
    home.mkdir(parents=True, mode=0o700)
    running = up(home)
    assert answers(running)
    data = Path(running.part(POSTGRESQL).facts["data_folder"])
    assert data.is_dir()
    stack.down(home)
    postgresql.forget(home)
    assert data.is_relative_to(home) or not data.parent.exists()


def test_a_deep_home_has_a_socket_that_fits(home: Path) -> None:
    deep = home / ("d" * 60) / ("e" * 60) / ".waybill"
    try:
        running = up(deep)
        assert answers(running)
        assert len(running.part(POSTGRESQL).facts["socket_folder"]) < 93
    finally:
        stack.down(deep)
        postgresql.forget(deep)


def run(running: Stack, statement: str) -> None:
    connection = psycopg2.connect(running.database_url.replace("+psycopg2", ""))
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()


def test_a_lock_of_whoever_calls_dev_up_is_free_when_that_has_ended(home: Path, tmp_path: Path) -> None:
    """The caller is another program, whose descriptor is made to be inherited; servers and supervisor live on."""
    home.mkdir(parents=True)
    command = ["flock", str(tmp_path / "lock"), str(Path(sys.executable).with_name("waybill")), "dev", "up"]
    environment = {**os.environ, "WAYBILL_HOME": str(home)}
    subprocess.run([*command, "--only", POSTGRESQL, "--only", MQTT_BROKER], env=environment, check=True, timeout=200)
    assert state(home).state == "running"
    subprocess.run(["flock", "--nonblock", str(tmp_path / "lock"), "true"], check=True, timeout=10)


def test_every_part_that_ran_before_is_brought_back(home: Path) -> None:
    stack.up(home, parts=(POSTGRESQL, MQTT_BROKER), options=OPTIONS)
    stack.down(home)
    assert {POSTGRESQL, MQTT_BROKER} <= {*stack.startable(home)}
    again = stack.up(home, parts=(POSTGRESQL, MQTT_BROKER), options=OPTIONS)
    assert all(part.process.is_alive for part in again.parts.values())
    stack.down(home, parts=(MQTT_BROKER,))
    assert MQTT_BROKER not in stack.startable(home)


@pytest.mark.parametrize("part", [POSTGRESQL, MQTT_BROKER])
def test_a_part_that_stands_still_is_not_running(home: Path, part: str) -> None:
    running = stack.up(home, parts=(POSTGRESQL, MQTT_BROKER), supervise=False, options=OPTIONS)
    os.kill(running.part(part).process.pid, signal.SIGSTOP)
    try:
        found = {one.name: one.state for one in stack.status(home)}
    finally:
        os.kill(running.part(part).process.pid, signal.SIGCONT)
    assert found[part] == "not answering"
    assert {found[one] for one in (POSTGRESQL, MQTT_BROKER) if one != part} == {"running"}
