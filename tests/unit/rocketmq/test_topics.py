from __future__ import annotations

import json

import pytest

from connect_core.rocketmq import Client, Queue, TopicConfig
from connect_core.rocketmq.errors import InvalidRequest, NoAnswer, NotSupported, PermissionRefused, TopicMissing
from connect_core.rocketmq.testing import Link, ScriptedServer, reply
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command
from tests.unit.rocketmq.conftest import TOPIC

CREATE = RequestCode.UPDATE_AND_CREATE_TOPIC
CONFIG = RequestCode.GET_TOPIC_CONFIG
BROKER = "broker-a"


def _config(**changes: object) -> bytes:
    document = {
        "attributes": {},
        "order": False,
        "perm": 6,
        "readQueueNums": 2,
        "topicName": TOPIC,
        "writeQueueNums": 2,
    }
    return json.dumps(document | changes).encode()


def test_only_peoples_topics_are_listed(client: Client, server: ScriptedServer) -> None:
    names = ["b", "a", "TBW102", "%RETRY%g", "%DLQ%g", "broker-a", "DefaultCluster", "DefaultCluster_REPLY_TOPIC"]
    names += ["rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC", "WAYBILL_BARRIER", "SCHEDULE_TOPIC_XXXX"]
    server.on(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, reply(body=json.dumps({"topicList": names}).encode()))
    assert client.topics.names() == ["a", "b"]
    assert client.topics.all_names() == sorted(names)


def test_existence_is_looked_up_each_time(client: Client, server: ScriptedServer) -> None:
    assert client.topics.exists(TOPIC)
    assert not client.topics.exists("absent")
    server.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, reply(17))
    assert not client.topics.exists(TOPIC)


def test_creating_a_topic(client: Client, server: ScriptedServer) -> None:
    def create(request: Command, link: Link) -> None:
        server.serve_route("new", queues=3)
        reply(remark="not set any response code")(request, link)

    server.on(CONFIG, reply(17))
    server.on(CREATE, create)
    assert client.topics.create("new", 3) == [Queue("new", BROKER, number) for number in range(3)]
    (request,) = server.requests(CREATE)
    assert request.fields == {
        "topic": "new",
        "readQueueNums": "3",
        "writeQueueNums": "3",
        "perm": "6",
        "order": "false",
        "defaultTopic": "TBW102",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
    }


@pytest.mark.parametrize("queues", [1, 2])
def test_creating_a_topic_that_is_there_changes_nothing(client: Client, server: ScriptedServer, queues: int) -> None:
    server.on(CONFIG, reply(body=_config()))
    assert len(client.topics.create(TOPIC, queues)) == 2
    assert server.requests(CREATE) == []


def test_queues_are_added_and_everything_else_stays(client: Client, server: ScriptedServer) -> None:
    server.serve_route(TOPIC, queues=5)
    server.on(CONFIG, reply(body=_config(perm=7, order=True, readQueueNums=8, attributes={"queue.type": "BatchCQ"})))
    server.on(CREATE, reply())
    client.topics.create(TOPIC, 5)
    (request,) = server.requests(CREATE)
    wanted = {"readQueueNums": "8", "writeQueueNums": "5", "perm": "7", "order": "true"}
    assert request.fields.items() >= wanted.items()
    assert "attributes" not in request.fields


def test_a_topic_that_does_not_appear_in_the_route(hasty_client: Client, server: ScriptedServer) -> None:
    server.on(CONFIG, reply(17))
    server.on(CREATE, reply())
    with pytest.raises(NoAnswer, match="does not show it"):
        hasty_client.topics.create("hidden", 1)


def test_attributes_are_set_when_asked_for(client: Client, server: ScriptedServer) -> None:
    server.on(CREATE, reply())
    attributes = (("queue.type", "BatchCQ"), ("message.type", "FIFO"))
    client.topics.put(TopicConfig(TOPIC, 1, 1, attributes=attributes), BROKER)
    assert server.requests(CREATE)[0].fields["attributes"] == "+queue.type=BatchCQ,+message.type=FIFO"


@pytest.mark.parametrize("name", ["", "a.b", "ä", "x" * 128, "a b"])
def test_illegal_names_do_not_reach_the_broker(client: Client, server: ScriptedServer, name: str) -> None:
    with pytest.raises(InvalidRequest, match="Not a topic name"):
        client.topics.put(TopicConfig(name, 1, 1), BROKER)
    assert server.received == []


def test_a_topic_without_queues_does_not_reach_the_broker(client: Client, server: ScriptedServer) -> None:
    with pytest.raises(InvalidRequest, match="needs queues"):
        client.topics.put(TopicConfig(TOPIC, 0, 1), BROKER)
    assert server.received == []


def test_a_broker_that_refuses(client: Client, server: ScriptedServer) -> None:
    server.on(CREATE, reply(16, remark="no permission"))
    with pytest.raises(PermissionRefused, match="orders on broker-a"):
        client.topics.put(TopicConfig(TOPIC, 1, 1), BROKER)


def test_configuration(client: Client, server: ScriptedServer) -> None:
    server.on(CONFIG, reply(body=_config(attributes={"queue.type": "BatchCQ"})))
    expected = TopicConfig(TOPIC, 2, 2, 6, attributes=(("queue.type", "BatchCQ"),))
    assert client.topics.config(TOPIC) == {BROKER: expected}
    server.on(CONFIG, reply(17))
    assert client.topics.config(TOPIC) == {}
    with pytest.raises(TopicMissing):
        client.topics.config("absent")


def test_deleting_goes_to_brokers_and_name_servers(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.DELETE_TOPIC_IN_BROKER, reply())
    server.on(RequestCode.DELETE_TOPIC_IN_NAMESRV, reply())
    client.topics.delete(TOPIC)
    codes = [received.command.code for received in server.received]
    assert codes[-2:] == [RequestCode.DELETE_TOPIC_IN_BROKER, RequestCode.DELETE_TOPIC_IN_NAMESRV]
    client.topics.delete("absent")
    assert len(server.requests(RequestCode.DELETE_TOPIC_IN_BROKER)) == 1


@pytest.mark.parametrize(("perm", "readable", "writable"), [(6, 2, 2), (4, 2, 0), (2, 0, 2), (0, 0, 0)])
def test_permission_decides_about_queues(
    client: Client, server: ScriptedServer, perm: int, readable: int, writable: int
) -> None:
    server.serve_route(TOPIC, queues=2, perm=perm)
    assert client.topics.read_queues(TOPIC) == [Queue(TOPIC, BROKER, number) for number in range(readable)]
    assert client.topics.write_queues(TOPIC) == [Queue(TOPIC, BROKER, number) for number in range(writable)]


def test_a_group_without_master_is_not_written(client: Client, server: ScriptedServer) -> None:
    route = {
        "brokerDatas": [{"brokerAddrs": {"1": "h:1"}, "brokerName": BROKER, "cluster": "c"}],
        "queueDatas": [{"brokerName": BROKER, "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}],
    }
    server.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, reply(body=json.dumps(route).encode()))
    assert client.topics.write_queues(TOPIC) == []


def test_static_topics_are_refused_rather_than_misread(client: Client, server: ScriptedServer) -> None:
    route = {"topicQueueMappingByBroker": {BROKER: {"topic": TOPIC}}}
    server.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, reply(body=json.dumps(route).encode()))
    with pytest.raises(NotSupported, match="Static topics"):
        client.topics.read_queues(TOPIC)


def test_the_queues_that_a_route_names_are_those_of_a_static_topic_too(client: Client, server: ScriptedServer) -> None:
    route = {
        "topicQueueMappingByBroker": {BROKER: {"topic": TOPIC}},
        "queueDatas": [{"brokerName": BROKER, "perm": 6, "readQueueNums": 2, "writeQueueNums": 2}],
    }
    server.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, reply(body=json.dumps(route).encode()))
    assert client.topics.listed_queues(TOPIC) == [Queue(TOPIC, BROKER, 0), Queue(TOPIC, BROKER, 1)]
