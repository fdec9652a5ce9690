"""A target queue that has something else where our last message stood is told before anything is skipped or written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from connect_core.clock import now_ns
from connect_core.errors import TargetChanged, Unreachable, WaybillError
from connect_core.rocketmq import (
    Acknowledged,
    NotSupported,
    PermissionRefused,
    StoredMessage,
    StoreStatus,
    TopicConfig,
)
from connect_core.rocketmq.wire.commands import PERM_READ
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.values import Attempt, Bounds, Floor, Limit, OpenRange
from connect_core.systems.rocketmq.appending import QueueAppender
from connect_core.systems.rocketmq.routing import kept_homes, pins_of
from connect_core.systems.rocketmq.standing import evidence_found, evidence_of
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored
from tests.unit.systems.rocketmq.test_rocketmq_finding import lineage, open_range, search
from tests.unit.systems.rocketmq.test_rocketmq_floors import QUEUES, SOURCE, Sink, wanted
from tests.unit.systems.rocketmq.test_rocketmq_marking import marked

ITEM = open_range(1, 0, {0: 3})


def ours(position: int, log: int = 0) -> Any:
    """At that place of a broker's log."""
    return marked(position, lineage(ITEM), position)._replace(physical_offset=1_000 * log + position)


class Topic(MemoryCluster):
    """One queue, with all that `targets` asks for."""

    registered: dict[str, str] = {"broker-a": "a:1"}  # noqa: RUF012  never changed
    config: TopicConfig | None = None
    """What a broker says that is not in the route."""

    @property
    def topics(self) -> Any:
        return self

    @property
    def brokers(self) -> Any:
        return self

    def exists(self, topic: str) -> bool:
        return True

    def write_queues(self, topic: str) -> list[Any]:
        return QUEUES[:1]

    def masters(self) -> dict[str, str]:
        return self.registered

    def config_on(self, topic: str, broker: str) -> TopicConfig | None:
        return self.config

    def settings(self, broker: str) -> dict[str, str]:
        return {}

    def sender(self, queue: Any) -> None:
        """Nothing is sent here."""


def topic(*messages: Any, begin: int = 0) -> Topic:
    return Topic({QUEUES[0]: MemoryQueue(list(messages), begin)})


def floor_at(position: int, message: Any, *, with_id: bool = True) -> Floor:
    last_id = message.offset_message_id if with_id else ""
    evidence = evidence_of(Acknowledged(QUEUES[0], message.queue_offset, 1, StoreStatus.OK, last_id))
    return Floor(ITEM.range.partition.id, str(QUEUES[0]), position, evidence=evidence)


@pytest.mark.parametrize("with_id", [True, False])
def test_what_was_delivered_stands_there(with_id: bool) -> None:
    cluster = topic(*map(ours, range(3)), stored(3, b"of others"))
    Sink(cluster).targets(0, [floor_at(3, ours(2), with_id=with_id)], {"": 1})


@pytest.mark.parametrize("with_id", [True, False])
def test_a_topic_that_others_have_filled_past_the_floor_is_another_one(with_id: bool) -> None:
    cluster = topic(*(stored(n, b"of others") for n in range(9)))
    with pytest.raises(TargetChanged, match="that was delivered at 2 is no longer in the queue") as raised:
        Sink(cluster).targets(0, [floor_at(3, ours(2), with_id=with_id)], {"": 1})
    assert raised.value.where == str(QUEUES[0])


def test_a_copy_of_ours_at_another_place_of_the_log_is_not_what_was_delivered() -> None:
    with pytest.raises(TargetChanged):
        Sink(topic(*(ours(n, log=1) for n in range(9)))).targets(0, [floor_at(3, ours(2))], {"": 1})


def test_a_message_that_has_expired_tells_nothing() -> None:
    Sink(topic(stored(7, b"of others"), begin=7)).targets(0, [floor_at(3, ours(2))], {"": 1})


def test_a_queue_that_begins_behind_what_has_not_expired_is_another_one() -> None:
    """A broker lets a queue begin with the first message that it indexes there, and that may be any of a topic that was
    made anew."""
    cluster = topic(*(stored(n, b"of others") for n in range(7, 9)), begin=7)
    cluster.deleted = [ours(2)]
    with pytest.raises(TargetChanged, match="and it has not expired"):
        Sink(cluster).targets(0, [floor_at(3, ours(2))], {"": 1})


@pytest.mark.parametrize("error", [NotSupported, PermissionRefused])
def test_where_a_broker_shows_nothing_of_its_log_nobody_can_tell(error: type[WaybillError]) -> None:
    class Silent(Topic):
        def with_id(self, broker: str, message_id: str) -> StoredMessage | None:
            raise error("not this one", where=broker)

    cluster = Silent({QUEUES[0]: MemoryQueue([stored(7, b"of others")], 7)})
    Sink(cluster).targets(0, [floor_at(3, ours(2))], {"": 1})


def test_a_floor_of_before_that_keeps_nothing_is_not_compared() -> None:
    floor = Floor(SOURCE.id, str(QUEUES[0]), 3)
    Sink(topic(*(stored(n, b"of others") for n in range(9)))).targets(0, [floor], {"": 1})


def test_where_that_is_tolerated_only_what_was_delivered_before_begins_anew() -> None:
    """A partition that has written since the topic was made anew keeps its floor."""
    cluster = topic(stored(0, b"of others"), ours(1, log=1), *(stored(n, b"of others") for n in range(2, 9)))
    sink = Sink(cluster, on_replaced="continue")
    old = replace_partition(floor_at(3, ours(2)), SOURCE.id)
    new = floor_at(2, ours(1, log=1))
    sink.targets(0, [old, new], {"": 1})
    [begun] = sink.floors(wanted("partition"), [old])
    assert (begun.position, begun.ahead, begun.evidence) == (0, True, {})
    [kept] = sink.floors(replace(wanted("partition"), partition=ITEM.range.partition), [new])
    assert kept == new


def replace_partition(floor: Floor, partition_id: str) -> Floor:
    return floor._replace(partition_id=partition_id)


def test_a_partition_that_was_idle_is_told_of_when_another_one_has_written_since() -> None:
    """The newest message of the queue stands, the older one of another partition does not."""
    cluster = topic(*(stored(n, b"of others") for n in range(9)), ours(9, log=1))
    idle, busy = replace_partition(floor_at(3, ours(2)), SOURCE.id), floor_at(10, ours(9, log=1))
    with pytest.raises(TargetChanged, match="that was delivered at 2 is no longer in the queue"):
        Sink(cluster).targets(0, [idle, busy], {"": 2})
    there = topic(*map(ours, range(3)), *(stored(n, b"of others") for n in range(3, 9)), ours(9, log=1))
    Sink(there).targets(0, [idle, busy], {"": 2})
    expired = topic(*(stored(n, b"of others") for n in range(5, 9)), ours(9, log=1), begin=5)
    Sink(expired).targets(0, [idle, busy], {"": 2})


def test_where_that_is_tolerated_an_idle_partition_begins_anew_as_well() -> None:
    """Else its next range would be looked for from a place of the former topic, and never be finished."""
    sink = Sink(topic(*(stored(n, b"of others") for n in range(9)), ours(9, log=1)), on_replaced="continue")
    idle = replace_partition(floor_at(3, ours(2)), SOURCE.id)
    sink.targets(0, [idle, floor_at(10, ours(9, log=1))], {"": 2})
    [begun] = sink.floors(wanted("partition"), [idle])
    assert (begun.position, begun.ahead, begun.evidence) == (0, True, {})


def test_where_that_is_tolerated_so_does_one_that_the_shorter_topic_has_passed() -> None:
    """The new topic ends before the floor of one partition and behind that of another."""
    sink = Sink(topic(*(stored(n, b"of others") for n in range(5))), on_replaced="continue")
    passed = replace_partition(floor_at(3, ours(2)), SOURCE.id)
    sink.targets(0, [passed, floor_at(10, ours(9))], {"": 2})
    [begun] = sink.floors(wanted("partition"), [passed])
    assert (begun.position, begun.ahead, begun.evidence) == (0, True, {})


def lane_of(cluster: Topic, item: OpenRange, on_replaced: str = "fail") -> QueueAppender:
    """What a lane writes with, as the sink opens it for a range of one queue."""
    sink = Sink(cluster, on_replaced=on_replaced)
    with sink._appender(cluster.client, QUEUES[0], lineage(item), item) as appender:
        return appender


def settled_at(message: Any) -> OpenRange:
    return replace(ITEM, floors=(floor_at(message.queue_offset + 1, message),))


def in_time() -> Limit:
    return Limit(now_ns() + 60_000_000_000, now_ns() + 60_000_000_000)


def test_a_topic_that_is_made_anew_while_a_range_is_written_ends_it() -> None:
    """What was settled before, what was found of the range, and the first of what was written: each tells."""
    found = replace(ITEM, found=ScanResult().merged([(0, 0, str(QUEUES[0]), 1)], {str(QUEUES[0]): 3}, True))
    for item in (settled_at(ours(2)), found):
        cluster = topic(*map(ours, range(3)))
        appender = lane_of(cluster, item)
        appender.look(in_time())
        cluster.queues[QUEUES[0]] = MemoryQueue([stored(n, b"of others") for n in range(9)])
        with pytest.raises(TargetChanged, match="is no longer in the queue"):
            appender.look(in_time())
        lane_of(cluster, item, "continue").look(in_time())


@pytest.mark.parametrize("on_replaced", ["fail", "continue"])
def test_an_open_range_of_a_topic_that_was_made_anew_is_not_looked_for_in_the_new_one(on_replaced: str) -> None:
    """Its floor is a place of the former topic: what was written since may stand before it."""
    sink = Sink(topic(*(stored(n, b"of others") for n in range(9))), on_replaced=on_replaced)
    with pytest.raises(TargetChanged, match="that was delivered at 2"):
        sink.scan(Scan(Attempt("u", 1), (settled_at(ours(2)),), 5.0))


def test_of_a_first_range_the_new_topic_lacks_what_the_former_one_held_and_that_is_delivered_again() -> None:
    """The worker was killed after it had written to both: no place is remembered, and nothing of the range is lost."""
    first = open_range(1, 0, {0: 0})
    others = [stored(n, b"of others") for n in range(3)]
    later = [marked(position, lineage(first), offset) for position, offset in enumerate(range(5, 10), 3)]
    found = search(topic(*others, *later), first)[1]
    assert (found.complete, found.failure, found.late, found.possible_duplicates) == (True, None, 0, 0)
    assert found.present(np.arange(10), None).tolist() == [False] * 5 + [True] * 5


class FilledMeanwhile(Topic):
    """Others write to it while somebody waits for what is under way."""

    def barrier(self, broker: str, *, deadline: float) -> None:
        there = self.queues[QUEUES[0]]
        there.messages += [stored(n, b"of others") for n in range(there.end, 9)]


@pytest.mark.parametrize("on_replaced", ["fail", "continue"])
def test_a_topic_that_was_made_anew_is_told_though_others_fill_it_only_while_it_is_looked_into(
    on_replaced: str,
) -> None:
    """What a former attempt wrote to it stands before the floor, where nobody looks."""
    cluster = FilledMeanwhile({QUEUES[0]: MemoryQueue([stored(0, b"of others"), ours(1, log=1)])})
    sink = Sink(cluster, on_replaced=on_replaced)
    with pytest.raises(TargetChanged, match="that was delivered at 2"):
        sink.scan(Scan(Attempt("u", 1), (settled_at(ours(2)),), 5.0))


def test_what_was_written_first_must_stand_when_the_range_ends() -> None:
    cluster = topic(*map(ours, range(3)))
    appender = lane_of(cluster, replace(ITEM, found=None))
    appender._count(Acknowledged(QUEUES[0], 3, 1, StoreStatus.OK, ours(3).offset_message_id))
    cluster.queues[QUEUES[0]] = MemoryQueue([stored(n, b"of others") for n in range(9)])
    appender._count(Acknowledged(QUEUES[0], 9, 1, StoreStatus.OK))
    appender._foreign = []
    with pytest.raises(TargetChanged, match="that was delivered at 3"):
        appender.look(in_time())


def test_a_queue_that_begins_within_what_was_written_is_another_one() -> None:
    """A part of a batch that the broker indexed after it had deleted the topic begins the new one: that stands, and
    what was settled before it went with the topic."""
    cluster = topic(*map(ours, range(3)))
    appender = lane_of(cluster, settled_at(ours(2)))
    appender._count(Acknowledged(QUEUES[0], 3, 2, StoreStatus.OK, ours(4).offset_message_id))
    cluster.queues[QUEUES[0]] = MemoryQueue([ours(4), *(stored(n, b"of others") for n in range(5, 9))], 4)
    appender.look(in_time())
    cluster.deleted = [ours(2)]
    with pytest.raises(TargetChanged, match="that was delivered at 2"):
        appender.look(in_time())


class Late(MemoryQueue):
    """Only the first `seen` of it can be seen before somebody has asked for its end twice."""

    def __init__(self, *messages: StoredMessage, seen: int = 0) -> None:
        super().__init__([])
        self._stored, self._seen, self._asked = messages, seen, 0

    @property
    def end(self) -> int:
        self._asked += 1
        self.messages = list(self._stored if self._asked > 1 else self._stored[: self._seen])
        return super().end


def test_what_cannot_be_seen_yet_is_waited_for_before_anybody_says_that_ours_stands_there() -> None:
    cluster = topic(*map(ours, range(3)))
    appender = lane_of(cluster, settled_at(ours(2)))
    appender._count(Acknowledged(QUEUES[0], 3, 1, StoreStatus.OK, ours(3).offset_message_id))
    cluster.queues[QUEUES[0]] = Late(*(stored(n, b"of others") for n in range(9)))
    appender._count(Acknowledged(QUEUES[0], 9, 1, StoreStatus.OK))
    with pytest.raises(TargetChanged, match="that was delivered at 2"):
        appender.look(in_time())


@pytest.mark.parametrize("seen", [3, 5])
def test_all_of_the_first_batch_is_waited_for(seen: int) -> None:
    """Nothing older of ours tells, and a part of the place where that batch stood can be seen already."""
    cluster = topic(*(stored(n, b"of others") for n in range(3)))
    appender = lane_of(cluster, replace(ITEM, found=None, floors=(Floor(ITEM.range.partition.id, str(QUEUES[0]), 3),)))
    appender._count(Acknowledged(QUEUES[0], 3, 4, StoreStatus.OK, ours(6).offset_message_id))
    cluster.queues[QUEUES[0]] = Late(*(stored(n, b"of others") for n in range(9)), ours(9, log=1), seen=seen)
    appender._count(Acknowledged(QUEUES[0], 9, 1, StoreStatus.OK, ours(9, log=1).offset_message_id))
    with pytest.raises(TargetChanged, match="that was delivered at 6"):
        appender.look(in_time())


def test_a_queue_that_goes_back_while_it_is_written_ends_the_range() -> None:
    appender = lane_of(topic(*map(ours, range(3))), settled_at(ours(2)))
    with pytest.raises(TargetChanged, match="ends at 1, before 3"):
        appender._count(Acknowledged(QUEUES[0], 1, 1, StoreStatus.OK))
    tolerant = lane_of(topic(*map(ours, range(3))), settled_at(ours(2)), "continue")
    tolerant._count(Acknowledged(QUEUES[0], 1, 1, StoreStatus.OK))


@pytest.mark.parametrize("begin", [0, 50])
def test_a_late_request_that_a_floor_was_moved_past_is_surplus(begin: int) -> None:
    """Settled up to 100; then a broker stores 60 messages that it had kept of a dead attempt. They count once."""
    item = range_of(SOURCE, Bounds(0, 100, 0, 200), pins=pins_of("out", QUEUES[:1], "partition"))
    numbers = [*range(begin, 100), *range(40, 100)]
    messages = [marked(place, item.lineage("u"), number) for place, number in enumerate(numbers, begin)]
    cluster = Topic({QUEUES[0]: MemoryQueue(messages, begin)})
    sink = Sink(cluster)
    floors = sink.floors(item, [Floor(SOURCE.id, str(QUEUES[0]), 100)])
    assert floors[0].position == (160 if begin else 100)
    again = OpenRange(1, item, sink.floors(item, floors))
    assert again.floors == floors
    assert surplus_of(cluster, again) == 60
    cluster.queues[QUEUES[0]].messages.pop()
    found = sink.scan(Scan(Attempt("u", 1), (again,), 5.0))[1]
    assert found.duplicates(200) + surplus_of(cluster, replace(again, found=found)) == 60


def surplus_of(cluster: Topic, item: OpenRange) -> int:
    """What a lane counts that writes one message of the range."""
    sink, queue, line = Sink(cluster), cluster.queues[QUEUES[0]], item.range.lineage("u")
    with sink._connecting.client() as client, sink._appender(client, QUEUES[0], line, item) as appender:
        appender._count(Acknowledged(QUEUES[0], queue.end, 1, StoreStatus.OK))
        queue.messages.append(marked(queue.end, line, item.range.begin))
        appender.look(in_time())
        return appender.duplicates


def test_what_was_found_is_recognised_later_too() -> None:
    found = ScanResult().merged([(0, 0, "a", 7), (1, 0, "a", 9), (2, 0, "b", 4)], {}, True)
    item: OpenRange = replace(ITEM, found=found)
    assert evidence_found(item) == {"a": {"at": 9}, "b": {"at": 4}}
    assert evidence_found(ITEM) == {}


def test_a_broker_that_is_away_is_waited_for_and_one_that_has_no_queue_left_is_a_change() -> None:
    """The name server forgets a broker that does not answer, and the queues that it has."""
    away = Floor(SOURCE.id, "out/broker-b/0", 3)
    cluster = topic(ours(0))
    with pytest.raises(Unreachable, match="A broker is away: broker-b"):
        Sink(cluster).targets(0, [away], {"": 1})
    cluster.registered = {"broker-a": "a:1", "broker-b": "b:1"}
    cluster.config = TopicConfig("out", 1, 1)
    with pytest.raises(Unreachable, match="registered a moment ago"):
        Sink(cluster).targets(0, [away], {"": 1})
    for gone in (None, TopicConfig("out", 1, 0), TopicConfig("out", 1, 1, PERM_READ)):
        cluster.config = gone
        with pytest.raises(TargetChanged, match="no longer in the topic's route"):
            Sink(cluster).targets(0, [away], {"": 1})


def test_a_partition_whose_queue_is_gone_is_told_apart_and_the_others_go_on() -> None:
    """So that its records stay in order. A person may let it be given another queue."""
    gone = Floor(SOURCE.id, str(QUEUES[2]), 0)
    cluster = topic()
    cluster.queues[QUEUES[2]] = MemoryQueue([])
    told = Sink(cluster).targets(0, [gone, Floor("other", str(QUEUES[0]), 0)], {"": 2})
    assert told.gone.keys() == {SOURCE.id}
    assert isinstance(told.gone[SOURCE.id].as_error(), TargetChanged)
    assert told.by_partition == {"other": {"home": {"out": ["broker-a", 0]}}}
    sink = Sink(cluster, on_replaced="continue")
    assert not sink.targets(0, [gone], {"": 1}).gone


THREE = pins_of("out", QUEUES, "partition")


def test_a_restored_ledger_looks_for_a_partition_in_every_queue_and_it_goes_on_where_it_is_found() -> None:
    """The topic had fewer queues when the partition was dealt one of them, and the ledger has forgotten which."""
    item = replace(range_of(SOURCE, Bounds(0, 0, 0, 50), pins=THREE), slot=2)
    there = [marked(place, item.lineage("u"), place) for place in range(4)]
    cluster = MemoryCluster({QUEUES[0]: MemoryQueue(there), QUEUES[1]: MemoryQueue([]), QUEUES[2]: MemoryQueue([])})
    sink = Sink(cluster)
    assert [floor.target for floor in sink.floors(item, ())] == [str(QUEUES[2])]
    floors = sink.floors(item, (), restored=True)
    assert {floor.target for floor in floors} == {*map(str, QUEUES)}
    found = sink.scan(Scan(Attempt("u", 1), (OpenRange(1, item, floors),), 5.0))[1]
    home = sink.home_found(OpenRange(1, item, floors, found=found))
    assert home == {"home": {"out": ["broker-a", 0]}}
    again = replace(item, pins=replace(item.pins, target={**THREE, **home}))
    assert sink.home_found(OpenRange(1, again, floors, found=found)) is None
    assert [floor.target for floor in sink.floors(again, floors, restored=True)] == [str(QUEUES[0])]
    settled = [floor._replace(evidence={"at": 3}) if floor.target == str(QUEUES[0]) else floor for floor in floors]
    assert kept_homes(settled, {"out": THREE}) == {SOURCE.id: {"out": QUEUES[0]}}


def test_by_key_every_queue_is_looked_through_anyway() -> None:
    item = replace(range_of(SOURCE, Bounds(0, 0, 0, 50), pins=pins_of("out", QUEUES, "key")), slot=2)
    there = MemoryCluster({queue: MemoryQueue([]) for queue in QUEUES})
    assert len(Sink(there).floors(item, (), restored=True)) == len(QUEUES)
