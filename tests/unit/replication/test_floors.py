"""A floor is looked at and moved by those whose records can stand there, and by nobody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from connect_core.errors import EngineFailed, OffsetGone
from connect_core.ledger import task_lease_id
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Targets
from connect_core.sdk.values import LIVE, Delivered, Floor, Json, Limit, Range
from connect_core.work import ScanTask
from tests.unit.replication.memory import MemorySink
from tests.unit.replication.world import DirectEngine, World


@dataclass
class Topics(MemorySink):
    """Several targets: `topic` is the one that the document names now, `rows` is what it holds."""

    topic: str = "a"
    others: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)

    def turn_to(self, topic: str) -> None:
        self.others[self.topic] = self.rows
        self.topic, self.rows = topic, self.others.pop(topic, [])

    def reaches(self, target: Json, name: str) -> bool:
        return bool(target["memory"] == name)

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        return Targets({"memory": self.topic})

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        standing = tuple(floor for floor in known if floor.target == self.topic)
        return standing or (Floor(wanted.partition.id, self.topic, len(self.rows)),)

    def flush(self, limit: Limit) -> Delivered:
        return replace(super().flush(limit), behind={self.topic: len(self.rows)})


class TopicsEngine(DirectEngine):
    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        self.sought.append(task)
        seen = {}
        for item in task.scan.ranges:
            topic = item.range.pins.target["memory"]
            [begin] = [floor.position for floor in item.floors if floor.target == topic]
            rows = [(offset, 0, topic, place) for place, (offset, _) in enumerate(self.sink.rows) if place >= begin]
            there = [row for row in rows if row[0] >= item.range.begin]
            seen[item.id] = ScanResult().merged(there, {topic: len(self.sink.rows)}, True)
        return seen


@pytest.fixture
def topics(world: World) -> Topics:
    sink = Topics()
    world.sink, world.engine = sink, TopicsEngine(world.source, sink)
    return sink


def give_up(world: World) -> None:
    """What a person does with the open range."""
    ledger, uid = world.ledger, world.connector.uid
    lease_id = task_lease_id(uid, LIVE, 1, 0)
    lease = ledger.take(lease_id, ledger.lease(lease_id), "ann", uid=uid, version=1)
    [open_range] = ledger.open_ranges(uid, LIVE)
    ledger.abandon([lease], open_range.id, who="ann", why="another topic")
    ledger.release(lease)


@pytest.mark.parametrize("window_s", [0.0, 1.5])
def test_what_was_given_up_in_a_former_topic_is_found_when_the_document_leads_there_again(
    world: World, topics: Topics, window_s: float
) -> None:
    world.engine.dies_after = 60
    with pytest.raises(EngineFailed):
        world.run()
    give_up(world)
    topics.turn_to("b")
    world.source.gone = 30
    with pytest.raises(OffsetGone):
        world.run()
    assert (world.committed(), world.engine.searches) == (30, 0), "nothing is looked for where nothing is ahead"
    topics.turn_to("a")
    world.source.gone, world.window_s = None, window_s
    world.run()
    assert [offset for offset, _ in topics.rows] == list(range(200)), "60 were there, and are there once"
    assert [offset for offset, _ in topics.others["b"]] == list(range(30))
    assert sum(receipt.deduplicated for receipt in world.receipts()) == 30
    assert [floor.ahead for floor in world.ledger.floors(world.connector.uid, LIVE)] == [False, False]


def test_a_window_follows_where_only_a_former_topic_is_ahead(world: World, topics: Topics) -> None:
    world.engine.dies_after = 60
    with pytest.raises(EngineFailed):
        world.run()
    give_up(world)
    topics.turn_to("b")
    world.run()
    world.source.happenings.append(lambda: world.source.bodies.append(b"more"))
    world.window_s = 1.5
    world.run()
    assert any(item.range.live for lane in world.engine.lanes for item in lane.ranges)
    assert world.engine.searches == 0
    world.check()
