"""Where reading goes on in a queue that lost messages, or is another one."""

from __future__ import annotations

import pytest

from connect_core.contracts import Bounds, Gap, Position
from connect_core.rocketmq import Queue, QueueBounds
from connect_core.systems.rocketmq.continuity import evidence_of, first_bounds, next_bounds
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

QUEUE = Queue("orders", "broker-a", 0)
MESSAGES = [stored(offset, b"body %d" % offset) for offset in range(20)]


def go_on(queue: MemoryQueue, offset: int, *, seen: int | None = None, incarnation: int = 0) -> Bounds:
    """Bounds for a position at `offset` whose evidence is the message `seen` of MESSAGES."""
    evidence = evidence_of(MESSAGES[seen]) if seen is not None else {}
    cluster = MemoryCluster({QUEUE: queue})
    return next_bounds(cluster.client, QUEUE, Position(incarnation, offset, evidence), queue.bounds())


@pytest.mark.parametrize(("wanted", "begin"), [(3, 3), (0, 3), (9, 9), (20, 20), (30, 20)])
def test_a_queue_never_read_begins_as_wanted(wanted: int, begin: int) -> None:
    cluster = MemoryCluster({QUEUE: MemoryQueue(MESSAGES, begin=3)})
    evidence = evidence_of(MESSAGES[begin]) if begin < 20 else {}
    assert first_bounds(cluster.client, QUEUE, QueueBounds(3, 20, 0), wanted) == Bounds(0, begin, 3, 20, evidence)


def test_a_queue_of_which_nothing_is_settled_yet_is_known_by_its_first_message() -> None:
    """A range that an earlier attempt planned may not be finished with the messages of another queue."""
    others = [stored(offset, b"other body %d" % offset) for offset in range(20)]
    assert go_on(MemoryQueue(MESSAGES), 0, seen=0).gaps == ()
    assert go_on(MemoryQueue(others), 0, seen=0).gaps == (Gap(0, 0, None, "recreated"),)
    assert go_on(MemoryQueue(MESSAGES, begin=5), 0, seen=0).gaps == (Gap(0, 0, 5, "expired"),)


def test_an_unchanged_queue_goes_on() -> None:
    bounds = go_on(MemoryQueue(MESSAGES), 10, seen=9, incarnation=2)
    assert bounds == Bounds(2, 10, 0, 20, evidence_of(MESSAGES[9]))


def test_a_position_at_the_end_goes_on() -> None:
    assert go_on(MemoryQueue(MESSAGES), 20, seen=19) == Bounds(0, 20, 0, 20, evidence_of(MESSAGES[19]))


def test_a_position_that_a_person_set_is_taken() -> None:
    """What stands there from then on is known, as in a queue that was never read."""
    assert go_on(MemoryQueue(MESSAGES), 10) == Bounds(0, 10, 0, 20, evidence_of(MESSAGES[10]))
    assert go_on(MemoryQueue(MESSAGES), 20) == Bounds(0, 20, 0, 20)


def test_messages_that_expired_are_a_gap() -> None:
    bounds = go_on(MemoryQueue(MESSAGES, begin=15), 10, seen=9)
    assert (bounds.incarnation, bounds.begin, bounds.gaps) == (0, 15, (Gap(0, 10, 15, "expired"),))


def test_everything_expired_is_a_gap_up_to_the_end() -> None:
    bounds = go_on(MemoryQueue(MESSAGES, begin=20), 10, seen=9)
    assert (bounds.begin, bounds.end, bounds.gaps) == (20, 20, (Gap(0, 10, 20, "expired"),))


def test_evidence_that_expired_alone_is_no_gap() -> None:
    assert go_on(MemoryQueue(MESSAGES, begin=10), 10, seen=9).gaps == ()


@pytest.mark.parametrize(
    "other",
    [
        stored(9, b"other body"),
        stored(9, b"body 9")._replace(store_timestamp_ms=1_700_000_999_999),
    ],
    ids=["body", "store time"],
)
def test_a_queue_with_another_message_there_was_recreated(other: object) -> None:
    messages = [*MESSAGES[:9], other, *MESSAGES[10:]]
    bounds = go_on(MemoryQueue(messages), 10, seen=9)  # type: ignore[arg-type]
    assert bounds == Bounds(1, 0, 0, 20, gaps=(Gap(0, 10, None, "recreated"),))


def test_a_queue_that_ends_before_the_position_was_rewound() -> None:
    bounds = go_on(MemoryQueue(MESSAGES[:5]), 10, seen=9)
    assert bounds == Bounds(1, 0, 0, 5, gaps=(Gap(0, 10, None, "rewound"),))


def test_a_hole_behind_the_position_is_a_gap() -> None:
    bounds = go_on(MemoryQueue([*MESSAGES[:10], *MESSAGES[14:]]), 10, seen=9)
    assert (bounds.begin, bounds.gaps) == (14, (Gap(0, 10, 14, "missing"),))
