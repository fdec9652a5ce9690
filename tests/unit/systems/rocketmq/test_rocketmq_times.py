"""The offset of a moment, from brokers that search rightly and from those that answer with a neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rocketmq import Client, Queue
from connect_core.systems.rocketmq.times import first_stored_at
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

QUEUE = Queue("orders", "broker-a", 0)


@dataclass
class Searching(MemoryCluster):
    """A broker that answers a search with whatever it is told to."""

    answer: int = 0
    pulls: int = 0

    @property
    def offsets(self) -> Any:
        return self

    def at_or_after(self, queue: Queue, moment_ms: int) -> int:
        return self.answer

    def pull(self, *arguments: Any, **options: Any) -> Any:
        self.pulls += 1
        return super().pull(*arguments, **options)


def asked(times: list[int], moment_ms: int, answer: int, begin: int = 0) -> tuple[int, int]:
    """The offset, and how many pulls it took."""
    messages = [stored(offset, b"x")._replace(store_timestamp_ms=time) for offset, time in enumerate(times)]
    cluster = Searching({QUEUE: MemoryQueue(messages[begin:], begin)}, answer=answer)
    found = first_stored_at(cast(Client, cluster), QUEUE, begin, len(times), moment_ms)
    return found, cluster.pulls


@given(
    st.lists(st.integers(0, 30), max_size=12).map(sorted),
    st.integers(-1, 31),
    st.integers(0, 15),
    st.integers(0, 4),
)
def test_any_answer_of_the_broker_comes_to_the_first_message_of_the_moment(
    times: list[int], moment: int, answer: int, begin: int
) -> None:
    begin = min(begin, len(times))
    right = next((n for n in range(begin, len(times)) if times[n] >= moment), len(times))
    assert asked(times, moment, answer, begin)[0] == right


@pytest.mark.parametrize(("moment", "right"), [(5, 0), (10, 0), (11, 1)])
def test_a_queue_with_one_message(moment: int, right: int) -> None:
    for answer in (0, 1):
        assert asked([10], moment, answer)[0] == right


def test_a_moment_behind_the_newest_message_is_the_end() -> None:
    """Brokers before 5.1.1 answer with the newest message itself."""
    assert asked([10, 20, 30], 40, answer=2)[0] == 3


def test_a_right_answer_costs_two_pulls() -> None:
    assert asked(list(range(1000)), 600, answer=600) == (600, 2)
    assert asked(list(range(1000)), 600, answer=0)[1] < 20


def test_holes_belong_to_the_message_behind_them() -> None:
    messages = [stored(offset, b"x")._replace(store_timestamp_ms=offset) for offset in (0, 1, 6, 7)]
    cluster = Searching({QUEUE: MemoryQueue(messages)}, answer=9)
    found = first_stored_at(cast(Client, cluster), QUEUE, 0, 8, 5)
    assert found in range(2, 7)
