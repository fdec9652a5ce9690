from __future__ import annotations

import json

import pytest

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.route import (
    BrokerGroup,
    TopicQueues,
    decode_cluster,
    decode_names,
    decode_queue_table,
    decode_route,
)

ROUTE = {
    "brokerDatas": [
        {"brokerAddrs": {"0": "a:1", "1": "b:1"}, "brokerName": "one", "cluster": "c"},
        {"brokerAddrs": {"1": "d:1"}, "brokerName": "two", "cluster": "c"},
    ],
    "queueDatas": [
        {"brokerName": "one", "perm": 6, "readQueueNums": 4, "writeQueueNums": 2, "topicSysFlag": 0},
        {"brokerName": "two", "perm": 4, "readQueueNums": 1, "writeQueueNums": 1},
    ],
}


def test_route() -> None:
    route = decode_route(json.dumps(ROUTE).encode())
    assert route.brokers["one"] == BrokerGroup("one", "c", {0: "a:1", 1: "b:1"})
    assert route.brokers["one"].master == "a:1"
    assert route.brokers["two"].master is None
    assert route.queues == (TopicQueues("one", 4, 2, 6), TopicQueues("two", 1, 1, 4))
    assert not route.static


def test_permission_decides_which_queues_count() -> None:
    assert TopicQueues("b", 4, 2, 6).readable == range(4)
    assert TopicQueues("b", 4, 2, 6).writable == range(2)
    assert TopicQueues("b", 4, 2, 2).readable == range(0)
    assert TopicQueues("b", 4, 2, 4).writable == range(0)


def test_route_of_a_server_that_writes_integer_keys() -> None:
    text = json.dumps(ROUTE).replace('"0"', "0").replace('"1"', "1")
    assert decode_route(text.encode()) == decode_route(json.dumps(ROUTE).encode())


def test_static_topics_are_recognised() -> None:
    assert decode_route(json.dumps(ROUTE | {"topicQueueMappingByBroker": {"one": {}}}).encode()).static


def test_route_without_brokers() -> None:
    route = decode_route(b'{"brokerDatas":null}')
    assert not route.brokers
    assert not route.queues


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"brokerDatas": {"a": 1}},
        {"brokerDatas": [1]},
        {"brokerDatas": [{"brokerAddrs": {"0": "a:1"}}]},
        {"brokerDatas": [{"brokerName": "b", "brokerAddrs": {"x": "a:1"}}]},
        {"brokerDatas": [{"brokerName": "b", "brokerAddrs": {"0": 1}}]},
        {"queueDatas": [{"brokerName": "b", "perm": "6", "readQueueNums": 1, "writeQueueNums": 1}]},
        {"queueDatas": [{"brokerName": "b", "perm": 6, "readQueueNums": -1, "writeQueueNums": 1}]},
        {"queueDatas": [{"brokerName": "b", "perm": 6, "readQueueNums": 1, "writeQueueNums": 10**9}]},
    ],
)
def test_nonsense_routes(document: object) -> None:
    with pytest.raises(WireFormatError):
        decode_route(json.dumps(document).encode())


def test_cluster() -> None:
    text = (
        b'{"brokerAddrTable":{"b":{"brokerAddrs":{0:"h:1"},"brokerName":"b","cluster":"c"}},'
        b'"clusterAddrTable":{"c":["b"]}}'
    )
    cluster = decode_cluster(text)
    assert cluster.brokers["b"].master == "h:1"
    assert cluster.clusters == {"c": ("b",)}


def test_names() -> None:
    assert decode_names(b'{"topicList":["a","b"]}', "topicList") == ["a", "b"]
    assert decode_names(b"{}", "topicList") == []
    with pytest.raises(WireFormatError):
        decode_names(b'{"topicList":[1]}', "topicList")


def test_queue_table() -> None:
    text = b'{"offsetTable":{{"brokerName":"b","queueId":3,"topic":"t"}:{"minOffset":1,"maxOffset":2,"x":null}}}'
    (row,) = decode_queue_table(text, ("minOffset", "maxOffset"))
    assert (row.topic, row.broker, row.queue_id) == ("t", "b", 3)
    assert row.numbers == {"minOffset": 1, "maxOffset": 2}


@pytest.mark.parametrize(
    "text",
    [
        b'{"offsetTable":{"a":{}}}',
        b'{"offsetTable":{{"queueId":3,"topic":"t"}:{}}}',
        b'{"offsetTable":{{"brokerName":"b","queueId":3,"topic":"t"}:{"minOffset":null}}}',
        b'{"offsetTable":{{"brokerName":"b","queueId":true,"topic":"t"}:{"minOffset":1}}}',
    ],
)
def test_nonsense_tables(text: bytes) -> None:
    with pytest.raises(WireFormatError):
        decode_queue_table(text, ("minOffset",))
