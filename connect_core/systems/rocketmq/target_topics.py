"""The topics that are written: their queues, created where that is wanted, and whether they take what is sent."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from connect_core.errors import ConfigError, Refused, TargetChanged
from connect_core.rocketmq import Client, PermissionRefused, Queue, TopicMissing
from connect_core.systems.rocketmq.connecting import check_route, with_writable
from connect_core.systems.rocketmq.options import RocketMQSinkOptions


def queues_to_write(
    client: Client,
    options: RocketMQSinkOptions,
    topic: str,
    partitions: int,
    brokers: Collection[str],
    *,
    create: bool,
) -> list[Queue]:
    """The topic's write queues, in an order that does not change. Creates the topic when that is wanted, but not
    while one of the `brokers` that were written is away."""
    if not client.topics.exists(topic):
        check_route(client, topic, brokers)
        if not create:
            raise topic_missing(topic)
        client.topics.create(topic, _queues_to_create(client, options, partitions))
    return write_queues(client, topic)


def topic_missing(topic: str) -> TopicMissing:
    step = "Create it, or let it be created: create: true"
    return TopicMissing("The topic does not exist", where=topic, next_step=step)


def _queues_to_create(client: Client, options: RocketMQSinkOptions, partitions: int) -> int:
    """On each broker."""
    there = max(math.ceil(partitions / max(len(client.brokers.masters()), 1)), 1)
    return options.queues or there


def write_queues(client: Client, topic: str) -> list[Queue]:
    """Sorted. Raises TopicMissing, or PermissionRefused when nothing of it may be written."""
    queues = client.topics.write_queues(topic)
    if not queues:
        raise PermissionRefused(
            "The topic has no queue that may be written",
            where=topic,
            next_step="Give it the write permission, or choose another topic",
        )
    return queues


def check_message_limit(client: Client, options: RocketMQSinkOptions, topic: str, queues: Sequence[Queue]) -> None:
    """A message between the broker's limit and ours would stop the connector instead of being rejected."""
    wanted = int(options.max_message_bytes)
    for broker in sorted({queue.broker for queue in queues}):
        try:
            most = int(client.brokers.settings(broker).get("maxMessageSize", wanted))
        except Refused:
            continue  # a broker that does not show its settings
        if most < wanted:
            raise ConfigError(
                f"The broker takes messages of {most} bytes, max_message_bytes is {wanted}",
                where=f"{topic} on {broker}",
                next_step=f"Set max_message_bytes: {most}, or raise the broker's maxMessageSize",
            )


def check_writable(client: Client, queues: Sequence[Queue]) -> None:
    """Before anything is written: a range whose queues are not all there cannot be finished."""
    for topic in dict.fromkeys(queue.topic for queue in queues):
        _check_writable_in(client, topic, [queue for queue in queues if queue.topic == topic])


def _check_writable_in(client: Client, topic: str, queues: Sequence[Queue]) -> None:
    there = set(client.topics.write_queues(topic))
    gone = [queue for queue in queues if queue not in there]
    if not gone:
        return
    for queue in gone:
        check_route(client, topic, [queue.broker], with_writable(queue))
    if not there:
        client.sender(gone[0])  # refused: the topic may not be written
    raise TargetChanged(
        "A queue that an open range was planned for may no longer be written, or the topic has fewer queues",
        where=str(gone[0]),
        next_step="Give the topic its queues back, or give up the open ranges: waybill offsets set --abandon",
    )


def queue_gone(queue: Queue) -> TargetChanged:
    """What to raise for a partition whose queue the topic no longer has."""
    return TargetChanged(
        "The partition goes to this queue for good, so that its records stay in order, and the topic no longer has it",
        where=str(queue),
        next_step="Give the topic its queues back, or let the partition be given another queue from here on "
        "(on_replaced: continue)",
    )
