"""The ledger is brought back from a backup, and its targets hold more than it knows: nothing lost, nothing sent twice.

A connector moves records, the ledger is kept, the connector moves more, and the ledger is put back as it was kept: as a
copy of the SQLite file, a dump of the PostgreSQL database, or a whole server recovered to a point in time.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

import pytest

from connect_core import ledger, stack
from connect_core.ledger import Ledger
from connect_core.replication.driver.ledger_restore import seen_files
from connect_core.stack import postgresql
from tests.faults.kit.checker import EXACT
from tests.faults.kit.fixtures import MakeJourney, MakeSite
from tests.faults.kit.journeys import WAYS, Journey, begun_and_stopped, database_of, made_up_for, run_until_done
from tests.faults.kit.processes import ended, kill, stopped_at
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.site import Site, new_site

pytestmark = [pytest.mark.server, pytest.mark.fault]

FED, MORE = 4_000, 6_000


class Backup(Protocol):
    """Of one ledger: `keep` it, and `bring_back` what was kept last."""

    def keep(self) -> None: ...

    def bring_back(self) -> None: ...


class FileCopy:
    """SQLite's own backup, in both directions."""

    def __init__(self, url: str, folder: Path) -> None:
        self._ledger, self._kept = url.removeprefix("sqlite:///"), str(folder / "kept.db")

    def keep(self) -> None:
        _copied(self._ledger, self._kept)

    def bring_back(self) -> None:
        _copied(self._kept, self._ledger)


def _copied(source: str, target: str) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


class Dump:
    """`pg_dump`, and `pg_restore` into the same database."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._kept = url, str(folder / "kept.dump")
        parts = urlsplit(url)
        self._database = parts.path.removeprefix("/")
        (host,) = parse_qs(parts.query)["host"]
        self._server = ("--host", host, "--username", "postgres", "--no-password")

    def keep(self) -> None:
        self._called("pg_dump", "--format=custom", f"--file={self._kept}", self._database)

    def bring_back(self) -> None:
        self._called("pg_restore", "--clean", "--single-transaction", f"--dbname={self._database}", self._kept)

    def _called(self, program: str, *words: str) -> None:
        command = [str(postgresql.binaries() / program), *self._server, *words]
        subprocess.run(command, check=True, timeout=60, env=postgresql.environment())


@pytest.fixture
def journey(request: pytest.FixtureRequest, site_on: MakeSite, journey_of: MakeJourney) -> Journey:
    way, database = request.param
    return journey_of(way, site_on(database), records=FED)


@pytest.fixture
def backup(journey: Journey, tmp_path: Path) -> Backup:
    url = journey.site.database_url
    return FileCopy(url, tmp_path) if url.startswith("sqlite") else Dump(url, tmp_path)


def _choices() -> list[object]:
    """By the file of the home or by a person's word, in both directions and on both databases."""
    return [
        pytest.param((way, database), told, id=f"{way}-{database}-{'told' if told else 'noticed'}")
        for way, database, told in product(WAYS, ("SQLite", "PostgreSQL"), (False, True))
    ]


@pytest.mark.parametrize(("journey", "told"), _choices(), indirect=["journey"])
def test_what_was_delivered_since_the_backup_is_not_sent_again(
    journey: Journey, backup: Backup, told: bool, row: FaultRow
) -> None:
    by = "reported with `waybill db restored`" if told else "noticed by what the home remembers"
    row.describe(f"ledger restored from a backup, {by}", where=journey.where, database=database_of(journey.site))
    run_until_done(journey)
    backup.keep()
    journey.feed(FED, FED + MORE)
    run_until_done(journey)
    row.strikes()
    backup.bring_back()
    if told:
        _forget_what_was_seen(journey.site.home)
        assert "checks its targets" in journey.site.waybill("db", "restored", "--why", "a drill")
    journey.feed(FED + MORE, FED + MORE + 100)
    assert made_up_for(journey, row) == EXACT
    assert _times_restored(journey.site) == 1
    assert _set_aside(journey.site) == (journey.where == "RocketMQ → file"), "what stood in the file is still there"


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("journey", [("in", "SQLite"), ("out", "PostgreSQL")], indirect=True, ids=["in", "out"])
def test_a_range_that_was_open_in_the_backup_is_finished(journey: Journey, backup: Backup, row: FaultRow) -> None:
    row.describe(
        "ledger restored from a backup that was made in mid-range",
        where=journey.where,
        database=database_of(journey.site),
    )
    driver, there = begun_and_stopped(journey, "executed")
    backup.keep()
    kill(driver.pid, there)
    ended(driver)
    run_until_done(journey)
    row.strikes()
    backup.bring_back()
    assert made_up_for(journey, row) == EXACT
    assert _times_restored(journey.site) == 1


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("journey", [("in", "SQLite"), ("out", "PostgreSQL")], indirect=True, ids=["in", "out"])
def test_a_run_under_which_the_ledger_is_brought_back_may_be_tried_again(
    journey: Journey, backup: Backup, row: FaultRow
) -> None:
    """The backup knows its lease and none of its ranges: what it wrote cannot be settled, and that is no defect. It
    knows the target, of a run before."""
    row.describe(
        "ledger restored under a run that has written and not settled",
        where=journey.where,
        database=database_of(journey.site),
    )
    run_until_done(journey)
    journey.feed(FED, FED + MORE)
    driver, there = begun_and_stopped(journey, "leased")
    backup.keep()
    journey.site.fault("executed", "stop")
    os.kill(there, signal.SIGCONT)
    there = stopped_at(journey.site, "executed", driver) or pytest.fail("the run ended before it had executed")
    row.strikes()
    backup.bring_back()
    os.kill(there, signal.SIGCONT)
    _, told = driver.communicate(timeout=120)
    assert driver.returncode == 1, told
    assert "The ledger was restored from a backup while this run was at work" in told
    assert made_up_for(journey, row) == EXACT
    assert _times_restored(journey.site) == 1


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("way", list(WAYS))
def test_a_connector_that_had_moved_nothing_yet(
    way: str, site_on: MakeSite, journey_of: MakeJourney, tmp_path: Path, row: FaultRow
) -> None:
    """The backup knows the connector and none of its targets: a topic is looked through from its first message, and a
    file of which nobody knows whose lines it holds is a person's to decide on."""
    journey = journey_of(way, site_on("SQLite"), records=FED)
    row.describe("ledger restored from before the first run", where=journey.where, database="SQLite")
    backup = FileCopy(journey.site.database_url, tmp_path)
    backup.keep()
    run_until_done(journey)
    row.strikes()
    backup.bring_back()
    if way == "out":
        target = journey.site.folder / "out" / "lines.log"
        before = target.read_bytes()
        assert "does not know the content of this file" in journey.site.waybill("run", journey.name, code=5)
        assert target.read_bytes() == before
        target.rename(target.with_name("lines.before"))
    assert made_up_for(journey, row) == EXACT


# ------------------------------------------------------------------------------------------- logs that went on since


@dataclass
class Logs:
    """Logs into one queue. Every line has the same length, so that lines of all files begin at the same offsets."""

    site: Site
    given: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.site.folder / "logs").mkdir()
        self.write("app", 100)
        sink = {"name_servers": "${stack:name_servers}", "topic": self.site.topic, "queues": 1}
        source = {"file": {"path": "logs/*.log", "rotation_quiet_s": 0}}
        self.site.apply("logs", {"source": source, "sink": {"rocketmq": sink}})

    def path(self, name: str, number: int = 0) -> Path:
        return self.site.folder / "logs" / (f"{name}.log.{number}" if number else f"{name}.log")

    def write(self, name: str, lines: int) -> None:
        made = [b"line %08d" % (len(self.given) + n) for n in range(lines)]
        self.given += made
        with self.path(name).open("ab") as file:
            file.writelines(line + b"\n" for line in made)

    def rotate(self, name: str) -> None:
        for number in (1, 0):
            if self.path(name, number).exists():
                self.path(name, number).rename(self.path(name, number + 1))

    def run(self, *options: str, code: int = 0) -> None:
        self.site.waybill("run", "logs", *options, code=code)


def a_log_that_the_backup_knows(logs: Logs, backup: Backup) -> None:
    """Of the files since, the first two are gone, and the third is the second one now."""
    backup.keep()
    for lines in (100, 200, 50):
        logs.write("app", lines)
        logs.run()
        if lines > 50:
            logs.rotate("app")
    logs.path("app", 2).unlink()
    backup.bring_back()
    logs.write("app", 150)
    logs.run(code=5)
    logs.run("--accept-gaps")


def a_log_that_is_younger_than_the_backup(logs: Logs, backup: Backup) -> None:
    backup.keep()
    logs.write("other", 200)
    logs.run()
    logs.rotate("other")
    logs.write("other", 150)
    backup.bring_back()
    logs.run()


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("happening", [a_log_that_the_backup_knows, a_log_that_is_younger_than_the_backup])
def test_another_file_under_the_same_number_is_not_taken_for_the_one_in_the_topic(
    happening: Callable[[Logs, Backup], None],
    site_on: MakeSite,
    java_reader: JavaReader,
    tmp_path: Path,
    row: FaultRow,
) -> None:
    words = happening.__name__.replace("_", " ")
    row.describe(f"ledger restored, and rotated since: {words}", where="file → RocketMQ", database="SQLite")
    logs = Logs(site_on("SQLite"))
    logs.run()
    row.strikes()
    happening(logs, FileCopy(logs.site.database_url, tmp_path))
    logs.run()
    row.moves_again()
    arrived = Counter(line for queue in java_reader.records(logs.site.topic).values() for line in queue)
    row.lost = sum((Counter(logs.given) - arrived).values())
    row.repeated = sum((arrived - Counter(logs.given)).values())
    told = logs.site.json("receipts", "logs", "--last", "1000")["receipts"]
    assert (row.lost, row.repeated) == (0, sum(one["possible_duplicates"] for one in told))


# ----------------------------------------------------------------------------------------------------- a whole server


class PointInTime:
    """A base backup of the stack's own PostgreSQL, recovered to the moment at which it ended."""

    def __init__(self, home: Path) -> None:
        self._home, self._kept = home, home.parent / "base"
        self._parts = (stack.POSTGRESQL,)

    def keep(self) -> None:
        shutil.rmtree(self._kept, ignore_errors=True)
        part = self._running().part(stack.POSTGRESQL)
        command = ["pg_basebackup", "--host", part.facts["socket_folder"], "--username", "postgres"]
        command += ["--pgdata", str(self._kept), "--wal-method=stream", "--checkpoint=fast"]
        command[0] = str(postgresql.binaries() / command[0])
        subprocess.run(command, check=True, timeout=60, env=postgresql.environment())

    def bring_back(self) -> None:
        data = Path(self._running().part(stack.POSTGRESQL).facts["data_folder"])
        owner = data.stat()
        stack.down(self._home)
        shutil.rmtree(data)
        shutil.copytree(self._kept, data)
        (data / "recovery.signal").touch()
        with (data / "postgresql.auto.conf").open("a") as file:
            file.write("restore_command = 'false'\nrecovery_target = 'immediate'\n")
            file.write("recovery_target_action = 'promote'\n")
        for path in (data, *data.rglob("*")):
            shutil.chown(path, owner.st_uid, owner.st_gid)
        data.chmod(0o700)
        self.start()

    def start(self) -> stack.Stack:
        options = stack.Options(well_known_ports=False)
        return stack.up(self._home, parts=self._parts, supervise=False, options=options)

    def _running(self) -> stack.Stack:
        running = stack.load(self._home)
        assert running is not None
        return running


@pytest.fixture
def server(worker_folder: Path) -> Iterator[PointInTime]:
    """A PostgreSQL of this test alone."""
    home = worker_folder / "restored" / ".waybill"
    made = PointInTime(home)
    ledger.upgrade(made.start().database_url)
    yield made
    stack.down(home)
    postgresql.forget(home)
    shutil.rmtree(home.parent)


@pytest.mark.fault(costly=True)
def test_a_server_that_was_recovered_to_a_point_in_time(
    server: PointInTime,
    rocketmq: RocketMQ,
    journey_of: MakeJourney,
    spark_remote: str,
    tmp_path: Path,
    row: FaultRow,
) -> None:
    """Noticed by the server's timeline, though nobody remembers the counter of its ledger."""
    site = new_site(tmp_path, server.start().database_url, rocketmq)
    journey = journey_of("in", site, records=FED)
    row.describe("PostgreSQL recovered to a point in time, home new", where=journey.where, database="PostgreSQL")
    run_until_done(journey)
    server.keep()
    journey.feed(FED, FED + MORE)
    run_until_done(journey)
    row.strikes()
    server.bring_back()
    _forget_what_was_seen(site.home)
    assert made_up_for(journey, row) == EXACT
    assert _times_restored(site) == 1


def _forget_what_was_seen(home: Path) -> None:
    for path in seen_files(home):
        path.unlink()


def _times_restored(site: Site) -> int:
    with Ledger.open(site.database_url) as opened:
        return [deed.action for deed in opened.audit(limit=1000)].count("restored")


def _set_aside(site: Site) -> bool:
    return any((site.folder / "out").glob("*.unsettled-*"))
