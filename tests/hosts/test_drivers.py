"""Two drivers on two hosts, each with a home of its own, with one ledger in PostgreSQL and one broker.

Their clocks are months apart. No lock of one tells the other anything: one takes over when the lease has been silent
for a whole time to live on its own clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from sqlalchemy.engine import make_url

from connect_core.stack import ports
from tests.faults.kit.processes import ended, wait_for
from tests.faults.rows import FaultRow
from tests.hosts import relay
from tests.hosts.copied import document, feed, reach_rocketmq, require_copied
from tests.hosts.hosts import Host, Network
from tests.servers import RocketMQ
from tests.site import SETTINGS, Site, new_site

pytestmark = [pytest.mark.server, pytest.mark.fault, pytest.mark.timeout(600)]

COSTLY = pytest.mark.fault(costly=True)
WHERE = "RocketMQ → RocketMQ, drivers on two hosts"
DAY_S = 86_400
RECORDS = 3_000
LEASE_S = 20
RUNS = {**SETTINGS, "WAYBILL_LEASE_TTL_S": f"{LEASE_S}s", "WAYBILL_ENGINE": "inline", "WAYBILL_TESTING": "1"}
LONGER_S = 30
TRY_AGAIN = (1, 3, 4)
NAME = "copied"


@dataclass
class SiteThere(Site):
    """Its commands run on another host."""

    host: Host = field(kw_only=True)

    def start(self, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        command = [*before, str(Path(sys.executable).with_name("waybill")), *words]
        streams = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return self.host.start(command, self.environment(), cwd=self.folder, **streams)


@dataclass
class Drivers:
    """What both work on, as this machine sees it, and the homes of the two."""

    site: Site
    one: SiteThere
    other: SiteThere

    def require_copied(self, records: int = RECORDS, row: FaultRow | None = None) -> None:
        require_copied(self.site, NAME, records, row)

    def finish(self, driver: SiteThere) -> list[dict[str, object]]:
        """By runs of one of them; how they could take leases that nobody had released, the first one first: where a
        machine is so slow that a run of this host is followed by another, that one has the proof of its lock."""
        before = {run["id"] for run in self.site.json("runs", NAME)["runs"]}
        while (code := ended(driver.start("run", NAME))) != 0:
            assert code in TRY_AGAIN
        runs = self.site.json("runs", NAME)["runs"]
        return [taken for run in reversed(runs) if run["id"] not in before for taken in run["taken_over"]]


Made = Callable[..., Drivers]


@contextmanager
def reached_from_hosts(network: Network, url: str) -> Iterator[str]:
    """A PostgreSQL database of this machine; the URL under which the hosts reach it."""
    database, port = make_url(url), ports.free()
    command = [sys.executable, relay.__file__, network.address, str(port), f"{database.query['host']}/.s.PGSQL.5432"]
    passing = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert passing.stdout is not None
    try:
        assert passing.stdout.readline() == b"ready\n"
        yield database.set(host=network.address, port=port, query={}).render_as_string(hide_password=False)
    finally:
        passing.kill()
        passing.wait()
        passing.stdout.close()


@pytest.fixture
def drivers(
    network: Network, tmp_path: Path, rocketmq: RocketMQ, postgres_url: str, new_database: Callable[[str], str]
) -> Iterator[Made]:
    """Makes both; `shared` is a home on a file system that both hosts have, `long_way` a seed: see `Network.host`."""
    url = new_database(postgres_url)

    def made(*, shared: bool = False, long_way: str | None = None) -> Drivers:
        sites = []
        for name, ahead_s in (("one", 400 * DAY_S), ("other", 30 * DAY_S)):
            host = network.host(name, ahead_s, long_way=long_way)
            reach_rocketmq(network, host, rocketmq)
            folder = tmp_path / ("shared" if shared else name)
            (folder / ".waybill").mkdir(parents=True, exist_ok=True)
            sites.append(SiteThere(folder, "", rocketmq.name_servers, there, dict(RUNS), host=host))
        (tmp_path / "machine").mkdir()
        site = new_site(tmp_path / "machine", url, rocketmq=None)
        site.name_servers = rocketmq.name_servers
        site.settings = dict(RUNS)
        feed(site, 0, RECORDS)
        site.apply(NAME, document(site))
        return Drivers(site, *sites)

    with reached_from_hosts(network, url) as there:
        yield made


def test_the_second_driver_is_refused_while_the_first_works(drivers: Made) -> None:
    """The first stays for a window, and gives signs of life, until it is told to pause."""
    both = drivers()
    staying = both.one.start("run", NAME, "--window", "10m")
    wait_for(lambda: both.site.json("receipts", NAME)["receipts"], "a receipt of the first")
    assert "is working on this" in both.other.waybill("run", NAME, code=4)
    both.site.waybill("connectors", "pause", NAME)
    assert ended(staying) == 0
    both.site.waybill("connectors", "resume", NAME)
    feed(both.site, RECORDS, 2 * RECORDS)
    assert both.finish(both.other) == []
    both.require_copied(2 * RECORDS)


@pytest.mark.fault(costly=True)
def test_of_two_drivers_that_begin_at_once_one_copies_and_the_other_waits_or_is_refused(drivers: Made) -> None:
    both = drivers()
    started = [driver.start("run", NAME) for driver in (both.one, both.other)]
    codes = sorted(ended(process) for process in started)
    assert codes in ([0, 0], [0, 4])
    both.require_copied()


def test_the_commands_of_the_page_run_on_another_host(drivers: Made) -> None:
    both = drivers()
    page = (Path(__file__).parents[2] / "docs" / "scale-out.md").read_text()
    script = page.partition("#### Drivers on several hosts")[2].partition("```sh\n")[2].partition("```")[0]
    here = {
        "/srv/waybill/.waybill": str(both.one.home),
        "postgresql://waybill@ledger.example/waybill": both.one.database_url,
        "orders-copy": NAME,
    }
    for on_the_page, now in here.items():
        assert on_the_page in script
        script = script.replace(on_the_page, now)
    environment = {**both.one.environment(), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shell = both.one.host.start(["sh", "-ec", script], environment, stdout=subprocess.PIPE)
    out, _ = shell.communicate(timeout=120)
    assert shell.returncode == 0
    [run] = json.loads(out[out.index(b"{") :])["runs"]
    assert (run["delivered"], run["taken_over"]) == (2 * RECORDS, [])
    both.require_copied()


def begun(driver: SiteThere, step: str, name: str = NAME) -> subprocess.Popen[str]:
    """A run, a process of which stands still at a step."""
    driver.fault(step, "stop")
    taken = driver.home / "faults" / f"{step}.taken"
    process = driver.start("run", name)
    wait_for(lambda: taken.exists() or process.poll() is not None, f"a process at {step}")
    assert taken.exists(), ended(process)
    wait_for(lambda: any(psutil.Process(pid).status() == "stopped" for pid in driver.host.processes()), "a halt")
    return process


FAULTS = ["host lost", "link cut for good", "link cut until another has taken over", "host paused until then"]
STEPS = ["planned", "batch-written", "executed"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_driver_on_another_host_takes_over_after_a_time_to_live_and_loses_and_repeats_nothing(
    drivers: Made, fault: str, step: str, row: FaultRow
) -> None:
    row.describe(f"driver's {fault}, at {step}", where=WHERE, database="PostgreSQL")
    both = drivers()
    first = begun(both.one, step)
    row.strikes()
    struck(both.one.host, fault)
    taken = both.finish(both.other)[0]
    row.moves_again()
    assert taken["by"] == "silence"
    assert LEASE_S <= float(str(taken["waited_s"])) < 2 * LEASE_S
    both.require_copied(row=row)
    woken(both.one.host, fault)
    assert ended(first) != 0
    both.require_copied(row=row)
    feed(both.site, RECORDS, 2 * RECORDS)
    both.finish(both.other)
    both.require_copied(2 * RECORDS, row)


def struck(host: Host, fault: str) -> None:
    if fault == "host lost":
        host.lose()
    elif fault == "host paused until then":
        host.pause()
    else:
        host.cut()
        host.go_on()


def woken(host: Host, fault: str) -> None:
    if fault == "link cut until another has taken over":
        host.heal()
    elif fault == "host paused until then":
        host.go_on()


@COSTLY
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_whose_link_is_cut_for_a_moment_and_another_that_waits_lose_and_repeat_nothing(
    drivers: Made, step: str, row: FaultRow
) -> None:
    """Whoever of the two comes first."""
    row.describe(f"driver's link cut for three seconds, at {step}", where=WHERE, database="PostgreSQL")
    both = drivers()
    first = begun(both.one, step)
    row.strikes()
    struck(both.one.host, "link cut")
    waiting = both.other.start("run", NAME)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(3)
    both.one.host.heal()
    assert ended(first) in (0, *TRY_AGAIN)
    assert ended(waiting) in (0, *TRY_AGAIN)
    both.finish(both.other)
    row.moves_again()
    both.require_copied(row=row)


@COSTLY
@pytest.mark.parametrize("homes", ["their own", "shared"])
def test_a_holder_with_a_longer_time_to_live_is_waited_for_that_long(drivers: Made, homes: str, row: FaultRow) -> None:
    """Also where the challenger could take the lock: in a home that both hosts share it tells nothing of the other."""
    row.describe(
        f"driver's host lost, home {homes}, and a longer time to live there", where=WHERE, database="PostgreSQL"
    )
    both = drivers(shared=homes == "shared")
    both.one.settings["WAYBILL_LEASE_TTL_S"] = f"{LONGER_S}s"
    first = begun(both.one, "batch-written")
    row.strikes()
    both.one.host.lose()
    first.communicate()
    taken = both.finish(both.other)[0]
    row.moves_again()
    assert taken["by"] == "silence"
    assert float(str(taken["waited_s"])) >= LONGER_S
    both.require_copied(row=row)


WAYS = {
    "takes 50 ms": {"takes_ms": 50},
    "takes 20 to 60 ms and loses 2 % of its frames": {"takes_ms": 20, "varies_ms": 40, "loses_per_mille": 20},
    "loses 5 % of its frames": {"takes_ms": 0, "loses_per_mille": 50},
}


@COSTLY
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_a_driver_that_is_far_away_is_slow_and_loses_and_repeats_nothing(
    drivers: Made, way: str, step: str, row: FaultRow, request: pytest.FixtureRequest
) -> None:
    """To broker and ledger, each way. A process of the first run is killed; nobody else takes over."""
    row.describe(f"driver's link {way}, and a SIGKILL at {step}", where=WHERE, database="PostgreSQL")
    both = drivers(long_way=f"{request.config.getoption('--seed')} {way} {step}")
    for driver in (both.one, both.other):
        driver.host.far(**WAYS[way])
    both.one.fault(step)
    row.strikes()
    assert ended(both.one.start("run", NAME)) in (-9, *TRY_AGAIN)
    both.finish(both.one)
    row.moves_again()
    both.require_copied(row=row)
    feed(both.site, RECORDS, 2 * RECORDS)
    both.finish(both.one)
    both.require_copied(2 * RECORDS, row)
