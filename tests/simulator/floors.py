"""Delivery rule 6, looked at whenever offsets or floors have moved: no floor is above an unsettled record of ours."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulator.broker import Broker
from tests.simulator.ledger import Database


def above_unsettled(broker: Broker, database: Database) -> Iterator[str]:
    """Where a person moved an offset back, repeated records stand below the floors on purpose."""
    floors, committed, moved = database.floors(), database.committed(), database.moved()
    for queue, log in broker.queues.items():
        for one in log:
            if not one.partition_id or one.partition_id in moved or one.offset < committed.get(one.partition_id, 0):
                continue
            floor, place = floors.get((one.partition_id, str(queue))), one.message.queue_offset
            if floor is None or floor > place:
                yield f"{one.message.body[:9]!r} stands unsettled at {place} of {queue}, its floor is {floor}"
