"""Rule 8: an open range is finished with what its plan pinned, whatever was changed between two attempts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect_core.contracts import Json, Side
from connect_core.errors import EngineFailed, PipelineChanged
from connect_core.replication.task import Setting, TaskRun
from tests.unit.replication.world import MEMORY, World

OLD, NEW = Side("memory", {"colour": "old"}), Side("memory", {"colour": "new"})


def attempt(world: World, sink: Side, pipeline: Json | None = None) -> None:
    """One attempt with the newest document, whose sink has these options; older revisions keep theirs."""
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    TaskRun(_setting(world, sink, pipeline), assignment, 0, world.source, world.sink).run()


def _setting(world: World, sink: Side, pipeline: Json | None) -> Setting:
    setting = world.setting()
    before = replace(setting.resolved, sink=OLD, pipeline=pipeline or setting.resolved.pipeline)
    return replace(setting, resolved=replace(setting.resolved, sink=sink), resolve=lambda revision: before)


def change_the_document(world: World) -> None:
    world.connector = world.ledger.apply(world.connector.name, {"name": "orders", "more": 1}, who="tests").connector


def die_half_way(world: World) -> None:
    world.engine.dies_after = 100
    with pytest.raises(EngineFailed):
        attempt(world, OLD)


def test_a_document_changed_between_two_attempts_counts_behind_the_open_ranges_only(world: World) -> None:
    die_half_way(world)
    change_the_document(world)
    world.source.bodies += [b"more"] * 50
    attempt(world, NEW)
    world.check()
    revisions = [(row.receipt.end, row.pins.revision) for row in world.ledger.receipts(world.connector.uid)]
    assert sorted(revisions) == [(200, 1), (250, 2)]
    assert [lane.sink for lane in world.engine.lanes] == [OLD, OLD, NEW]


def test_a_search_looks_where_the_pinned_revision_wrote(world: World) -> None:
    die_half_way(world)
    change_the_document(world)
    attempt(world, NEW)
    assert [search.sink for search in world.engine.sought] == [OLD]


def test_an_open_range_whose_pipeline_gives_other_results_now_is_not_gone_on_with(world: World) -> None:
    die_half_way(world)
    change_the_document(world)
    delivered = list(world.sink.rows)
    with pytest.raises(PipelineChanged, match="offset 0"):
        attempt(world, NEW, pipeline={"transforms": ["another"]})
    assert world.sink.rows == delivered
    assert len(world.ledger.open_ranges(world.connector.uid, "live")) == 1


def test_the_attempts_of_a_range_keep_its_pins(world: World) -> None:
    die_half_way(world)
    [planned] = world.ledger.open_ranges(world.connector.uid, "live")
    change_the_document(world)
    attempt(world, NEW)
    ranges = [item for lane in world.engine.lanes for item in lane.ranges if item.id == planned.id]
    assert [item.range.pins for item in ranges] == [planned.range.pins] * 2
