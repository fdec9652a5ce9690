"""Consumer groups of a connector from RocketMQ to RocketMQ, as `sdk.groups` asks for them (delivery rule 24)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from connect_core.rocketmq import Queue
from connect_core.sdk.groups import (
    GroupMove,
    GroupPlace,
    GroupTranslation,
    GroupTranslator,
    ReplicatedAt,
    SettledStretch,
)
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq import translating
from connect_core.systems.rocketmq.connecting import is_queue, queue_of
from connect_core.systems.rocketmq.routing import queues_for
from connect_core.systems.rocketmq.translating import Copied, GroupOffset, Stretch, Translator


@contextmanager
def between(
    source: Json, sink: Json, partitions: Sequence[Partition], replicated_at: ReplicatedAt
) -> Iterator[GroupTranslator]:
    """Raises ConfigError for partitions that are no queues."""
    by_queue = {queue_of(one.key): one for one in partitions}

    def copies_at(queue: Queue, committed: int) -> list[Copied]:
        return _copied(by_queue[queue], committed, replicated_at)

    with translating.between(source, sink, sorted(by_queue), copies_at) as both:
        yield _Groups(both)


class _Groups:
    def __init__(self, both: Translator) -> None:
        self._both = both

    def groups(self, wanted: Sequence[str]) -> list[str]:
        return self._both.groups(wanted)

    def translate(self, group: str) -> GroupTranslation:
        found = self._both.translated(group)
        if not found:
            return GroupTranslation((), (), {})
        offsets = translating.group_offsets(found)
        backlog = translating.retry_backlog(self._both.source, group)
        return GroupTranslation(
            [GroupPlace(str(one.source), one.committed, str(one.target), one.offset, one.behind) for one in found],
            _moves(offsets),
            {str(queue): count for queue, count in backlog.items()},
        )

    def write(self, group: str, moves: Sequence[GroupMove]) -> None:
        translating.require_offline(self._both.target, group)
        offsets = [GroupOffset(queue_of(one.target), one.offset, one.repeats) for one in moves]
        translating.written(self._both.target, group, offsets)

    def move_forward(self, group: str) -> list[GroupMove]:
        return _moves(self._both.move_forward(group))


def _moves(offsets: Sequence[GroupOffset]) -> list[GroupMove]:
    return [GroupMove(str(one.target), one.offset, one.repeats) for one in offsets]


def _copied(partition: Partition, committed: int, replicated_at: ReplicatedAt) -> list[Copied]:
    """One for each queue that the records of the partition go to."""
    known = replicated_at(partition, committed)
    if known is None:
        return []
    stretches = [_stretch(one) for one in known.stretches]
    return [
        Copied(queue_of(partition.key), known.lineage, target, stretches, known.end)
        for target in queues_for(partition, known.slot, known.target)
    ]


def _stretch(one: SettledStretch) -> Stretch:
    """A receipt also tells where batches stand that a broker has stored, and could not flush or copy in time: `where`
    has them again, by queue and answer."""
    queues = {queue_of(name): spans for name, spans in one.where.items() if is_queue(name)}
    where = {queue: [(begin, end) for begin, end in spans] for queue, spans in queues.items()}
    return Stretch(one.begin, one.end, where)
