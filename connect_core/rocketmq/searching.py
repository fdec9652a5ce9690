"""Messages by key, which the index of the brokers finds, and by id, which is a place in a broker's log."""

from __future__ import annotations

from connect_core.errors import WireFormatError
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.network import Network, accepted, command
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.topics import Topics
from connect_core.rocketmq.wire.commands import QueryRequest, RequestCode, ResponseCode, ViewRequest
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


def with_id(network: Network, broker: str, message_id: str) -> StoredMessage | None:
    """The message that the log of this broker's master has at the place that an id of an answer to a send names (its
    last 16 hex digits). A log keeps messages of a deleted topic, too, until they expire. None where no message begins
    there, or one of another id does."""
    reply = network.ask_broker(broker, command(RequestCode.VIEW_MESSAGE_BY_ID, ViewRequest(int(message_id[-16:], 16))))
    if reply.code == ResponseCode.SYSTEM_ERROR:  # "can not find message by the offset"
        return None
    body = bytes(accepted(reply, f"{message_id} on {broker}").body)
    try:
        found = decode_messages(body, decompress)
    except WireFormatError:  # of another broker under that name: its messages begin elsewhere
        return None
    return next((message for message in found if message.offset_message_id == message_id), None)


def _has(message: StoredMessage, topic: str, key: str) -> bool:
    named = decode(message.properties)
    return message.topic == topic and (key in named.get(KEYS, "").split(" ") or named.get(UNIQUE_KEY) == key)
