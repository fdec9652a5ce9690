"""Where reading goes on in a queue that lost messages, or is another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect_core.errors import ConfigError
from connect_core.rocketmq import PullResult, PullStatus, Queue, QueueBounds, StoredMessage
from connect_core.sdk.values import Bounds, Gap, Position
from connect_core.systems.rocketmq.continuity import (
    at_end,
    begun_at,
    closed_bounds,
    deleted_bounds,
    evidence_of,
    first_bounds,
    next_bounds,
)
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

QUEUE = Queue("orders", "broker-a", 0)
MESSAGES = [stored(offset, b"body %d" % offset) for offset in range(20)]
BEFORE = {"read_before": {"below": 10, "stored_ms": MESSAGES[9].store_timestamp_ms}}
"""Of a queue that was read up to 10 and is read anew."""


def go_on(queue: MemoryQueue, offset: int, *, seen: int | None = None, incarnation: int = 0) -> Bounds:
    """Bounds for a position at `offset` whose evidence is the message `seen` of MESSAGES."""
    evidence = evidence_of(MESSAGES[seen]) if seen is not None else {}
    cluster = MemoryCluster({QUEUE: queue})
    return next_bounds(cluster.client, QUEUE, Position(incarnation, offset, evidence), queue.bounds())


@pytest.mark.parametrize("wanted", [3, 9, 20])
def test_a_queue_never_read_begins_as_wanted(wanted: int) -> None:
    cluster = MemoryCluster({QUEUE: MemoryQueue(MESSAGES, begin=3)})
    evidence = evidence_of(MESSAGES[min(wanted, 19)])
    assert first_bounds(cluster.client, QUEUE, QueueBounds(3, 20, 0), wanted) == Bounds(0, wanted, 3, 20, evidence)


def test_what_has_expired_behind_the_place_of_a_group_is_told() -> None:
    """Also behind the place that was kept when a person looked, days before the first run."""
    cluster = MemoryCluster({QUEUE: MemoryQueue(MESSAGES, begin=3)})
    first = first_bounds(cluster.client, QUEUE, QueueBounds(3, 20, 0), 1, chosen=True)
    assert (first.begin, first.gaps, first.chosen) == (3, (Gap(0, 1, 3, "expired"),), False)


def test_the_place_of_a_group_in_a_former_topic_leaves_nothing_out() -> None:
    cluster = MemoryCluster({QUEUE: MemoryQueue(MESSAGES, begin=3)})
    first = first_bounds(cluster.client, QUEUE, QueueBounds(3, 20, 0), 30, chosen=True)
    assert (first.begin, first.incarnation, first.gaps) == (3, 1, (Gap(0, 30, None, "rewound"),))


def test_a_group_may_move_on_while_its_queue_is_looked_at() -> None:
    cluster = MemoryCluster({QUEUE: MemoryQueue(MESSAGES, begin=3)})
    first = first_bounds(cluster.client, QUEUE, QueueBounds(3, 10, 0), 18, chosen=True)
    assert (first.begin, first.end, first.gaps) == (18, 20, ())


def test_where_a_queue_begins_at_its_end_is_known_by_the_message_before() -> None:
    """One that was deleted then had nothing to read; one that was made anew since is told."""
    queue = MemoryQueue(MESSAGES, begin=3)
    first = first_bounds(MemoryCluster({QUEUE: queue}).client, QUEUE, queue.bounds(), 20, chosen=True)
    assert (first.begin, first.evidence, first.chosen) == (20, at_end(evidence_of(MESSAGES[19])), True)
    position = Position(0, first.begin, first.evidence)
    assert deleted_bounds(position).gaps == (Gap(0, 20, 20, "ended"),)
    others = MemoryQueue([stored(offset, b"other body %d" % offset) for offset in range(25)])
    made_anew = next_bounds(MemoryCluster({QUEUE: others}).client, QUEUE, position, others.bounds())
    assert made_anew.gaps == (Gap(0, 20, None, "recreated"),)


def test_a_queue_begins_at_the_offset_that_a_person_named() -> None:
    queue = MemoryQueue(MESSAGES, begin=3)
    client = MemoryCluster({QUEUE: queue}).client
    assert begun_at(client, QUEUE, queue.bounds(), 12) == Bounds(0, 12, 3, 20, evidence_of(MESSAGES[12]))
    assert begun_at(client, QUEUE, queue.bounds(), 20).gaps == ()
    expired = begun_at(client, QUEUE, queue.bounds(), 1)
    assert (expired.begin, expired.gaps) == (3, (Gap(0, 1, 3, "expired"),))
    with pytest.raises(ConfigError, match="orders/broker-a/0 ends at 20, before the 21"):
        begun_at(client, QUEUE, queue.bounds(), 21)


def test_a_queue_of_which_nothing_is_settled_yet_is_known_by_its_first_message() -> None:
    """A range that an earlier attempt planned may not be finished with the messages of another queue."""
    others = [stored(offset, b"other body %d" % offset) for offset in range(20)]
    assert go_on(MemoryQueue(MESSAGES), 0, seen=0).gaps == ()
    assert go_on(MemoryQueue(others), 0, seen=0).gaps == (Gap(0, 0, None, "recreated"),)
    assert go_on(MemoryQueue(MESSAGES, begin=5), 0, seen=0).gaps == (Gap(0, 0, 5, "expired"),)


def test_an_unchanged_queue_goes_on() -> None:
    bounds = go_on(MemoryQueue(MESSAGES), 10, seen=9, incarnation=2)
    assert bounds == Bounds(2, 10, 0, 20, evidence_of(MESSAGES[9]))


def test_a_place_before_what_is_known_of_the_queue_is_taken() -> None:
    """As of a backfill: what is known is where the live stream has got to."""
    assert go_on(MemoryQueue(MESSAGES), 3, seen=9) == Bounds(0, 3, 0, 20, evidence_of(MESSAGES[9]))


def test_a_position_at_the_end_goes_on() -> None:
    assert go_on(MemoryQueue(MESSAGES), 20, seen=19) == Bounds(0, 20, 0, 20, evidence_of(MESSAGES[19]))


def test_a_position_that_a_person_set_is_taken() -> None:
    """What stands there from then on is known, as in a queue that was never read."""
    assert go_on(MemoryQueue(MESSAGES), 10) == Bounds(0, 10, 0, 20, evidence_of(MESSAGES[10]))
    assert go_on(MemoryQueue(MESSAGES), 20) == Bounds(0, 20, 0, 20, evidence_of(MESSAGES[19]))


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
    assert bounds == Bounds(1, 0, 0, 20, BEFORE, (Gap(0, 10, None, "recreated"),))


def test_a_queue_that_ends_before_the_position_was_rewound() -> None:
    bounds = go_on(MemoryQueue(MESSAGES[:5]), 10, seen=9)
    assert bounds == Bounds(1, 0, 0, 5, BEFORE, (Gap(0, 10, None, "rewound"),))


def test_a_queue_that_has_lost_its_end_is_read_on_behind_what_is_known_of_it() -> None:
    """The range that was read there was settled from the target, behind more than the queue has now."""
    known = evidence_of(MESSAGES[5])
    assert go_on(MemoryQueue(MESSAGES[:6]), 8, seen=5) == Bounds(1, 6, 0, 6, known, gaps=(Gap(0, 8, None, "rewound"),))
    others = [stored(offset, b"other body %d" % offset) for offset in range(6)]
    anew = go_on(MemoryQueue(others), 8, seen=5)
    assert (anew.incarnation, anew.begin, anew.gaps) == (1, 0, (Gap(0, 8, None, "recreated"),))


def test_a_hole_behind_the_position_is_a_gap() -> None:
    bounds = go_on(MemoryQueue([*MESSAGES[:10], *MESSAGES[14:]]), 10, seen=9)
    assert (bounds.begin, bounds.gaps) == (14, (Gap(0, 10, 14, "missing"),))


class Passing(MemoryCluster):
    """A broker that gives no message from 10 to 14, in two answers, and says this of them."""

    status: PullStatus

    def pull(self, queue: Queue, offset: int, *, max_messages: int = 32) -> PullResult:
        if not 10 <= offset < 14:
            found = super().pull(queue, offset, max_messages=max_messages)
            return replace(found, messages=[one for one in found.messages if not 10 <= one.queue_offset < 14][:1])
        return PullResult(queue, offset, self.status, 12 if offset < 12 else 14, 0, 20, [])


@pytest.mark.parametrize("status", [PullStatus.FILTERED, PullStatus.REMOVED, PullStatus.INDEX_GONE])
@pytest.mark.parametrize("seen", [9, None])
def test_what_a_broker_passes_over_behind_the_position_is_a_gap(status: PullStatus, seen: int | None) -> None:
    """Else each attempt would end there, and no run could be told to continue."""
    queue = MemoryQueue(MESSAGES)
    cluster = Passing({QUEUE: queue})
    cluster.status = status
    position = Position(0, 10, evidence_of(MESSAGES[seen]) if seen is not None else {})
    bounds = next_bounds(cluster.client, QUEUE, position, queue.bounds())
    assert (bounds.begin, bounds.end, bounds.gaps) == (14, 20, (Gap(0, 10, 14, "missing"),))


# ---------------------------------------------------------------------------------------------- topics that are deleted

LAST = evidence_of(MESSAGES[9])


def test_what_may_not_have_been_read_of_a_deleted_topic_is_a_gap_to_an_unknown_end() -> None:
    bounds = deleted_bounds(Position(2, 10, LAST))
    assert (bounds.gaps, bounds.incarnation, bounds.begin, bounds.end) == ((Gap(2, 10, None, "deleted"),), 3, 0, 0)
    assert bounds.gaps[0].loses
    assert not bounds.grows


def test_a_deleted_topic_that_was_read_to_its_end_has_lost_nothing() -> None:
    bounds = deleted_bounds(Position(0, 10, at_end(LAST)))
    assert (bounds.gaps, bounds.incarnation) == ((Gap(0, 10, 10, "ended"),), 1)
    assert not bounds.gaps[0].loses


def test_a_deleted_topic_in_which_nothing_was_ever_seen_has_nothing_to_tell() -> None:
    assert deleted_bounds(None) == Bounds(0, 0, 0, 0, grows=False)


def test_that_a_topic_was_deleted_is_told_once() -> None:
    first = deleted_bounds(Position(0, 10, LAST))
    again = deleted_bounds(Position(first.incarnation, first.begin, first.evidence))
    assert (again.gaps, again.incarnation, again.evidence) == ((), first.incarnation, first.evidence)


def test_a_topic_that_is_created_again_after_that_was_told_begins_at_its_first_message() -> None:
    others = [stored(offset, b"other body %d" % offset) for offset in range(20)]
    assert come_back(others) == Bounds(1, 0, 0, 20, evidence_of(others[0]))
    assert come_back(others[:3]) == Bounds(1, 0, 0, 3, evidence_of(others[0]))


def come_back(messages: list[StoredMessage], begin: int = 0) -> Bounds:
    """Bounds of a queue that had ended at 10."""
    told = deleted_bounds(Position(0, 10, at_end(LAST)))
    there = MemoryQueue(messages, begin)
    position = Position(told.incarnation, told.begin, told.evidence)
    return next_bounds(MemoryCluster({QUEUE: there}).client, QUEUE, position, there.bounds())


def test_a_queue_that_is_there_again_goes_on_where_it_was_read_to() -> None:
    """A broker may come up once without its store, and say that it has no such topic."""
    bounds = come_back(MESSAGES)
    assert (bounds.incarnation, bounds.begin, bounds.end, bounds.evidence) == (1, 10, 20, LAST)
    (told,) = bounds.gaps
    assert (told.begin, told.end, told.loses) == (0, 10, False)
    assert "there again" in told.reason


def test_a_queue_that_cannot_be_recognised_any_more_is_another_one() -> None:
    assert [gap.reason for gap in come_back(MESSAGES, begin=12).gaps] == ["expired"]


def test_where_a_queue_ended_says_nothing_of_the_ranges_that_are_planned_behind_it() -> None:
    """One that is left open has seen more: were its topic deleted, that would be lost."""
    there = MemoryQueue(MESSAGES)
    bounds = next_bounds(MemoryCluster({QUEUE: there}).client, QUEUE, Position(0, 10, at_end(LAST)), there.bounds())
    assert bounds.evidence == LAST
    assert deleted_bounds(Position(0, bounds.begin, bounds.evidence)).gaps[0].loses


def test_a_queue_that_was_closed_when_it_was_read_tells_once_that_it_has_ended() -> None:
    read = Position(0, 7, {"offset": 6, "stored_ms": 1, "crc": 2})
    told = closed_bounds(read, 7)
    assert (told.gaps, told.grows) == ((Gap(0, 7, 7, "closed"),), False)
    again = closed_bounds(Position(0, 7, told.evidence), 7)
    assert (again.gaps, again.begin, again.end) == ((), 7, 7)
    grown = closed_bounds(Position(0, 7, told.evidence), 9)  # it was opened, written and closed again
    assert grown.gaps == (Gap(0, 7, 9, "closed"),)
