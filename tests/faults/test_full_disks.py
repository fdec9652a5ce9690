"""A target whose disk is full: the real broker on a small file system of its own, which is filled beside it.

No mark `server`: whoever may not mount a file system has this row skipped, with the reason.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.journeys import TRY_AGAIN, Across, OldCluster, begun_and_stopped, made_up_for
from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.refusals import refusal
from tests.faults.kit.topics import JavaReader, fill
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ, end, rocketmq_in

pytestmark = pytest.mark.fault(costly=True)

DISK_BYTES = 128 * 1024 * 1024
FULL = 0.95
"""Brokers refuse what they are sent above 0.9, whatever their settings say."""
LOOKS_S = 90.0
"""They look every 10 s, for the first time a minute after their start."""


@pytest.fixture(scope="module")
def small(worker_folder: Path) -> Iterator[RocketMQ]:
    """A cluster of its own on such a file system."""
    folder = worker_folder / "small-disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "waybill-tests", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a small file system: {mounted.stderr.strip()}")
    try:
        cluster = rocketmq_in(folder, "5.5.0")
        yield cluster
        end(cluster.home)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def journey(site_on: MakeSite, small: RocketMQ, old_cluster: OldCluster, tmp_path: Path) -> Iterator[Across]:
    site = site_on("SQLite")
    site.name_servers = small.name_servers
    reader = JavaReader(small, tmp_path / "small-reader")
    yield Across(site, reader, old_cluster, name_servers=small.name_servers)
    reader.close()


def fill_up(disk: Path) -> Path:
    """A file that leaves a twentieth of the file system."""
    seen = os.statvfs(disk)
    path = disk / "ballast"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, int(seen.f_bavail * seen.f_frsize - DISK_BYTES * (1 - FULL)))
    return path


def test_a_target_with_a_full_disk_is_waited_for(journey: Across, small: RocketMQ, row: FaultRow) -> None:
    row.describe("disk of the target full in mid-range, room made two runs later", where=journey.where)
    row.database = "SQLite"
    probe = f"{journey.site.topic}-probe"
    fill(small.name_servers, probe, [[]])
    driver, there = begun_and_stopped(journey, "batch-written")
    row.strikes()
    ballast = fill_up(small.home.parents[1])
    wait_for(lambda: "code 14" in refusal(small, probe), "a broker that has seen its full disk", LOOKS_S)
    processes.go_on(there)
    assert ended(driver) in TRY_AGAIN
    assert "disk is not full" in journey.site.waybill("run", journey.name, code=1)
    ballast.unlink()
    wait_for(lambda: not refusal(small, probe), "a broker that has seen its room", LOOKS_S)
    assert made_up_for(journey, row) == EXACT
