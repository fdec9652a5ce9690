from __future__ import annotations

import pytest

from connect_core.rocketmq import Client, Queue, TopicConfig, encode_batch
from connect_core.rocketmq.errors import PermissionRefused, TopicMissing
from tests.servers import RocketMQ
from tests.system.rocketmq.conftest import soon

pytestmark = pytest.mark.server


def test_a_topic_from_creation_to_deletion(client: Client, broker: RocketMQ, queues: list[Queue]) -> None:
    topic = queues[0].topic
    assert queues == [Queue(topic, broker.broker_name, 0), Queue(topic, broker.broker_name, 1)]
    assert topic in client.topics.names()
    assert client.topics.config(topic) == {broker.broker_name: TopicConfig(topic, 2, 2)}
    client.topics.delete(topic)
    assert not client.topics.exists(topic)
    with pytest.raises(TopicMissing):
        client.topics.read_queues(topic)
    client.topics.delete(topic)


def test_creating_again_grows_and_never_shrinks(client: Client, broker: RocketMQ, queues: list[Queue]) -> None:
    topic = queues[0].topic
    assert len(client.topics.create(topic, 4)) == 4
    assert len(client.topics.create(topic, 1)) == 4
    assert client.topics.config(topic)[broker.broker_name].read_queues == 4


def test_growing_keeps_fixed_attributes(client: Client, broker: RocketMQ, queues: list[Queue]) -> None:
    topic = queues[0].topic + "-batch"
    attributes = (("queue.type", "BatchCQ"),)
    client.topics.put(TopicConfig(topic, 1, 1, attributes=attributes), broker.broker_name)
    client.topics.ensure(TopicConfig(topic, 3, 3), broker.broker_name)
    config = client.topics.config_on(topic, broker.broker_name)
    client.topics.delete(topic)
    assert config == TopicConfig(topic, 3, 3, attributes=attributes)


def test_no_system_topic_is_listed(client: Client) -> None:
    assert not [name for name in client.topics.names() if name.upper().startswith(("RMQ_", "%", "WAYBILL_"))]
    assert "TBW102" not in client.topics.names()


def test_permissions(client: Client, broker: RocketMQ, queues: list[Queue]) -> None:
    topic = queues[0].topic
    client.topics.put(TopicConfig(topic, 2, 2, perm=4), broker.broker_name)
    assert client.topics.read_queues(topic) == queues
    with pytest.raises(PermissionRefused):
        client.sender(queues[0])
    client.topics.put(TopicConfig(topic, 2, 2, perm=2), broker.broker_name)
    with pytest.raises(PermissionRefused, match="forbidden"):
        client.pull(queues[0], 0)


def test_unknown_topics_are_not_created_by_sending(client: Client, queues: list[Queue]) -> None:
    sender = client.sender(queues[0])
    sender.queue = Queue(queues[0].topic + "-absent", queues[0].broker, 0)
    sender.submit(encode_batch([b"x"], [b""]), deadline=soon())
    with pytest.raises(TopicMissing):
        sender.finish(deadline=soon())
    assert not client.topics.exists(sender.queue.topic)


def test_settings_of_a_broker(client: Client, broker: RocketMQ) -> None:
    name = broker.broker_name
    before = client.brokers.settings(name)
    assert before["brokerName"] == name
    client.brokers.change_settings(name, {"maxTransferCountOnMessageInMemory": "77"})
    assert client.brokers.settings(name)["maxTransferCountOnMessageInMemory"] == "77"
    key = "maxTransferCountOnMessageInMemory"
    client.brokers.change_settings(name, {key: before[key]})
    assert client.brokers.masters() == {name: client.brokers.cluster().brokers[name].master}
