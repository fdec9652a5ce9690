"""Which offset of a queue a moment in time means, whatever the broker's search makes of it.

Brokers before 5.1.1 answer with the offset nearest to the moment, and for one behind the newest message with that of
the newest. The answer is taken when the messages beside it prove it; else their store times are searched here.
"""

from __future__ import annotations

from connect_core.rocketmq import Client, Queue, StoredMessage


def first_stored_at(client: Client, queue: Queue, begin: int, end: int, moment_ms: int) -> int:
    """The first offset of [begin, end) stored at or after the moment, or `end`. Store times never go down in a queue,
    but for steps of the broker's clock."""
    answer = min(max(client.offsets.at_or_after(queue, moment_ms), begin), end)
    if _proved(client, queue, answer, begin, end, moment_ms):
        return answer
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        message = _from(client, queue, middle, end)
        if message is None or message.store_timestamp_ms >= moment_ms:
            high = middle
        else:
            low = message.queue_offset + 1
    return low


def _proved(client: Client, queue: Queue, answer: int, begin: int, end: int, moment_ms: int) -> bool:
    before = _from(client, queue, answer - 1, answer) if answer > begin else None
    there = _from(client, queue, answer, end)
    early_enough = before is None or before.store_timestamp_ms < moment_ms
    return early_enough and (there is None or there.store_timestamp_ms >= moment_ms)


def _from(client: Client, queue: Queue, offset: int, end: int) -> StoredMessage | None:
    """The first message at or behind `offset`; None when there is none before `end`."""
    found = client.pull(queue, offset, max_messages=1).messages if offset < end else []
    return found[0] if found and found[0].queue_offset < end else None
