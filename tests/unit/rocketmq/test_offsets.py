from __future__ import annotations

import pytest

from connect_core.errors import WireFormatError
from connect_core.rocketmq import Client, Queue, QueueBounds
from connect_core.rocketmq.errors import BrokerFault, PermissionRefused, TopicMissing
from connect_core.rocketmq.testing import ScriptedServer, reply
from connect_core.rocketmq.wire.commands import RequestCode
from tests.unit.rocketmq.conftest import TOPIC

QUEUE = Queue(TOPIC, "broker-a", 1)
STATS = RequestCode.GET_TOPIC_STATS_INFO
ROW = '{"brokerName":"broker-a","queueId":%d,"topic":"orders"}:{"lastUpdateTimestamp":%d,"maxOffset":%d,"minOffset":%d}'


def _table(*rows: tuple[int, int, int, int]) -> bytes:
    return ('{"offsetTable":{' + ",".join(ROW % row for row in rows) + '},"topicPutTps":0.0}').encode()


def test_begin_and_end(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.GET_MIN_OFFSET, reply(fields={"offset": "3"}))
    server.on(RequestCode.GET_MAX_OFFSET, reply(fields={"offset": "8"}))
    assert (client.offsets.begin(QUEUE), client.offsets.end(QUEUE)) == (3, 8)
    assert server.requests(RequestCode.GET_MAX_OFFSET)[0].fields == {"topic": TOPIC, "queueId": "1"}


def test_offset_of_a_moment(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, reply(fields={"offset": "5"}))
    assert client.offsets.at_or_after(QUEUE, 1234) == 5
    (request,) = server.requests(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
    assert request.fields == {"topic": TOPIC, "queueId": "1", "timestamp": "1234", "boundaryType": "lower"}


def test_an_answer_without_offset_is_nonsense(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.GET_MAX_OFFSET, reply())
    with pytest.raises(WireFormatError):
        client.offsets.end(QUEUE)


def test_bounds_of_a_topic_take_one_call(client: Client, server: ScriptedServer) -> None:
    server.on(STATS, reply(body=_table((1, 77, 8, 3), (0, 0, 0, 0), (9, 1, 1, 1))))
    assert client.offsets.bounds(TOPIC) == {
        Queue(TOPIC, "broker-a", 0): QueueBounds(0, 0, 0),
        Queue(TOPIC, "broker-a", 1): QueueBounds(3, 8, 77),
    }
    assert len(server.requests(STATS)) == 1


def test_a_queue_the_broker_does_not_know(client: Client, server: ScriptedServer) -> None:
    server.on(STATS, reply(body=_table((0, 0, 0, 0))))
    with pytest.raises(TopicMissing, match="orders/broker-a/1"):
        client.offsets.bounds(TOPIC)


@pytest.mark.parametrize(("code", "kind"), [(1, BrokerFault), (16, PermissionRefused)])
def test_what_a_broker_says_of_one_topic_is_told_of_that_broker(
    client: Client, server: ScriptedServer, code: int, kind: type[Exception]
) -> None:
    server.on(STATS, reply(code, remark="no"))
    found, failed = client.offsets.reachable_bounds(TOPIC)
    assert (found, {broker: type(error) for broker, error in failed.items()}) == ({}, {"broker-a": kind})
    with pytest.raises(kind, match="orders on broker-a"):
        client.offsets.bounds(TOPIC)


def test_a_queue_that_the_route_names_only_afterwards_is_not_missed(client: Client, server: ScriptedServer) -> None:
    """The route that was kept may grow old between two questions, and the next one name a broker that was not asked."""
    server.on(STATS, reply(body=_table((0, 0, 0, 0), (1, 77, 8, 3))))
    before = client.topics.read_queues(TOPIC)
    routes = iter([before, [*before, Queue(TOPIC, "broker-b", 0)]])
    vars(client.topics)["read_queues"] = lambda topic: next(routes)
    assert list(client.offsets.bounds(TOPIC)) == before


def test_a_topic_deleted_behind_our_back(client: Client, server: ScriptedServer) -> None:
    server.on(STATS, reply(17, remark="topic[orders] not exist"))
    client.topics.read_queues(TOPIC)
    with pytest.raises(TopicMissing, match="orders on broker-a"):
        client.offsets.bounds(TOPIC)
    server.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, reply(17))
    with pytest.raises(TopicMissing):
        client.topics.read_queues(TOPIC)
