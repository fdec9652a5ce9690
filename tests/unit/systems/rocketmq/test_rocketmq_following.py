"""Queues that are followed together: one that fails is told of once, and the others go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from connect_core.errors import Failure, OffsetGone, Unreachable
from connect_core.rocketmq import Queue
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit
from connect_core.sdk.values import Pins, Range
from connect_core.systems.rocketmq import following as module
from connect_core.systems.rocketmq.following import FollowedQueue, following
from connect_core.systems.rocketmq.reach import Reach


class Reader:
    """Raises what it is told to, once something is asked of it; else nothing ever comes."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.asked = error, 0
        self.queue = Queue("t", "b", 0)

    def arrived(self) -> None:
        self.asked += 1
        if self.error:
            raise self.error


class Gathering:
    hole = None

    def full(self) -> bool:
        return False

    exhausted = pending = full


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[FollowedQueue]]:
    monkeypatch.setattr(module, "wait_for_any", lambda readers, until: time.sleep(0.001))
    pins = Pins(1, "p", {}, "code")

    def made(*errors: Exception | None) -> list[FollowedQueue]:
        reach = Reach()
        return [
            FollowedQueue(
                Reader(error),  # type: ignore[arg-type]
                Range("live", Partition(f"t/b/{n}"), n, 0, 0, 1 << 62, 10, 10, {}, pins),
                Gathering(),  # type: ignore[arg-type]
                reach,
            )
            for n, error in enumerate(errors)
        ]

    return made


def told(queues: list[FollowedQueue]) -> list[tuple[str, Failure | None]]:
    found = []
    for queue in following(queues, limit(quantum_s=5), 0.05):
        queue.over = True
        found.append((queue.wanted.partition.key, queue.failure))
    return found


def test_a_queue_that_cannot_be_followed_is_told_of_once_and_the_others_are_followed_on(
    followed: Callable[..., list[FollowedQueue]],
) -> None:
    gone = OffsetGone("Messages 3 to 5 cannot be read")
    queues = followed(None, gone, ValueError("secret"))
    found = told(queues)
    assert [key for key, _ in found] == ["t/b/1", "t/b/2"]
    assert found[0][1] == Failure.of(gone)
    assert found[1][1] is not None
    assert "secret" not in found[1][1].what
    asked: Any = [queue.reader.asked for queue in queues]  # type: ignore[attr-defined]
    assert asked[1:] == [1, 1]
    assert asked[0] > 1


def test_nothing_is_waited_for_when_all_have_failed(followed: Callable[..., list[FollowedQueue]]) -> None:
    begun = time.monotonic()
    list(told(followed(OffsetGone("gone"))))
    assert time.monotonic() - begun < 5


def test_a_broker_that_is_away_concerns_its_own_queues_and_is_asked_once(
    followed: Callable[..., list[FollowedQueue]],
) -> None:
    queues = followed(None, Unreachable("the broker does not answer"), None)
    brokers = ("a", "b", "b")
    for queue, broker in zip(queues, brokers, strict=True):
        queue.reader.queue = Queue("t", broker, 0)
    found = told(queues)
    assert [key for key, _ in found] == ["t/b/1", "t/b/2"]
    assert {failure.family for _, failure in found if failure} == {"PartitionUnreachable"}
    asked: Any = [queue.reader.asked for queue in queues]  # type: ignore[attr-defined]
    assert asked[1:] == [1, 0]
    assert asked[0] > 1
