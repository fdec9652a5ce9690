"""Several source queues in one target queue: a group goes on at the lowest place, and what it may see twice is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from connect_core.errors import Refused
from connect_core.rocketmq import Client, Queue, StoredMessage
from connect_core.sdk.records import Lineage
from connect_core.sdk.testing.driving import UID
from connect_core.systems.rocketmq.translating import (
    Copied,
    GroupOffset,
    Stretch,
    TranslatedOffset,
    first_copy,
    group_offsets,
    written,
)
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored
from tests.unit.systems.rocketmq.test_rocketmq_marking import marked

A, B, C = (Queue("out", "b", number) for number in range(3))


def at(number: int, target: Queue, offset: int, behind: int = 0) -> TranslatedOffset:
    return TranslatedOffset(Queue("in", "b", number), 10, target, offset, behind)


def test_a_queue_of_its_own_is_exact() -> None:
    assert group_offsets([at(0, A, 17), at(1, B, 4)]) == [GroupOffset(A, 17, 0), GroupOffset(B, 4, 0)]


def test_in_a_shared_queue_the_lowest_counts() -> None:
    assert group_offsets([at(0, A, 17), at(1, A, 4), at(2, A, 9)]) == [GroupOffset(A, 4, 13 + 5)]


def test_messages_that_are_not_there_yet_come_again() -> None:
    assert group_offsets([at(0, C, 20, behind=5), at(1, C, 18, behind=1)]) == [GroupOffset(C, 18, 2 + 6)]


@dataclass
class Groups:
    """The groups of a cluster that keeps only what is below `limit`, and nothing when it `drops` it; give
    `client` where a `Client` is wanted."""

    limit: int = 1 << 60
    drops: bool = False
    created: list[str] = field(default_factory=list)
    stored: dict[Queue, int] = field(default_factory=dict)

    @property
    def client(self) -> Client:
        return cast(Client, self)

    @property
    def groups(self) -> Any:
        return self

    def exists(self, group: str) -> bool:
        return group == "there"

    def create(self, group: str) -> None:
        self.created.append(group)

    def commit(self, group: str, queue: Queue, offset: int) -> bool:
        if not self.drops:
            self.stored[queue] = min(offset, self.limit)
        return not self.drops

    def committed(self, group: str, queue: Queue) -> int | None:
        return self.stored.get(queue)


def test_an_offset_that_is_not_there_after_it_was_written_is_told() -> None:
    with pytest.raises(Refused, match="The group is at 10, not at 17"):
        written(Groups(limit=10).client, "billing", [GroupOffset(A, 17, 0)])


def test_a_reset_that_is_in_the_way_is_told() -> None:
    with pytest.raises(Refused, match=r"An operator has reset the group.*billing on out/b/0.*Allow the target's user"):
        written(Groups(drops=True).client, "billing", [GroupOffset(A, 17, 0)])


def test_a_group_that_is_there_keeps_its_settings() -> None:
    cluster = Groups()
    for group in ("there", "new"):
        written(cluster.client, group, [GroupOffset(A, 17, 0)])
    assert cluster.created == ["new"]


# ------------------------------------------------------------------------------- where a copy stands in a target queue

SOURCE = Queue("in", "b", 0)
MINE, SIBLING = (Lineage(UID, "live", name * 16, 0) for name in ("a", "b"))


def place(messages: list[StoredMessage], committed: int, *stretches: Stretch) -> tuple[int, MemoryCluster]:
    cluster = MemoryCluster({A: MemoryQueue(messages)})
    copy = Copied(SOURCE, MINE, A, stretches, 1_000)
    seen = cluster.queues[A].bounds()
    return first_copy(cluster.client, copy, committed, seen, [MINE, SIBLING]), cluster


COPIES = [marked(position, MINE, offset) for position, offset in enumerate((3, 5, 8, 9))]


@pytest.mark.parametrize(("committed", "position"), [(0, 0), (3, 0), (4, 1), (6, 2), (9, 3), (10, 4)])
def test_a_group_goes_on_at_the_first_copy_that_it_has_not_consumed(committed: int, position: int) -> None:
    """Offsets in between may have been filtered out."""
    assert place(COPIES, committed)[0] == position


def test_what_others_wrote_behind_the_last_copy_is_not_passed_over() -> None:
    foreign = [stored(4, b"of another producer"), marked(5, MINE._replace(uid="ffffffff"), 20)]
    assert place([*COPIES, *foreign], 10)[0] == 4


def test_copies_of_other_queues_of_the_connector_do_not_hold_a_group_back() -> None:
    """What it has to consume of them is told by their own queue."""
    assert place([*COPIES, marked(4, SIBLING, 0), stored(5, b"")], 10)[0] == 5


def test_only_what_lies_between_the_receipts_around_is_read() -> None:
    messages = [marked(n, MINE, n) for n in range(100)]
    receipts = [Stretch(begin, begin + 10, {A: [(begin, begin + 10)]}) for begin in (40, 50, 60)]
    position, cluster = place(messages, 55, *receipts)
    assert (position, cluster.reads) == (55, [(50, 70)])
    assert place(messages, 50, *receipts)[0] == 50


def test_receipts_that_delivered_nothing_to_the_queue_say_nothing() -> None:
    """By key a range need not have anything for each of its queues."""
    receipts = [Stretch(0, 4, {A: [(0, 1)]}), Stretch(4, 8, {B: [(0, 7)]}), Stretch(8, 12, {B: [(7, 9)]})]
    assert place(COPIES, 8, *receipts)[0] == 2
