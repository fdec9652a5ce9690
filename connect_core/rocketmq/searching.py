"""Messages of a topic by key: what the index of its brokers finds."""

from __future__ import annotations

from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.network import Network, accepted, command
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.topics import Topics
from connect_core.rocketmq.wire.commands import QueryRequest, RequestCode, ResponseCode
from connect_core.rocketmq.wire.properties import KEYS, UNIQUE_KEY, decode
from connect_core.rocketmq.wire.stored_message import StoredMessage, decode_messages


def with_key(network: Network, topics: Topics, topic: str, key: str, most: int) -> list[tuple[Queue, StoredMessage]]:
    """At most so many of each master: those with the key among their KEYS, and those whose message id it is.

    Brokers make the index a moment after they have acknowledged a message, look keys up by a hash (so others come as
    well, and are left out here), and delete the index with the log. Raises TopicMissing."""
    found: dict[tuple[Queue, int], StoredMessage] = {}
    for broker in sorted({queue.broker for queue in topics.read_queues(topic)}):
        for by_unique_key in (False, True):
            request = QueryRequest(topic, key, most, by_unique_key=by_unique_key)
            reply = network.ask_broker(broker, command(RequestCode.QUERY_MESSAGE, request))
            if reply.code != ResponseCode.QUERY_NOT_FOUND:
                body = accepted(reply, f"{topic} on {broker}").body
                for message in decode_messages(bytes(body), decompress):
                    found[Queue(message.topic, broker, message.queue_id), message.queue_offset] = message
    return [(queue, message) for (queue, _), message in sorted(found.items()) if _has(message, topic, key)]


def _has(message: StoredMessage, topic: str, key: str) -> bool:
    named = decode(message.properties)
    return message.topic == topic and (key in named.get(KEYS, "").split(" ") or named.get(UNIQUE_KEY) == key)
