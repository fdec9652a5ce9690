"""Whether a queue is still the one that was read, when its broker does not say so: that concerns this queue alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from connect_core.errors import Failure, Retriable
from connect_core.rocketmq import Client, ClientOptions, Queue
from connect_core.rocketmq.testing import Handler, Link, ScriptedServer, reply
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.commands import PULL_SUSPENDS, RequestCode
from connect_core.rocketmq.wire.header import Command
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import OPEN_END, Bounds, Json, SourceBatch
from connect_core.systems.rocketmq import continuity
from connect_core.systems.rocketmq.continuity import SecondLook
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.source import RocketMQSource

PULL = RequestCode.PULL_MESSAGE
QUEUES = [Queue("orders", "broker-a", number) for number in range(2)]


@pytest.fixture
def queues() -> MemoryQueues:
    return MemoryQueues()


@pytest.fixture
def server(queues: MemoryQueues) -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        made.serve_route("orders", queues=2)
        queues.attach(made)
        for queue in QUEUES:
            queues.append(queue.topic, queue.queue_id, *(b"%d" % number for number in range(6)))
        yield made


def evidence_at_3(client: Client, queue: Queue) -> Json:
    message = client.pull(queue, 2, max_messages=1).messages[0]
    return continuity.evidence_of(message)


def looks_at_the_first(queues: MemoryQueues, answer: Handler) -> Handler:
    """What the broker says when the first queue is looked at; everything else is answered."""

    def handle(request: Command, link: Link) -> None:
        suspends = int(request.fields["sysFlag"]) & PULL_SUSPENDS
        (queues.pull if suspends or request.fields["queueId"] != "0" else answer)(request, link)

    return handle


@pytest.mark.parametrize("answer", [reply(16, remark="no permission"), reply(2, remark="[OVERLOAD]")])
def test_a_queue_of_which_a_broker_does_not_say_what_it_is_stops_no_other(
    server: ScriptedServer, queues: MemoryQueues, answer: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuity, "GRACE_S", 0.2)
    options = {"name_servers": [server.address], "topics": ["orders"]}
    source = RocketMQSource(RocketMQSourceOptions.model_validate(options))
    with Client(ClientOptions((server.address,))) as client:
        live = [
            range_of(Partition(str(queue)), Bounds(0, 3, 0, OPEN_END, evidence_at_3(client, queue))) for queue in QUEUES
        ]
    server.on(PULL, looks_at_the_first(queues, answer))
    told: dict[str, SourceBatch | Failure] = {}
    for _ in range(2):
        going_on = [one for one in live if one.partition.key not in told]
        told |= {one.partition.key: what for one, what in source.follow(going_on, limit(0.5), idle_timeout_s=0.3)}
    first, second = (told.get(str(queue)) for queue in QUEUES)
    assert isinstance(first, Failure)
    assert isinstance(second, SourceBatch)
    assert second.next_offset == 6


def test_a_busy_broker_is_asked_no_longer_than_the_lane_has_time(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuity, "GRACE_S", 0.2)
    with Client(ClientOptions((server.address,))) as client:
        evidence = evidence_at_3(client, QUEUES[0])
        server.on(PULL, reply(2, remark="[OVERLOAD]"))
        started = time.monotonic()
        with pytest.raises(Retriable, match=r"did not say in time.*orders/broker-a/0, offset 2"):
            SecondLook(client, QUEUES[0], evidence, started + 0.2).holds()
        assert time.monotonic() - started < 3


def test_a_look_for_which_no_time_is_left_is_answered_all_the_same(server: ScriptedServer) -> None:
    with Client(ClientOptions((server.address,))) as client:
        assert SecondLook(client, QUEUES[0], evidence_at_3(client, QUEUES[0]), time.monotonic()).holds()
