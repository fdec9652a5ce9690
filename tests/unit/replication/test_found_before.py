"""What a range finds in its target that another document may have made is counted in its receipt."""

from __future__ import annotations

import pytest

from connect_core.errors import EngineFailed
from connect_core.ledger.live import merged
from connect_core.replication.driver.found_before import found_before
from connect_core.sdk.values import Json
from connect_core.service.run_report import noteworthy, total
from tests.unit.replication.test_floors import give_up
from tests.unit.replication.world import World


@pytest.mark.parametrize(("pipeline", "doubtful"), [({"transforms": []}, 0), ({"parse": {"format": "json"}}, 60)])
def test_a_range_that_was_given_up_and_is_made_otherwise_now(world: World, pipeline: Json, doubtful: int) -> None:
    world.engine.dies_after = 60
    with pytest.raises(EngineFailed):
        world.run()
    give_up(world)
    world.pipeline = pipeline
    world.source.bodies = [b"{}" for _ in world.source.bodies]
    summary = world.run()
    assert sum(receipt.deduplicated for receipt in summary.receipts) == 60
    assert found_before(world.receipts()) == doubtful
    told = [line for line in world.said if "waybill verify compares" in line]
    assert len(told) == bool(doubtful)
    assert sum("60 records were in the target before" in one for one in noteworthy(total(summary.receipts))) == len(
        told
    )


def test_the_next_run_tells_of_it_no_more(world: World) -> None:
    world.engine.dies_after = 60
    with pytest.raises(EngineFailed):
        world.run()
    give_up(world)
    world.pipeline = {"parse": {"format": "json"}}
    world.source.bodies = [b"{}" for _ in world.source.bodies]
    world.run()
    world.source.bodies += [b"{}"] * 10
    assert found_before(world.run().receipts) == 0
    first, second = world.receipts()
    assert merged(first, second) is None, "a stretch of which nobody knows what it holds stays one of its own"
    assert merged(second, second) is not None


def test_an_attempt_that_finds_what_the_one_before_has_sent_knows_what_it_is(world: World) -> None:
    world.engine.dies_after = 60
    with pytest.raises(EngineFailed):
        world.run()
    assert found_before(world.run().receipts) == 0
    assert sum(receipt.deduplicated for receipt in world.receipts()) == 60
