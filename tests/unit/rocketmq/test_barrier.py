from __future__ import annotations

import time

import pytest

from connect_core.rocketmq import Client
from connect_core.rocketmq.errors import NoAnswer, PermissionRefused
from connect_core.rocketmq.testing import Link, ScriptedServer, reply
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.commands import PullResponse, RequestCode, ResponseCode
from connect_core.rocketmq.wire.fields import to_fields
from connect_core.rocketmq.wire.header import Command

PULL = RequestCode.PULL_MESSAGE
SEND = RequestCode.SEND_BATCH_MESSAGE
CREATE = RequestCode.UPDATE_AND_CREATE_TOPIC
NOT_YET = reply(ResponseCode.PULL_NOT_FOUND, fields=to_fields(PullResponse(0, 0, 0)))
BEHIND = reply(ResponseCode.PULL_OFFSET_MOVED, remark="OFFSET_OVERFLOW_BADLY", fields=to_fields(PullResponse(0, 0, 0)))


@pytest.fixture
def queues(server: ScriptedServer) -> MemoryQueues:
    made = MemoryQueues()
    made.attach(server)
    return made


def _soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def test_returns_when_its_message_can_be_read(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    server.on(PULL, NOT_YET, BEHIND, queues.pull)
    client.barrier("broker-a", deadline=_soon())
    assert queues.bodies("WAYBILL_BARRIER", 0) == [b"barrier"]
    assert [request.fields["queueOffset"] for request in server.requests(PULL)] == ["0"] * 3


def test_each_barrier_waits_for_its_own_message(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    client.barrier("broker-a", deadline=_soon())
    client.barrier("broker-a", deadline=_soon())
    assert [request.fields["queueOffset"] for request in server.requests(PULL)] == ["0", "1"]


def test_makes_its_topic_when_it_is_missing(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    server.on(SEND, reply(17), queues.send)
    server.on(RequestCode.GET_TOPIC_CONFIG, reply(17))
    server.on(CREATE, reply())
    client.barrier("broker-a", deadline=_soon())
    fields = server.requests(CREATE)[0].fields
    assert (fields["topic"], fields["writeQueueNums"]) == ("WAYBILL_BARRIER", "1")


def test_may_not_make_its_topic(client: Client, server: ScriptedServer) -> None:
    server.on(SEND, reply(17))
    server.on(RequestCode.GET_TOPIC_CONFIG, reply(17))
    server.on(CREATE, reply(16, remark="no permission"))
    with pytest.raises(PermissionRefused, match="WAYBILL_BARRIER on broker-a"):
        client.barrier("broker-a", deadline=_soon())


def test_makes_its_group_where_brokers_do_not(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    def refuse_then_pull(request: Command, link: Link) -> None:
        made = server.requests(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
        (queues.pull if made else reply(26))(request, link)

    server.on(PULL, refuse_then_pull)
    for code in (CREATE, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP):
        server.on(code, reply())
    server.on(RequestCode.GET_TOPIC_CONFIG, reply(17))
    client.barrier("broker-a", deadline=_soon())


def test_a_message_that_stays_invisible(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    server.on(PULL, NOT_YET)
    with pytest.raises(NoAnswer, match="does not become visible"):
        client.barrier("broker-a", deadline=_soon(0.05))
