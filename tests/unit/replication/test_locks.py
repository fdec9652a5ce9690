"""Locks prove who is alive: shared by driver and lanes, taken alone by a challenger, never by a lane after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connect_core.errors import Fenced
from connect_core.replication.locks import EpochLock, lock_path, prove_ended, shared

HOLD = """
import sys, time
from connect_core.replication.locks import shared
with shared((sys.argv[1],)):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return lock_path(tmp_path, "task:uid:live:1:0", 7, "me")


def test_epochs_leases_and_holders_have_files_of_their_own(tmp_path: Path) -> None:
    names = [(lease, epoch, holder) for lease in ("a", "b") for epoch in (1, 2) for holder in ("me", "you")]
    assert len({lock_path(tmp_path, *name) for name in names}) == 8


def test_a_living_driver_is_no_proof(path: Path) -> None:
    lock = EpochLock(path)
    assert not prove_ended(path)
    lock.close()
    assert prove_ended(path)


def test_a_lane_that_lives_on_is_no_proof(path: Path) -> None:
    driver = EpochLock(path)
    lane = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    try:
        assert lane.stdout is not None
        lane.stdout.readline()
        assert not driver.prove_ended()
        driver.close()  # the driver dies
        assert not prove_ended(path)
    finally:
        lane.kill()
        lane.wait()
        assert lane.stdout is not None
        lane.stdout.close()
    assert prove_ended(path)


def test_a_lane_that_was_still_queued_cannot_start_after_the_proof(path: Path) -> None:
    EpochLock(path).close()
    assert prove_ended(path)
    with pytest.raises(Fenced), shared((str(path),)):
        pass
    assert not path.exists()


def test_a_lane_refuses_when_one_lock_of_its_run_is_gone(tmp_path: Path) -> None:
    task, target = EpochLock(lock_path(tmp_path, "task", 1, "me")), EpochLock(lock_path(tmp_path, "target", 1, "me"))
    with shared((str(task.path), str(target.path))):
        pass
    assert target.prove_ended()
    with pytest.raises(Fenced), shared((str(task.path), str(target.path))):
        pass
    assert task.prove_ended()  # nothing of the refused lane is left


def test_a_driver_ends_its_own_epoch_only_when_its_lanes_are_gone(path: Path) -> None:
    driver = EpochLock(path)
    with shared((str(path),)):
        assert not driver.prove_ended()
    assert driver.prove_ended()
    assert not path.exists()


def test_a_lock_file_that_is_gone_is_no_proof(path: Path) -> None:
    """Whoever removed it, its driver and the lanes that had opened it may be alive."""
    EpochLock(path)
    path.unlink()
    assert not prove_ended(path)


def test_a_driver_knows_that_its_lock_file_is_gone(path: Path) -> None:
    driver = EpochLock(path)
    assert not driver.is_gone
    path.unlink()
    assert driver.is_gone
