"""Where queues begin that were never read, when the document names a consumer group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from connect_core.rocketmq import Queue
from connect_core.sdk.records import Partition
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.source import RocketMQSource
from tests.unit.systems.rocketmq.test_rocketmq_away import AWAY, HERE, TwoBrokers

KNOWN = {HERE: 2}
"""The offsets of the group `old`. The queues have five messages each."""


class WithGroup(TwoBrokers):
    def committed(self, group: str, queue: Queue) -> int | None:
        return KNOWN.get(queue) if group == "old" else None

    def begin_of_new(self, group: str, queue: Queue) -> int | None:
        """The first messages of one queue alone are in the memory of its broker."""
        return self.committed(group, queue) or (0 if queue == AWAY else None)


@pytest.mark.parametrize(
    ("start", "begins"),
    [
        ("group:old", {HERE: 2, AWAY: 0}),
        ("group:old or earliest", {HERE: 2, AWAY: 0}),
        ("group:old or latest", {HERE: 2, AWAY: 5}),
        ("group:unknown or latest", {HERE: 5, AWAY: 5}),
        ("group:unknown or group:old or latest", {HERE: 2, AWAY: 5}),
        ("group:unknown or as-new-group", {HERE: 5, AWAY: 0}),
        ("group:old or as-new-group", {HERE: 2, AWAY: 0}),
    ],
)
def test_a_queue_of_which_the_group_has_no_offset_begins_where_the_document_says(
    start: str, begins: dict[Queue, int]
) -> None:
    cluster = WithGroup()

    @contextmanager
    def client() -> Iterator[TwoBrokers]:
        yield cluster

    options = {"name_servers": ["a:1"], "topics": ["orders"], "start": start}
    source = RocketMQSource(RocketMQSourceOptions.model_validate(options))
    vars(source._connecting)["client"] = client
    seen = source.available_offsets({Partition(str(queue)): None for queue in begins})
    assert {queue: seen[Partition(str(queue))].begin for queue in begins} == begins
