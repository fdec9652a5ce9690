"""Consumer groups by values: what is known of partitions comes to be known of queues, and queues are told by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from connect_core.errors import ConfigError
from connect_core.rocketmq import Queue
from connect_core.sdk.groups import GroupMove, Replicated, SettledStretch
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq import translating
from connect_core.systems.rocketmq.groups import between
from connect_core.systems.rocketmq.translating import Copied, CopiesAt, GroupOffset, Stretch

MINE = Lineage("0123456789ab", "live", "a" * 16, 0)
IN, OUT = (Queue(topic, "b", 0) for topic in ("in", "out"))
OTHER = Queue("out", "b", 1)


class Opened:
    """In the place of two clusters."""

    def __init__(self, queues: Sequence[Queue], copies_at: CopiesAt) -> None:
        self.queues, self.copies_at = queues, copies_at

    def translated(self, group: str) -> list[object]:
        return []

    def move_forward(self, group: str) -> list[GroupOffset]:
        return [GroupOffset(OUT, 7, 2)]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    made: list[Opened] = []

    @contextmanager
    def clusters(source: Json, sink: Json, queues: Sequence[Queue], copies_at: CopiesAt) -> Iterator[Opened]:
        made.append(Opened(queues, copies_at))
        yield made[-1]

    monkeypatch.setattr(translating, "between", clusters)
    return made


def _known(order: str) -> Replicated:
    target = {"topic": "out", "queues": [["b", 0], ["b", 1]], "order": order}
    where = {"out/b/0": [[3, 8]], "out/b/0 SLAVE_NOT_AVAILABLE": [[3, 5]]}  # as a broker without its replica answers
    return Replicated(MINE, 0, target, [SettledStretch(0, 5, where)], 5)


@pytest.mark.parametrize(("order", "queues"), [("partition", [OUT]), ("key", [OUT, OTHER])])
def test_what_is_known_of_a_partition_is_known_of_each_queue_it_goes_to(
    order: str, queues: list[Queue], opened: list[Opened]
) -> None:
    asked: list[tuple[Partition, int]] = []

    def at(partition: Partition, offset: int) -> Replicated:
        asked.append((partition, offset))
        return _known(order)

    partitions = [Partition("in/b/1"), Partition("in/b/0")]
    with between({}, {}, partitions, at):
        (both,) = opened
        assert both.queues == [IN, Queue("in", "b", 1)]
        copies = both.copies_at(IN, 4)
    assert asked == [(partitions[1], 4)]
    assert copies == [Copied(IN, MINE, one, [Stretch(0, 5, {OUT: [(3, 8)]})], 5) for one in queues]


def test_what_nothing_is_settled_of_has_no_copies(opened: list[Opened]) -> None:
    with between({}, {}, [Partition("in/b/0")], lambda partition, offset: None):
        assert opened[0].copies_at(IN, 0) == []


def test_queues_are_told_by_name(opened: list[Opened]) -> None:
    with between({}, {}, [Partition("in/b/0")], lambda partition, offset: None) as groups:
        assert groups.move_forward("billing") == [GroupMove("out/b/0", 7, 2)]
        assert groups.translate("billing") == ((), (), {})


def test_a_partition_that_is_no_queue_is_told() -> None:
    with pytest.raises(ConfigError, match="is no queue of RocketMQ"), between({}, {}, [Partition("/a.log")], _never):
        pass


def _never(partition: Partition, offset: int) -> Replicated | None:
    raise AssertionError
