"""Logs that several hosts share are read on any of them: by executors elsewhere, and by drivers one after the other.

Every host has another device number for the file system, and births are unknown: see `shared_files`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.kit.processes import ended, wait_for
from tests.faults.rows import FaultRow
from tests.hosts import test_drivers, test_spark
from tests.hosts.copied import reach_rocketmq
from tests.hosts.hosts import Host, Network
from tests.hosts.shared_files import document, require_delivered, shared_folder, show, write
from tests.hosts.test_drivers import DAY_S, RUNS, TRY_AGAIN, SiteThere, reached_from_hosts, struck, woken
from tests.hosts.test_spark import COSTLY, site_beside, spark_on
from tests.servers import RocketMQ
from tests.site import Site, new_site

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

NAME = "shared-logs"
LINES = 3_000


@pytest.fixture
def logs(tmp_path: Path, network: Network) -> Iterator[Path]:
    """Of this machine; a host that is made by then is shown them."""
    with shared_folder(tmp_path / "shared") as made:
        write(made, 0, LINES)
        yield made


@pytest.fixture
def executed_there(network: Network, logs: Path, tmp_path: Path, rocketmq: RocketMQ) -> Iterator[tuple[Site, Host]]:
    """A connector whose driver is on this machine, and its executors on another."""
    there = network.host("there", test_spark.AHEAD_S)
    reach_rocketmq(network, there, rocketmq)
    assert show(there, logs) != os.stat(logs).st_dev
    with spark_on(network, there, tmp_path / "spark") as cluster:
        site = site_beside(cluster, tmp_path, rocketmq)
        site.apply(NAME, document(site, logs, shared=True))
        yield site, there


@COSTLY
def test_executors_on_another_host_read_what_the_driver_has_planned(
    executed_there: tuple[Site, Host], logs: Path, row: FaultRow
) -> None:
    """Once more when the logs have grown: behind what was settled there."""
    site, _ = executed_there
    assert ended(site.start("run", NAME)) == 0
    require_delivered(site, NAME, LINES, row)
    write(logs, LINES, 2 * LINES)
    assert ended(site.start("run", NAME)) == 0
    require_delivered(site, NAME, 2 * LINES, row)
    assert all(run["engine"].startswith("submit, Spark ") for run in site.json("runs", NAME)["runs"])


@COSTLY
def test_executors_on_another_host_follow_what_grows_while_a_run_stays(
    executed_there: tuple[Site, Host], logs: Path, row: FaultRow
) -> None:
    site, _ = executed_there
    staying = site.start("run", NAME, "--window", "45s")
    wait_for(lambda: site.json("receipts", NAME)["receipts"], "a receipt", 180)
    write(logs, LINES, 2 * LINES)
    assert ended(staying) == 0
    require_delivered(site, NAME, 2 * LINES, row)


@COSTLY
@pytest.mark.parametrize("fault", ["worker's host lost", "driver killed"])
def test_a_kill_in_mid_lane_loses_and_repeats_nothing(
    executed_there: tuple[Site, Host], logs: Path, fault: str, row: FaultRow
) -> None:
    """What executors elsewhere have begun is finished on this machine, then what was written since."""
    row.describe(f"{fault}, in the middle of a lane", where="shared file → RocketMQ, executors on another host")
    site, there = executed_there
    driver = test_spark.begun(site, NAME)
    row.strikes()
    if fault == "driver killed":
        driver.kill()
    else:
        there.lose()
    ended(driver)
    write(logs, LINES, 2 * LINES)
    site.settings |= {"WAYBILL_ENGINE": "inline"}
    while (code := ended(site.start("run", NAME))) != 0:
        assert code in TRY_AGAIN
    row.moves_again()
    require_delivered(site, NAME, 2 * LINES, row)


@COSTLY
def test_without_the_option_nothing_is_planned_and_the_error_names_it(
    executed_there: tuple[Site, Host], logs: Path
) -> None:
    site, _ = executed_there
    site.apply(NAME, document(site, logs))
    assert "source.file.shared: true" in site.waybill("run", NAME, code=2)
    assert site.json("receipts", NAME)["receipts"] == []
    written = {"sink": {"file": {"path": str(site.folder / "lines.txt")}}}
    site.apply("lines-out", document(site, logs, shared=True) | written)
    assert "sink.file.path" in site.waybill("run", "lines-out", code=2)
    assert not (site.folder / "lines.txt").exists()


@dataclass
class Readers:
    """Two drivers on two hosts, and the site on this machine."""

    site: Site
    one: SiteThere
    other: SiteThere

    def run(self, driver: Site) -> None:
        while (code := ended(driver.start("run", NAME))) != 0:
            assert code in TRY_AGAIN


@pytest.fixture
def readers(
    network: Network,
    logs: Path,
    tmp_path: Path,
    rocketmq: RocketMQ,
    postgres_url: str,
    new_database: Callable[[str], str],
) -> Iterator[Readers]:
    url = new_database(postgres_url)
    settings = {**RUNS, "WAYBILL_FILES_ROOTS": str(tmp_path)}
    with reached_from_hosts(network, url) as there:
        sites = []
        for name, ahead_s in (("one", 400 * DAY_S), ("other", 30 * DAY_S)):
            host = network.host(name, ahead_s)
            reach_rocketmq(network, host, rocketmq)
            (tmp_path / name / ".waybill").mkdir(parents=True)
            sites.append(SiteThere(tmp_path / name, "", rocketmq.name_servers, there, dict(settings), host=host))
        numbers = {os.stat(logs).st_dev, *(show(site.host, logs) for site in sites)}
        assert len(numbers) == 3
        (tmp_path / "machine").mkdir()
        site = new_site(tmp_path / "machine", url, rocketmq=None)
        site.name_servers = rocketmq.name_servers
        site.settings = settings
        site.apply(NAME, document(site, logs, shared=True, rotation_quiet_s=0))
        yield Readers(site, *sites)


@pytest.mark.fault
@pytest.mark.parametrize("step", ["planned", "batch-written", "executed"])
@pytest.mark.parametrize("fault", ["host lost", "host paused until then"])
def test_a_driver_on_another_host_finishes_what_one_has_begun_and_follows_its_rotation(
    readers: Readers, logs: Path, fault: str, step: str, row: FaultRow
) -> None:
    row.describe(f"driver's {fault}, at {step}", where="shared file → RocketMQ, drivers on two hosts")
    first = test_drivers.begun(readers.one, step, NAME)
    row.strikes()
    struck(readers.one.host, fault)
    readers.run(readers.other)
    row.moves_again()
    require_delivered(readers.site, NAME, LINES, row)
    woken(readers.one.host, fault)
    assert ended(first) != 0
    write(logs, LINES, LINES + 10)
    for log in list(logs.iterdir()):
        log.rename(log.with_suffix(".log.1"))
    write(logs, LINES + 10, 2 * LINES)
    show(readers.other.host, logs)
    readers.run(readers.other)
    require_delivered(readers.site, NAME, 2 * LINES, row)
    write(logs, 2 * LINES, 3 * LINES)
    readers.run(readers.site)
    require_delivered(readers.site, NAME, 3 * LINES, row)
