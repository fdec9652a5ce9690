"""Where the consumer group stands at whose offsets a source begins, as a person asks before anything is begun: it keeps
nothing, and so a group that moves on meanwhile is looked at anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from connect_core.rocketmq import Client, PermissionRefused, Queue, QueueBounds, TopicMissing
from connect_core.sdk.groups import GroupStanding, QueueStanding
from connect_core.systems.rocketmq.options import GROUP, RocketMQSourceOptions, start_of_group
from connect_core.systems.rocketmq.starting import started_from


def standing(options: RocketMQSourceOptions) -> GroupStanding | None:
    """Of topics that a document names; None where it names no group."""
    start = options.start_of_others()
    if not start.startswith(GROUP):
        return None
    group, _ = start_of_group(start)
    missing: list[str] = []
    seen: dict[Queue, QueueBounds] = {}
    with Client(options.client_options()) as client:
        for topic in filter(options.names, options.topics):
            try:
                seen |= client.offsets.bounds(topic)
            except TopicMissing:
                missing.append(topic)
        return GroupStanding(group, _connected(client, group, seen), missing, list(_places(client, group, seen, start)))


def _connected(client: Client, group: str, queues: Iterable[Queue]) -> bool | None:
    try:
        return any(client.groups.online(group, broker) for broker in sorted({one.broker for one in queues}))
    except PermissionRefused:
        return None


def _places(client: Client, group: str, seen: dict[Queue, QueueBounds], start: str) -> Iterator[QueueStanding]:
    for queue, there in sorted(seen.items()):
        committed = client.groups.committed(group, queue)
        begins = started_from(client, queue, there, start) if committed is None else committed
        end = there.end
        if begins > end:  # the group may have moved on since the queue was looked at
            end = client.offsets.end(queue)
        yield QueueStanding(str(queue), committed, begins, there.begin, end)
