"""Where a queue begins that was never read, by what a document says with `start`."""

from __future__ import annotations

import math
from datetime import datetime

from connect_core.rocketmq import Client, Queue, QueueBounds
from connect_core.systems.rocketmq.options import AS_NEW_GROUP, GROUP, start_of_group
from connect_core.systems.rocketmq.times import first_stored_at


def started_from(client: Client, queue: Queue, seen: QueueBounds, start: str) -> int:
    """Of a `start` for all queues: its first offset to read."""
    if start in ("earliest", "latest"):
        return seen.begin if start == "earliest" else seen.end
    if start.startswith(GROUP):
        group, otherwise = start_of_group(start)
        if otherwise == AS_NEW_GROUP:
            told = client.groups.begin_of_new(group, queue)
            return seen.end if told is None else told
        committed = client.groups.committed(group, queue)
        return started_from(client, queue, seen, otherwise) if committed is None else committed
    moment_ms = math.ceil(datetime.fromisoformat(start).timestamp() * 1000)
    return first_stored_at(client, queue, seen.begin, seen.end, moment_ms)
