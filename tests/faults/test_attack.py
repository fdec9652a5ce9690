"""One minute of `make attack`, with one seed (make faults only)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.attack.__main__ import attack
from tests.attack.world import World
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(1500)]

SEED, SECONDS = 1, 60


def test_a_minute_of_everything(worker_folder: Path, row: FaultRow) -> None:
    row.describe(
        f"{SECONDS} s of kills, stops, pauses, changes, backfills, replays, offsets moved, rotations: seed {SEED}",
        where="four connectors through Airflow, the whole stack",
        database="PostgreSQL",
    )
    folder = worker_folder / "attack"
    folder.mkdir()
    world = World(folder, time.monotonic())
    try:
        faults = attack(world, SEED, SECONDS)
    finally:
        world.end()
    assert faults == []
