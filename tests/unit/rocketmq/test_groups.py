from __future__ import annotations

import json

import pytest

from connect_core.rocketmq import Client, GroupProgress, Queue
from connect_core.rocketmq.errors import GroupMissing, InvalidRequest, PermissionRefused
from connect_core.rocketmq.testing import ScriptedServer, reply
from connect_core.rocketmq.wire.commands import PullResponse, RequestCode
from connect_core.rocketmq.wire.fields import to_fields
from tests.unit.rocketmq.conftest import TOPIC

QUEUE = Queue(TOPIC, "broker-a", 1)
COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET
CREATE = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP


def test_creating_a_group_makes_the_retry_topic_that_lag_tools_look_for(client: Client, server: ScriptedServer) -> None:
    server.on(CREATE, reply())
    server.on(RequestCode.GET_TOPIC_CONFIG, reply(17))
    server.on(RequestCode.UPDATE_AND_CREATE_TOPIC, reply())
    client.groups.create("g")
    assert json.loads(bytes(server.requests(CREATE)[0].body))["groupName"] == "g"
    (topic,) = server.requests(RequestCode.UPDATE_AND_CREATE_TOPIC)
    assert topic.fields.items() >= {"topic": "%RETRY%g", "readQueueNums": "1", "writeQueueNums": "1"}.items()


def test_a_group_that_is_there_needs_no_right_to_create_it(client: Client, server: ScriptedServer) -> None:
    server.on(CREATE, reply(16))
    with pytest.raises(PermissionRefused):
        client.groups.create("g")
    server.serve_route("%RETRY%g", queues=1)
    client.groups.create("g")


@pytest.mark.parametrize("name", ["", "g" * 121])
def test_names_whose_retry_topic_would_be_illegal(client: Client, server: ScriptedServer, name: str) -> None:
    with pytest.raises(InvalidRequest, match="Not a group name"):
        client.groups.create(name)
    assert server.requests(CREATE) == []


def test_names_are_those_with_a_retry_topic(client: Client, server: ScriptedServer) -> None:
    names = ["%RETRY%b", "%RETRY%a", "%RETRY%CID_RMQ_SYS_TRANS", "%DLQ%c", "d", "%RETRY%TOOLS_CONSUMER"]
    server.on(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, reply(body=json.dumps({"topicList": names}).encode()))
    assert client.groups.names() == ["a", "b"]


def test_existence(client: Client, server: ScriptedServer) -> None:
    server.serve_route("%RETRY%g", queues=1)
    assert client.groups.exists("g")
    assert not client.groups.exists("h")


def test_deleting_takes_offsets_and_the_retry_topic_along(client: Client, server: ScriptedServer) -> None:
    server.serve_route("%RETRY%g", queues=1)
    for code in (
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
    ):
        server.on(code, reply())
    client.groups.delete("g")
    (request,) = server.requests(RequestCode.DELETE_SUBSCRIPTIONGROUP)
    assert request.fields == {"groupName": "g", "cleanOffset": "true"}
    assert server.requests(RequestCode.DELETE_TOPIC_IN_NAMESRV)[0].fields == {"topic": "%RETRY%g"}


@pytest.mark.parametrize(("code", "online"), [(0, True), (206, False)])
def test_online(client: Client, server: ScriptedServer, code: int, online: bool) -> None:
    server.on(RequestCode.GET_CONSUMER_CONNECTION_LIST, reply(code))
    assert client.groups.online("g", "broker-a") is online


def test_committed_offset(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.QUERY_CONSUMER_OFFSET, reply(22), reply(fields={"offset": "5"}))
    assert client.groups.committed("g", QUEUE) is None
    assert client.groups.committed("g", QUEUE) == 5
    fields = server.requests(RequestCode.QUERY_CONSUMER_OFFSET)[0].fields
    assert fields == {"consumerGroup": "g", "topic": TOPIC, "queueId": "1", "setZeroIfNotFound": "false"}


def test_commit(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.UPDATE_CONSUMER_OFFSET, reply(), reply(remark="Offset has been previously reset"), reply(26))
    assert client.groups.commit("g", QUEUE, 7)
    assert not client.groups.commit("g", QUEUE, 7)
    with pytest.raises(GroupMissing, match="g on orders/broker-a/1"):
        client.groups.commit("g", QUEUE, 7)
    assert server.requests(RequestCode.UPDATE_CONSUMER_OFFSET)[0].fields["commitOffset"] == "7"


def test_a_reset_is_taken_so_that_a_commit_is_stored(client: Client, server: ScriptedServer) -> None:
    server.on(COMMIT, reply(remark="Offset has been previously reset"), reply())
    server.on(RequestCode.PULL_MESSAGE, reply(21, remark="OFFSET_RESET", fields=to_fields(PullResponse(3, 0, 10))))
    assert client.groups.commit("g", QUEUE, 7)
    (pulled,) = server.requests(RequestCode.PULL_MESSAGE)
    assert pulled.fields.items() >= {"consumerGroup": "g", "topic": TOPIC, "queueId": "1"}.items()
    assert [request.fields["commitOffset"] for request in server.requests(COMMIT)] == ["7", "7"]


def test_a_reset_that_we_may_not_take_is_told(client: Client, server: ScriptedServer) -> None:
    server.on(COMMIT, reply(remark="Offset has been previously reset"))
    server.on(RequestCode.PULL_MESSAGE, reply(16, remark="no permission"))
    assert not client.groups.commit("g", QUEUE, 7)


def test_progress(client: Client, server: ScriptedServer) -> None:
    row = '{"brokerName":"broker-a","queueId":%d,"topic":"%s"}:{"brokerOffset":9,"consumerOffset":4,"lastTimestamp":8}'
    body = '{"consumeTps":0.0,"offsetTable":{' + row % (1, TOPIC) + "," + row % (0, "%RETRY%g") + "}}"
    server.on(RequestCode.GET_CONSUME_STATS, reply(body=body.encode()))
    progress = client.groups.progress("g", TOPIC)
    assert progress == {QUEUE: GroupProgress(9, 4, 8)}
    assert progress[QUEUE].lag == 5
