"""A connector between a source and a target in memory, with a ledger of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core.ledger import Ledger
from connect_core.replication.driver.leases import LeaseTimes
from tests.unit.replication.memory import MemorySink, MemorySource
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.world import BODIES, DirectEngine, World


@pytest.fixture
def world(tmp_path: Path, empty_ledger: Path) -> Iterator[World]:
    shutil.copy(empty_ledger, tmp_path / "ledger.db")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        connector = ledger.apply("orders", {"name": "orders"}, who="tests").connector
        source, sink = MemorySource(list(BODIES)), MemorySink()
        yield World(ledger, connector, tmp_path / "home", source, sink, DirectEngine(source, sink))


@pytest.fixture
def pushing(world: World) -> MemoryPushSource:
    """The world with a source that pushes, whose run ends by itself when nothing comes."""
    source = MemoryPushSource([b"%d" % n for n in range(25)], sink=world.sink)
    world.source, world.engine = source, DirectEngine(source, world.sink)
    world.times = LeaseTimes(ttl_s=8, margin_s=1, quantum_s=5, idle_timeout_s=0.02)
    return source
