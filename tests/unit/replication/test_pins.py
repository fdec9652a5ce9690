"""Delivery rule 8: an open range is finished with what its plan pinned, whatever was changed between two attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from connect_core.config import Resolved
from connect_core.errors import EngineFailed, OffsetGone, PipelineChanged
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Json, Pins, Position
from connect_core.work import Side
from tests.unit.replication.world import MEMORY, World

TWO = [MEMORY, Partition("another")]
OLD, NEW = Side("memory", {"colour": "old"}), Side("memory", {"colour": "new"})


def attempt(
    world: World, sink: Side, pipeline: Json | None = None, partitions: Sequence[Partition] = (MEMORY,)
) -> None:
    """One attempt with the newest document, whose sink has these options; older revisions keep theirs."""
    assignment = world.ledger.assign(world.connector.uid, partitions, 1)
    TaskRun(_context(world, sink, pipeline), assignment, 0, world.source, world.sink).run()


def _context(world: World, sink: Side, pipeline: Json | None) -> RunContext:
    context = world.context()
    before = replace(context.resolved, sink=OLD, pipeline=pipeline or context.resolved.pipeline)
    return replace(context, resolved=replace(context.resolved, sink=sink), resolve=lambda revision: before)


def change_the_document(world: World) -> None:
    world.connector = world.ledger.apply(world.connector.name, {"name": "orders", "more": 1}, who="tests").connector


def die_half_way(world: World) -> None:
    world.engine.dies_after = 100
    with pytest.raises(EngineFailed):
        attempt(world, OLD)


def close_short(world: World) -> None:
    """Attempt 1 delivers 100 of 200 and dies; attempt 2 finds them, and closes its range at 70."""
    die_half_way(world)
    world.sink.room, world.source.gone = 0, 70
    with pytest.raises(OffsetGone):
        attempt(world, OLD)
    assert world.committed() == 70
    world.sink.room, world.source.gone = 1 << 30, None


def test_a_document_changed_between_two_attempts_counts_behind_the_open_ranges_only(world: World) -> None:
    die_half_way(world)
    change_the_document(world)
    world.source.bodies += [b"more"] * 50
    attempt(world, NEW)
    world.check()
    revisions = [(row.receipt.end, row.pins.revision) for row in world.ledger.receipts(world.connector.uid)]
    assert sorted(revisions) == [(200, 1), (250, 2)]
    assert [lane.sink for lane in world.engine.lanes] == [OLD, OLD, NEW]


def test_a_connection_changed_between_two_attempts_counts_behind_the_open_ranges_only(world: World) -> None:
    """The document is the same: what its connection says is another place since."""
    said: list[Json | None] = []

    def attempt_with(sink: Side, connections: Json) -> None:
        now = replace(world.context().resolved, sink=sink, connections=connections)
        before = replace(now, sink=OLD, connections={"sink": {"colour": "old"}})

        def resolve(revision: int, pinned: Json | None = None) -> Resolved:
            said.append(pinned)
            return before

        assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
        context = replace(world.context(), resolved=now, resolve=resolve)
        TaskRun(context, assignment, 0, world.source, world.sink).run()

    world.engine.dies_after = 100
    with pytest.raises(EngineFailed):
        attempt_with(OLD, {"sink": {"colour": "old"}})
    assert said == []
    world.source.bodies += [b"more"] * 50
    attempt_with(NEW, {"sink": {"colour": "new"}})
    world.check()
    assert said == [{"sink": {"colour": "old"}}], "asked once"
    assert [lane.sink for lane in world.engine.lanes] == [OLD, OLD, NEW]
    assert [task.sink for task in world.engine.sought] == [OLD]
    pinned = [(row.receipt.end, row.pins.connections["sink"]) for row in world.ledger.receipts(world.connector.uid)]
    assert sorted(pinned, key=lambda one: one[0]) == [(200, {"colour": "old"}), (250, {"colour": "new"})]


def test_that_a_source_is_shared_counts_for_open_ranges_too(world: World) -> None:
    """Else a person who states it would first have to finish what is open on the host where it was begun."""
    before, now = Side("file", {"path": "/a"}), Side("file", {"path": "/b", "shared": True})
    context = _context(world, OLD, None)
    older = replace(context.resolved, source=before)
    context = replace(context, resolved=replace(older, source=now), resolve=lambda revision: older)
    task = TaskRun(context, world.ledger.assign(world.connector.uid, [MEMORY], 1), 0, world.source, world.sink)
    pins = Pins(revision=task.revision + 1, pipeline="", target={}, code="")
    assert task.resolved_for(pins).source == Side("file", {"path": "/a", "shared": True})


def test_a_search_looks_where_the_pinned_revision_wrote(world: World) -> None:
    die_half_way(world)
    change_the_document(world)
    attempt(world, NEW)
    assert [task.sink for task in world.engine.sought] == [OLD]


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


def test_a_new_revision_starts_behind_the_records_that_stand_ahead(world: World) -> None:
    """70 to 100 stand in the old target when the document names another, so the rest of that range still goes there."""
    close_short(world)
    change_the_document(world)
    world.source.bodies += [b"more"] * 50
    attempt(world, NEW)
    world.check()
    revisions = [(row.receipt.end, row.pins.revision) for row in world.ledger.receipts(world.connector.uid)]
    assert sorted(revisions) == [(70, 1), (200, 1), (250, 2)]
    assert [lane.sink for lane in world.engine.lanes][-2:] == [OLD, NEW]


def test_what_stands_ahead_is_no_gap_when_the_source_has_lost_it(world: World) -> None:
    """The source has only what is behind 90 then: 70 to 90 are in the target, and so accounted for."""
    close_short(world)
    world.source.oldest = 90
    attempt(world, OLD)
    assert [offset for offset, _ in world.sink.rows] == list(range(200))
    assert [(one.begin, one.end, one.reconstructed) for one in world.receipts()] == [
        (0, 70, False),
        (70, 90, True),
        (90, 200, False),
    ]


def test_an_offset_that_a_person_moved_does_not_go_on_in_the_old_target(world: World) -> None:
    close_short(world)
    change_the_document(world)
    lease = world.ledger.take("a person's", None, "tests", uid=world.connector.uid)
    world.ledger.set_offset(
        [lease], world.connector.uid, "live", MEMORY, Position(0, 100), who="tests", why="30 are not wanted"
    )
    attempt(world, NEW)
    assert [lane.sink for lane in world.engine.lanes] == [OLD, OLD, NEW]


def test_targets_of_another_revision_are_written_by_one_lane(world: World) -> None:
    """What they demand is not known to the run: they may be one file, where the document names a topic now."""
    world.engine.dies_after = 10
    with pytest.raises(EngineFailed):
        attempt(world, OLD, partitions=TWO)
    assert [len(lane.ranges) for lane in world.engine.lanes] == [1]
    change_the_document(world)
    attempt(world, NEW, partitions=TWO)
    assert [len(lane.ranges) for lane in world.engine.lanes] == [1, 2]
