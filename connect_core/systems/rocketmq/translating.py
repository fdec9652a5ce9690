"""A consumer group's offsets in a source topic, as offsets of the copies in the target (delivery rule 24).

Each copy carries its coordinates, and a queue's copies stand in the target in the queue's order: the first one whose
source offset is not below the committed one is where the group goes on. Receipts tell between which places to look.
Nothing is ever skipped; what may be consumed twice is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from connect_core.errors import Refused, Retriable
from connect_core.rocketmq import Client, Queue, QueueBounds
from connect_core.sdk.records import Lineage
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq.clusters import ClusterOptions
from connect_core.systems.rocketmq.marking import ours
from connect_core.systems.rocketmq.options import is_pattern

READ_S = 60.0
_RETRY = "%RETRY%"
_OUR_GROUPS = "WAYBILL"


@dataclass(frozen=True)
class Stretch:
    """One receipt of a source queue: source offsets [begin, end), and where it delivered to in each target queue."""

    begin: int
    end: int
    where: Mapping[Queue, Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Copied:
    """What is known of one source queue around a place in it: its lineage, the target queue that its next range goes to
    (by key one of several), receipts in the order of their offsets, and up to where it is replicated."""

    queue: Queue
    lineage: Lineage
    target: Queue
    stretches: Sequence[Stretch]
    end: int


CopiesAt = Callable[[Queue, int], Sequence[Copied]]
"""What is known of a source queue around one of its offsets, one for each target queue that its messages go to."""


@dataclass(frozen=True)
class TranslatedOffset:
    """Where a group stands in one source queue (None: nowhere yet), and the offset of the target that means the same.
    `behind`: the group has consumed so many messages that are not in the target yet, and will see them again."""

    source: Queue
    committed: int | None
    target: Queue
    offset: int
    behind: int = 0


@dataclass(frozen=True)
class GroupOffset:
    """What a target queue's offset has to be: the lowest of those of its source queues. `repeats` is the most messages
    that the group may consume twice."""

    target: Queue
    offset: int
    repeats: int


@dataclass(frozen=True)
class Translator:
    """Both clusters of a connector. `queues` are the source's that it has read."""

    source: Client
    target: Client
    queues: Sequence[Queue]
    copies_at: CopiesAt

    def groups(self, wanted: Sequence[str]) -> list[str]:
        """Those that are named, and those of the source that a pattern means; never Waybill's own."""
        named = [group for group in wanted if not is_pattern(group)]
        patterns = [group for group in wanted if is_pattern(group)]
        there = self.source.groups.names() if patterns else []
        meant = [one for one in there if any(fnmatchcase(one, pattern) for pattern in patterns)]
        return [*named, *(one for one in meant if one not in named and not one.startswith(_OUR_GROUPS))]

    def translated(self, group: str) -> list[TranslatedOffset]:
        """For each queue of the topics in which the group has an offset. Raises Retriable when the target cannot be
        read through in time."""
        copies = [
            (committed, copy)
            for queue, committed in self._committed(group).items()
            for copy in self.copies_at(queue, committed or 0)
        ]
        topics = {copy.target.topic for _, copy in copies}
        bounds = {queue: seen for topic in sorted(topics) for queue, seen in self.target.offsets.bounds(topic).items()}
        for _, copy in copies:
            if copy.target not in bounds:
                raise Refused(
                    "The queue is gone, and with it copies that a group may have to consume",
                    where=str(copy.target),
                    next_step="Give the topic its queues back, or let the next run settle in those that it has",
                )
        lineages = {copy.lineage for _, copy in copies}
        return [
            TranslatedOffset(
                copy.queue,
                committed,
                copy.target,
                first_copy(self.target, copy, committed or 0, bounds[copy.target], lineages),
                max((committed or 0) - copy.end, 0),
            )
            for committed, copy in copies
        ]

    def _committed(self, group: str) -> dict[Queue, int | None]:
        found = {queue: self.source.groups.committed(group, queue) for queue in self.queues}
        consumed = {queue.topic for queue, committed in found.items() if committed is not None}
        return {queue: committed for queue, committed in found.items() if queue.topic in consumed}

    def move_forward(self, group: str) -> list[GroupOffset]:
        """Writes the offsets that are ahead of those which the group has at the target; returns these. Raises Refused
        while its consumers are connected there."""
        offsets = group_offsets(self.translated(group))
        if not offsets:
            return []
        require_offline(self.target, group)
        ahead = [one for one in offsets if self._stands_before(group, one)]
        if ahead:
            written(self.target, group, ahead)
        return ahead

    def _stands_before(self, group: str, wanted: GroupOffset) -> bool:
        committed = self.target.groups.committed(group, wanted.target)
        return committed is None or committed < wanted.offset


@contextmanager
def between(source: Json, sink: Json, queues: Sequence[Queue], copies_at: CopiesAt) -> Iterator[Translator]:
    """`source` and `sink` are the options of the two ends, secrets revealed."""
    clusters = [ClusterOptions.of(options).client_options() for options in (source, sink)]
    with Client(clusters[0]) as origin, Client(clusters[1]) as target:
        yield Translator(origin, target, queues, copies_at)


def group_offsets(found: Sequence[TranslatedOffset]) -> list[GroupOffset]:
    """For each target queue. Queues of which the group has no offset begin at their first copy."""
    wanted: dict[Queue, list[TranslatedOffset]] = {}
    for one in found:
        wanted.setdefault(one.target, []).append(one)
    return [
        GroupOffset(
            queue,
            min(one.offset for one in several),
            sum(one.offset - min(other.offset for other in several) + one.behind for one in several),
        )
        for queue, several in sorted(wanted.items())
    ]


def require_offline(client: Client, group: str) -> None:
    """Raises Refused while consumers of the group are connected: they would commit over what is written."""
    for broker in sorted(client.brokers.masters()):
        if client.groups.online(group, broker):
            raise Refused(
                f"Consumers of the group {group} are connected to the target",
                where=broker,
                next_step="Stop them; start them again when the offsets are written",
            )


def written(client: Client, group: str, offsets: Sequence[GroupOffset]) -> None:
    """Stores the offsets, and reads each of them back. Raises Refused when one is not there then."""
    if not client.groups.exists(group):  # one that is there keeps its settings
        client.groups.create(group)
    for one in offsets:
        if not client.groups.commit(group, one.target, one.offset):
            raise Refused(
                "An operator has reset the group, and its broker drops its offsets until a client reads with it",
                where=f"{group} on {one.target}",
                next_step="Allow the target's user to read the topic with this group, or start one of its consumers "
                "for a moment and stop it; then try again",
            )
        if (seen := client.groups.committed(group, one.target)) != one.offset:
            raise Refused(
                f"The group is at {seen}, not at {one.offset}",
                where=f"{group} on {one.target}",
                next_step="Another client has changed it; stop its consumers and try again",
            )


def retry_backlog(client: Client, group: str) -> dict[Queue, int]:
    """Messages of the group's retry topic that it has not consumed: these are not translated."""
    topic = f"{_RETRY}{group}"
    if not client.topics.exists(topic):
        return {}
    left = {
        queue: seen.end - max(client.groups.committed(group, queue) or 0, seen.begin)
        for queue, seen in client.offsets.bounds(topic).items()
    }
    return {queue: count for queue, count in left.items() if count > 0}


def first_copy(client: Client, copy: Copied, committed: int, seen: QueueBounds, lineages: Collection[Lineage]) -> int:
    """The place of the first copy of a message at or behind `committed`. When there is none yet: behind everything that
    `lineages`, those of the same connector, have there; never behind what others have written since."""
    begin, end = _between(copy, committed, seen)
    deadline = time.monotonic() + READ_S
    reader = client.read(copy.target, begin, end, deadline=deadline)
    behind = begin
    for part in reader:
        for mark in ours(part.messages, lineages):
            if mark.lineage == copy.lineage and mark.offset >= committed:
                return mark.position
            behind = mark.position + 1
    if reader.position < end:
        raise Retriable(
            f"The target could not be read through in {READ_S:g} s",
            where=f"{copy.target}, offset {reader.position}",
            next_step="Try again when its broker has less to do",
        )
    return behind


def _between(copy: Copied, committed: int, seen: QueueBounds) -> tuple[int, int]:
    """Where the copy stands if there is one: behind what was delivered of earlier offsets, before what was delivered of
    the receipts behind the one that covers `committed`."""
    begin, end = seen.begin, seen.end
    for stretch in copy.stretches:
        spans = stretch.where.get(copy.target, ())
        if not spans:
            continue
        if stretch.end <= committed:
            begin = max(begin, spans[-1][1])
        elif stretch.begin > committed:
            end = min(end, spans[-1][1])
            break
    return begin, max(begin, end)
