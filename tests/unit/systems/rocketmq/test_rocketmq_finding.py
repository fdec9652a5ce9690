"""Looking for messages of ours: sets, slices, floors, and what retention took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import TargetChanged
from connect_core.rocketmq import Queue, StoredMessage, StoredSlice
from connect_core.sdk.records import Lineage, Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import UID, range_of, records
from connect_core.sdk.values import ORIGIN, Attempt, Bounds, Floor, OpenRange
from connect_core.systems.rocketmq import finding
from connect_core.systems.rocketmq.finding import OnUnknown, scan
from connect_core.systems.rocketmq.marking import MessageMarker
from connect_core.systems.rocketmq.routing import with_rules
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored
from tests.unit.systems.rocketmq.test_rocketmq_marking import marked

QUEUES = [Queue("out", "broker-a", number) for number in range(2)]
PINS = {"topic": "out", "queues": [[queue.broker, queue.queue_id] for queue in QUEUES]}


@pytest.fixture(autouse=True, scope="module")
def _no_sends_are_under_way() -> Iterator[None]:
    """These brokers keep no request back. test_rocketmq_visibility.py shows that `scan` waits for those that do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "SEND_QUEUE_S", 0.0)
        yield


def open_range(number: int, begin: int, floors: dict[int, int], key: str = "in/b/0") -> OpenRange:
    partition = Partition(key)
    wanted = range_of(partition, Bounds(0, begin, 0, begin + 100), pins=PINS)
    stand = tuple(Floor(partition.id, str(QUEUES[queue]), position) for queue, position in floors.items())
    return OpenRange(number, wanted, stand, inherited=True)


def lineage(item: OpenRange) -> Lineage:
    return item.range.lineage(UID)


def search(cluster: MemoryCluster, *items: OpenRange, on_unknown: OnUnknown = "fail") -> dict[int, ScanResult]:
    return scan(cluster.client, Scan(Attempt(UID, 1), items, 5.0), on_unknown)


def cluster_of(*queues: list[StoredMessage], begin: int = 0) -> MemoryCluster:
    return MemoryCluster({QUEUES[i]: MemoryQueue(messages, begin) for i, messages in enumerate(queues)})


def offsets(found: ScanResult) -> list[int]:
    return [int(offset) for offset in found.hits[:, 0]]


def test_what_is_there_is_a_set_over_all_queues() -> None:
    item = open_range(1, 10, {0: 0, 1: 1})
    mine = lineage(item)
    cluster = cluster_of(
        [marked(0, mine, 9), marked(1, mine, 12), stored(2, b"foreign"), marked(3, mine, 12)],
        [marked(0, mine, 11), marked(1, mine, 10)],  # the first lies below the floor
    )
    found = search(cluster, item)[1]
    assert offsets(found) == [10, 12, 12]
    assert found.complete
    assert found.lowest_from(11) == {str(QUEUES[0]): 1}
    assert found.scanned[str(QUEUES[0])] == 4
    assert cluster.barriers == ["broker-a"]


def test_a_later_incarnation_stands_ahead_of_this_one() -> None:
    """What a restored ledger has forgotten of a log is found when it comes to the log's next file."""
    item = open_range(1, 0, {0: 0, 1: 0})
    mine = lineage(item)
    later = mine._replace(incarnation=mine.incarnation + 1)
    cluster = cluster_of(
        [marked(0, mine, 1), marked(1, later, 0), marked(2, later, 7), marked(3, mine, 120)], [marked(0, mine, 2)]
    )
    cluster.slices_a_read = 2
    while item.found is None or not item.found.complete:
        item = replace(item, found=search(cluster, item)[1])
    found = item.found
    assert offsets(found)[:2] == [1, 2]
    assert found.lowest_from(100) == {str(QUEUES[0]): 1}
    assert ScanResult.decode(found.encode()).later == found.later == {str(QUEUES[0]): 1}
    after = found.onward(100, 200)
    assert after is not None
    assert after.lowest_from(200) == {str(QUEUES[0]): 1}


def test_what_has_the_same_name_under_another_number_may_be_there_twice() -> None:
    """A restored ledger may count a log's files otherwise, or its file may have been cut: nobody can tell which."""
    item = open_range(1, 10, {0: 0})
    item = replace(item, range=replace(item.range, evidence={ORIGIN: "uIRDT3zr"}))
    mine = lineage(item)
    under_another = mine._replace(incarnation=mine.incarnation + 2)
    cluster = cluster_of([marked(n, under_another, offset) for n, offset in enumerate((9, 10, 11, 200))])
    found = search(cluster, item)[1]
    assert (offsets(found), found.possible_duplicates) == ([], 2)
    assert found.lowest_from(110) == {str(QUEUES[0]): 3}


def test_one_scan_serves_all_ranges_each_from_its_floor() -> None:
    first, second = open_range(1, 0, {0: 0}), open_range(2, 0, {0: 2}, key="in/b/1")
    cluster = cluster_of(
        [
            marked(0, lineage(second), 5),
            marked(1, lineage(first), 1),
            marked(2, lineage(second), 6),
        ]
    )
    found = search(cluster, first, second)
    assert (offsets(found[1]), offsets(found[2])) == ([1], [6])


def test_slices_go_on_where_the_last_one_stopped() -> None:
    item = open_range(1, 0, {0: 0})
    cluster = cluster_of([marked(n, lineage(item), n) for n in range(5)])
    cluster.slices_a_read = 2
    seen: list[tuple[int, bool]] = []
    while item.found is None or not item.found.complete:
        item = replace(item, found=search(cluster, item)[1])
        assert item.found is not None
        seen.append((len(item.found.hits), item.found.complete))
    assert seen == [(2, False), (4, False), (5, True)]


def test_what_was_settled_and_stands_there_again_is_surplus() -> None:
    item = open_range(1, 10, {0: 1})
    mine = lineage(item)
    cluster = cluster_of([marked(0, mine, 9), marked(1, mine, 9), marked(2, mine, 10), marked(3, mine, 10)])
    found = search(cluster, item)[1]
    assert (offsets(found), found.late) == ([10, 10], 1)
    assert found.duplicates(10) == 1
    assert found.duplicates(11) == 2


def test_what_was_given_up_and_stands_before_the_range_is_no_surplus() -> None:
    """After an abandoned range its records stand behind the floor, once."""
    item = open_range(1, 10, {0: 0})
    ahead = tuple(floor._replace(ahead=True) for floor in item.floors)
    found = search(cluster_of([marked(0, lineage(item), 9)]), replace(item, floors=ahead))[1]
    assert found.duplicates(11) == 0


def test_an_empty_stretch_is_complete_at_once() -> None:
    found = search(cluster_of([stored(0, b"x")]), open_range(1, 0, {0: 1}))[1]
    assert (found.complete, len(found.hits)) == (True, 0)


def test_floors_of_another_topic_are_not_looked_at() -> None:
    item = open_range(1, 0, {0: 0})
    elsewhere = Floor(item.range.partition.id, "old/broker-a/0", 7)
    found = search(cluster_of([marked(0, lineage(item), 1)]), replace(item, floors=(*item.floors, elsewhere)))[1]
    assert offsets(found) == [1]


def test_a_queue_that_ends_before_the_floor_lost_messages() -> None:
    with pytest.raises(TargetChanged, match="ends at 1, before 5"):
        search(cluster_of([stored(0, b"x")]), open_range(1, 0, {0: 5}))


def test_expired_messages_do_not_matter_when_an_earlier_one_of_ours_is_left() -> None:
    item = open_range(1, 10, {0: 0})
    cluster = cluster_of([marked(n, lineage(item), n + 4) for n in range(3, 9)], begin=3)
    assert offsets(search(cluster, item)[1]) == [10, 11, 12]


def why_unknown(found: ScanResult) -> str:
    assert found.failure
    error = found.failure.as_error()
    assert isinstance(error, TargetChanged)
    return str(error)


def test_what_nobody_can_say_of_one_range_is_said_of_the_others() -> None:
    """In one queue: of the first one what came before the oldest message is not known."""
    unknown, known = open_range(1, 10, {0: 0}), open_range(2, 20, {0: 5}, "in/b/1")
    cluster = cluster_of([marked(5, lineage(unknown), 11), marked(6, lineage(known), 20)], begin=5)
    found = search(cluster, unknown, known)
    assert "deleted by retention" in why_unknown(found[1])
    assert (offsets(found[2]), found[2].complete, found[2].failure) == ([20], True, None)


@pytest.mark.parametrize("first_left", [11, None], ids=["later ones are left", "none is left"])
def test_expired_messages_that_may_have_been_of_the_range_put_it_aside(first_left: int | None) -> None:
    item = open_range(1, 10, {0: 0})
    left = [marked(5, lineage(item), first_left)] if first_left else [stored(5, b"foreign")]
    assert "deleted by retention" in why_unknown(search(cluster_of(left, begin=5), item)[1])


@pytest.mark.parametrize("before", [[], [10], [10, 11]], ids=["all", "the first is left", "the first two are left"])
@pytest.mark.parametrize("behind", [13, None], ids=["later ones are left", "none is left"])
def test_messages_that_are_deleted_while_a_queue_is_scanned_may_have_been_of_the_range(
    before: list[int], behind: int | None
) -> None:
    """The queue's oldest offset was asked for before that."""
    item = open_range(1, 10, {0: 0})
    left = [marked(n, lineage(item), offset) for n, offset in enumerate(before)]
    last = stored(5, b"foreign") if behind is None else marked(5, lineage(item), behind)
    assert "deleted by retention" in why_unknown(search(cluster_of([*left, last]), item)[1])
    again = search(cluster_of([*left, last]), item, on_unknown="redeliver")[1]
    if behind is None:
        assert (offsets(again), again.possible_duplicates) == (before, 5 - len(before))
    else:
        assert "change their order" in why_unknown(again)


def test_an_answer_without_messages_is_a_hole() -> None:
    """Of a broker that deletes what it is asked for."""
    gone = StoredSlice(2, 7, memoryview(b""), "removed")
    assert list(finding._decoded([gone], QUEUES[0])) == [finding.Hole(2, 7)]


def test_a_hole_behind_what_is_looked_for_is_counted_from_the_floor_on() -> None:
    item = open_range(1, 10, {0: 3})
    messages = [stored(0, b"foreign"), stored(6, b"foreign")]
    assert search(cluster_of(messages), item, on_unknown="redeliver")[1].possible_duplicates == 3


@pytest.mark.parametrize(("begin", "repeats"), [(5, 5), (500, 100)], ids=["few", "more than the range has"])
def test_a_range_that_is_delivered_again_tells_how_much_of_it_may_be_there_twice(begin: int, repeats: int) -> None:
    item = open_range(1, 10, {0: 0})
    cluster = cluster_of([stored(begin, b"foreign")], begin=begin)
    found = search(cluster, item, on_unknown="redeliver")[1]
    assert (found.complete, offsets(found), found.possible_duplicates) == (True, [], repeats)
    again = search(cluster, replace(item, found=found), on_unknown="redeliver")[1]
    assert again.possible_duplicates == repeats, "the next attempt goes on behind what was looked at"


def test_a_range_of_which_later_messages_are_left_is_not_delivered_again() -> None:
    item = open_range(1, 10, {0: 0})
    found = search(cluster_of([marked(5, lineage(item), 11)], begin=5), item, on_unknown="redeliver")[1]
    assert "change their order" in why_unknown(found)


def test_what_is_not_known_adds_up_from_slice_to_slice() -> None:
    item = open_range(1, 10, {0: 0})
    cluster = cluster_of([stored(n, b"foreign") for n in range(5, 9)], begin=5)
    cluster.slices_a_read = 1
    while item.found is None or not item.found.complete:
        item = replace(item, found=search(cluster, item, on_unknown="redeliver")[1])
    assert item.found.possible_duplicates == 5


def test_a_doubt_is_kept_from_slice_to_slice() -> None:
    item = open_range(1, 10, {0: 0})
    cluster = cluster_of([stored(5, b"x"), stored(6, b"y"), marked(7, lineage(item), 11)], begin=5)
    cluster.slices_a_read = 1
    item = replace(item, found=search(cluster, item)[1])
    item = replace(item, found=search(cluster, item)[1])
    assert "deleted by retention" in why_unknown(search(cluster, item)[1])


ALARMS = Queue("alarms", "broker-a", 0)


def ruled_range(begin: int, floors: dict[Queue, int]) -> OpenRange:
    """By partition: one queue in each topic."""
    item = open_range(1, begin, {})
    pins = with_rules(PINS, {"alarms": {"queues": [["broker-a", 0]]}})
    wanted = replace(item.range, pins=replace(item.range.pins, target=pins))
    stand = tuple(Floor(wanted.partition.id, str(queue), position) for queue, position in floors.items())
    return replace(item, range=wanted, floors=stand)


def test_outputs_are_looked_for_in_all_topics_that_rules_name() -> None:
    item = ruled_range(10, {QUEUES[0]: 0, ALARMS: 1})
    mine = lineage(item)
    cluster = MemoryCluster(
        {
            QUEUES[0]: MemoryQueue([marked(0, mine, 10, outputs=2), marked(1, mine, 11)], 0),
            ALARMS: MemoryQueue([marked(0, mine, 9), marked(1, mine, 10, ordinal=1, outputs=2)], 0),
        }
    )
    found = search(cluster, item)[1]
    assert found.hits[:, :2].tolist() == [[10, 0], [10, 1], [11, 0]]
    assert (found.whole().tolist(), found.spread) == ([10, 11], (str(QUEUES[0]), str(ALARMS)))


def test_with_rules_one_queue_is_as_doubtful_as_several() -> None:
    """The last record in it may lack an output."""
    item = ruled_range(10, {QUEUES[0]: 0})
    item = replace(item, range=replace(item.range, pins=replace(item.range.pins, target=PINS | {"to": {}})))
    found = search(cluster_of([marked(0, lineage(item), 10, outputs=2)]), item)[1]
    assert (found.spread, found.doubtful_from(10, 11)) == ((str(QUEUES[0]),), 10)


def test_a_later_output_of_the_first_record_does_not_tell_that_nothing_was_deleted_before_it() -> None:
    item = ruled_range(10, {QUEUES[0]: 0})
    messages = [marked(3, lineage(item), 10, ordinal=1, outputs=2)]
    assert "deleted by retention" in why_unknown(search(cluster_of(messages, begin=3), item)[1])


def torn_at(message: StoredMessage, left: int) -> StoredMessage:
    """Its properties, of which so many bytes were written when the broker died."""
    return message._replace(properties=message.properties[:left].ljust(len(message.properties), b"\0"))


def own_properties(mine: Lineage, position: int, offset: int) -> StoredMessage:
    [text] = MessageMarker(mine).by_column(records([b"x"], first_offset=offset)).to_pylist()
    return stored(position, b"x", text)


@given(st.integers(0, 120), st.booleans())
def test_a_message_that_was_torn_is_surplus(left: int, settled: bool) -> None:
    """Wherever it was torn: the record is delivered again."""
    item = open_range(1, 10, {0: 0})
    if not settled:
        item = replace(item, floors=tuple(floor._replace(ahead=True) for floor in item.floors))
    mine = lineage(item)
    torn = own_properties(mine, 1, 11)
    torn = torn_at(torn, min(left, len(torn.properties) - 1))
    found = search(cluster_of([own_properties(mine, 0, 10), torn, own_properties(mine, 2, 11)]), item)[1]
    assert offsets(found) == [10, 11]
    assert (found.duplicates(12), found.possible_duplicates) == (1, 0)


def test_a_torn_message_of_nobody_knows_whom_may_be_a_repeat() -> None:
    item = open_range(1, 10, {0: 0})
    torn = torn_at(own_properties(lineage(item), 1, 10), 0)
    found = search(cluster_of([stored(0, b"foreign"), torn]), item)[1]
    assert (found.duplicates(12), found.possible_duplicates) == (0, 1)


def test_a_torn_message_of_another_lineage_does_not_concern_a_range() -> None:
    item, other = open_range(1, 10, {0: 0}), open_range(2, 10, {0: 0}, key="in/b/1")
    torn = torn_at(own_properties(lineage(other), 0, 10), 60)
    found = search(cluster_of([torn]), item, other)
    assert [(found[n].late, found[n].possible_duplicates) for n in (1, 2)] == [(0, 0), (1, 0)]


def test_a_torn_message_that_ended_up_before_what_is_looked_at_is_not_counted_again() -> None:
    item = open_range(1, 10, {0: 1})
    found = search(cluster_of([torn_at(own_properties(lineage(item), 0, 10), 40), stored(1, b"foreign")]), item)[1]
    assert (found.late, found.possible_duplicates) == (0, 0)


def test_what_stands_behind_a_range_is_kept_apart() -> None:
    """With the range only the lowest of it: the next ranges take their parts of the rest."""
    item = open_range(1, 0, {0: 0})
    mine = lineage(item)
    cluster = cluster_of([marked(n, mine, n) for n in range(350)])
    found = search(cluster, item)[1]
    assert offsets(found) == list(range(101))
    assert (found.there(), found.lowest_from(100)) == (350, {str(QUEUES[0]): 100})
    following = found.onward(100, 200)
    assert following is not None
    assert (offsets(following), following.there()) == (list(range(100, 201)), 250)
    last = following.onward(300, 400)
    assert last is not None
    assert (offsets(last), last.there(), last.further.pieces) == (list(range(300, 350)), 50, ())
    assert last.scanned == found.scanned
