"""Consumer groups of a replicated topic go on at the target: nothing skipped, repeats counted."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from connect_core.rocketmq import Client, ClientOptions, Queue
from connect_core.rocketmq.network import Network, accepted
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command
from tests.faults.kit.journeys import database_of
from tests.faults.kit.processes import ended
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import fill
from tests.faults.rows import FaultRow
from tests.site import Site
from tests.system.replication.test_topics import NAME, both, connector, read, stored

pytestmark = pytest.mark.server

HEART_BEAT = 34


@pytest.fixture
def client(site: Site) -> Iterator[Client]:
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as opened:
        yield opened


def group_at(client: Client, site: Site, topic: str, offsets: list[int]) -> str:
    group = f"billing-{site.topic}"
    client.groups.create(group)
    for queue, offset in zip(client.topics.read_queues(topic), offsets, strict=True):
        client.groups.commit(group, queue, offset)
    return group


def test_each_queue_goes_on_at_the_copy_of_its_next_message(site: Site, client: Client) -> None:
    source, target = f"{site.topic}-in", f"{site.topic}-out"
    for begin in (0, 60):  # two runs: two receipts a queue
        stored(site, source, 2, count=60, begin=begin)
        connector(site, {"topics": [source]}, {"topic": target, "queues": 2, "order": "queue"})
        site.waybill("run", NAME)
    group = group_at(client, site, source, [0, 75])
    told = site.json("groups", "translate", NAME, group)
    assert [one["repeats"] for one in told["offsets"]] == [0, 0]
    assert not told["applied"]
    queues = client.topics.read_queues(target)
    assert [client.groups.committed(group, queue) for queue in queues] == [None, None]
    assert "written for" in site.waybill("groups", "translate", NAME, group, "--apply")
    assert [client.groups.committed(group, queue) for queue in queues] == [0, 75]
    assert next_body(client, group, queues[1]) == b"%s 1 75" % source.encode()


def test_queues_that_share_one_go_on_at_the_earliest(site: Site, client: Client) -> None:
    source, target = f"{site.topic}-in", f"{site.topic}-out"
    stored(site, source, 2, count=50)
    connector(site, {"topics": [source]}, {"topic": target, "queues": 1})
    site.waybill("run", NAME)
    group = group_at(client, site, source, [10, 40])
    site.waybill("groups", "translate", NAME, group, "--apply")
    (queue,) = client.topics.read_queues(target)
    offset = client.groups.committed(group, queue)
    assert offset is not None
    left = read(client, queue, offset, client.offsets.end(queue))
    for number, begin in enumerate((10, 40)):
        assert {b"%s %d %d" % (source.encode(), number, n) for n in range(begin, 50)} <= set(left)
    (told,) = site.json("groups", "translate", NAME, group)["offsets"]
    assert len(left) - (40 + 10) <= told["repeats"] <= 100


def test_a_group_that_is_ahead_of_replication_sees_the_rest_again(site: Site, client: Client) -> None:
    source = f"{site.topic}-in"
    stored(site, source, 1, count=20)
    connector(site, {"topics": [source]}, {"topic": f"{site.topic}-out", "queues": 1})
    site.waybill("run", NAME)
    stored(site, source, 1, count=5, begin=20)
    group = group_at(client, site, source, [25])
    told = site.json("groups", "translate", NAME, group)
    assert (told["queues"][0]["behind"], told["offsets"][0]["offset"], told["offsets"][0]["repeats"]) == (5, 20, 5)
    site.waybill("run", NAME)
    (again,) = site.json("groups", "translate", NAME, group)["offsets"]
    assert (again["offset"], again["repeats"]) == (25, 0)


def test_by_key_nothing_is_skipped_and_repeats_are_told(site: Site, client: Client) -> None:
    """The messages of a source queue lie in several target queues, each beside those of the other one."""
    source, target = f"{site.topic}-in", f"{site.topic}-out"
    bodies = [[b"%d %d" % (queue, n) for n in range(60)] for queue in range(2)]
    keys = [[b"KEYS\x01key-%d\x02" % (n % 7) for n in range(60)] for _ in range(2)]
    fill(site.name_servers, source, bodies, keys)
    connector(site, {"topics": [source]}, {"topic": target, "queues": 3, "order": "key"})
    site.waybill("run", NAME)
    group = group_at(client, site, source, [25, 40])
    told = site.json("groups", "translate", NAME, group, "--apply")
    left = bodies_from(client, group, target)
    unread = {*bodies[0][25:], *bodies[1][40:]}
    assert unread <= set(left)
    assert 0 < len(left) - len(unread) <= sum(one["repeats"] for one in told["offsets"])


def test_a_topic_that_the_group_does_not_consume_is_left_alone(site: Site, client: Client) -> None:
    consumed, other = f"{site.topic}-in", f"{site.topic}-other"
    for topic in (consumed, other):
        stored(site, topic, 1, count=10)
    connector(site, {"topics": [consumed, other]}, {"topic": "copy-{topic}", "queues": 1})
    site.waybill("run", NAME)
    group = group_at(client, site, consumed, [10])
    site.waybill("groups", "translate", NAME, group, "--apply")
    places = [client.topics.read_queues(f"copy-{topic}")[0] for topic in (consumed, other)]
    assert [client.groups.committed(group, queue) for queue in places] == [10, None]


def test_groups_are_kept_in_step_by_the_runs(site: Site, client: Client) -> None:
    """Forward only, as far as their messages are delivered, and never under connected consumers."""
    source, target = f"{site.topic}-in", f"{site.topic}-out"
    stored(site, source, 2, count=50)
    groups = {name: f"{name}-{site.topic}" for name in ("billing", "east-team", "stranger")}
    wanted = {"groups": [groups["billing"], f"*-team-{site.topic}", "nobody"]}
    connector(site, {"topics": [source]}, {"topic": target, "queues": 2, "order": "queue", **wanted})
    origin = client.topics.read_queues(source)
    for group in groups.values():
        consumed(client, group, origin, [10, 20])
    site.waybill("run", NAME)
    queues = client.topics.read_queues(target)

    def stands() -> dict[str, list[int | None]]:
        return {name: [client.groups.committed(group, queue) for queue in queues] for name, group in groups.items()}

    assert stands() == {"billing": [10, 20], "east-team": [10, 20], "stranger": [None, None]}

    consumed(client, groups["billing"], origin, [30, 5])  # an operator has set the second one back
    consumed(client, groups["east-team"], origin, [50, 50])
    with connected(site, groups["east-team"], target):
        said = both(site, "run", NAME)
    assert f"group {groups['billing']} was advanced in 1 queues of the target" in said
    assert said.count(f"group {groups['east-team']} was not changed at the target") == 1
    assert stands() == {"billing": [30, 20], "east-team": [10, 20], "stranger": [None, None]}

    stored(site, source, 2, count=10, begin=50)
    consumed(client, groups["billing"], origin, [60, 60])
    site.waybill("offsets", "set", NAME, str(origin[1]), "60")  # what is behind 50 there is not delivered
    site.waybill("run", NAME)
    assert stands() == {"billing": [60, 50], "east-team": [50, 50], "stranger": [None, None]}


@pytest.mark.fault
@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("executed", "before settle"),
        ("confirmed", "when nothing is left to move"),
        ("", "with one of two queues written"),
    ],
)
def test_groups_kept_in_step_survive_a_killed_driver(
    site: Site, client: Client, proxy: RocketMQProxy, step: str, when: str, row: FaultRow
) -> None:
    """The group is never ahead of what is delivered, and the next run puts it where it belongs."""
    row.describe(f"SIGKILL of the driver {when}; groups are kept in step", database=database_of(site))
    row.where = "RocketMQ → RocketMQ"
    source, target = f"{site.topic}-in", f"{site.topic}-out"
    stored(site, source, 2, count=50)
    group = f"billing-{site.topic}"
    sink = {"topic": target, "queues": 2, "order": "queue", "groups": [group], "name_servers": [proxy.address]}
    connector(site, {"topics": [source]}, sink)
    consumed(client, group, client.topics.read_queues(source), [10, 20])
    site.waybill("run", NAME)
    queues = client.topics.read_queues(target)

    def stands() -> list[int | None]:
        return [client.groups.committed(group, queue) for queue in queues]

    assert stands() == [10, 20]
    stored(site, source, 2, count=50, begin=50)
    consumed(client, group, client.topics.read_queues(source), [80, 90])
    if step:
        site.fault(step)
    else:
        proxy.set(Trap(tells(target), passes=1, forward=False, first=kill_sender))
    row.strikes()
    assert ended(site.start("run", NAME)) == -signal.SIGKILL
    client.barrier(queues[0].broker, deadline=time.monotonic() + 10)
    at, ends = stands(), [client.offsets.end(queue) for queue in queues]
    assert at == ([10, 20] if step else [80, 20])
    assert all((place or 0) <= end for place, end in zip(at, ends, strict=True))
    site.waybill("run", NAME)
    row.moves_again()
    assert stands() == [80, 90]


def tells(topic: str) -> Callable[[Command], bool]:
    """Where a group stands in a queue of the topic."""
    return lambda command: command.code == RequestCode.UPDATE_CONSUMER_OFFSET and command.fields["topic"] == topic


def consumed(client: Client, group: str, queues: list[Queue], offsets: list[int]) -> None:
    client.groups.create(group)
    for queue, offset in zip(queues, offsets, strict=True):
        client.groups.commit(group, queue, offset)


@contextmanager
def connected(site: Site, group: str, topic: str) -> Iterator[None]:
    """A consumer of the group is connected to every broker: what its heartbeat says."""
    subscription = {"topic": topic, "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1}
    member = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
        "unitMode": False,
        "subscriptionDataSet": [subscription],
    }
    body = json.dumps({"clientID": f"tests@{site.topic}", "producerDataSet": [], "consumerDataSet": [member]})
    network = Network(ClientOptions(name_servers=tuple(site.name_servers)))
    try:
        for broker in network.cluster().brokers:
            accepted(network.ask_broker(broker, Command(HEART_BEAT, body=body.encode())), broker)
        yield
    finally:
        network.close()


def bodies_from(client: Client, group: str, topic: str) -> list[bytes]:
    """What the group has still to consume of a topic."""
    bodies: list[bytes] = []
    for queue in client.topics.read_queues(topic):
        offset = client.groups.committed(group, queue)
        assert offset is not None
        bodies += read(client, queue, offset, client.offsets.end(queue))
    return bodies


def test_an_unknown_group_is_told(site: Site) -> None:
    source = f"{site.topic}-in"
    stored(site, source, 1, count=1)
    connector(site, {"topics": [source]}, {"topic": f"{site.topic}-out"})
    assert "has not replicated anything" in site.waybill("groups", "translate", NAME, "nobody", code=2)
    site.waybill("run", NAME)
    assert "nobody has no offset" in site.waybill("groups", "translate", NAME, "nobody", code=2)


def next_body(client: Client, group: str, queue: Queue) -> bytes:
    offset = client.groups.committed(group, queue)
    assert offset is not None
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if found := read(client, queue, offset, offset + 1):
            return found[0]
    raise AssertionError(f"nothing at {offset}")
