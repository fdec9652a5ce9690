"""A run keeps in its summary what it saw at the source and left there."""

from __future__ import annotations

import pytest

from connect_core.errors import EngineFailed
from tests.unit.replication.world import World


def lags(world: World) -> list[int]:
    """Of the ended runs, the oldest first."""
    ended = [run.summary for run in reversed(world.ledger.runs(world.connector.uid)) if run.summary]
    return [summary["lag"] for summary in ended]


def test_a_run_that_fails_leaves_what_it_did_not_settle_and_the_next_leaves_nothing(world: World) -> None:
    world.engine.dies_after = 60
    with pytest.raises(EngineFailed):
        world.run()
    assert lags(world) == [200]
    world.run()
    assert lags(world) == [200, 0]
