"""Every message of a topic, as of now."""

from __future__ import annotations

from contextlib import suppress

from connect_core import clock
from connect_core.errors import Retriable, WireFormatError
from connect_core.rocketmq import Client, Queue, StoredMessage
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.stored_message import plain_body
from connect_core.sdk.values import Json
from connect_core.sdk.whole_topic import TopicRecord, WholeTopic
from connect_core.systems.rocketmq.clusters import ClusterOptions
from connect_core.systems.rocketmq.finding import visible_ends

READ_S = 120.0


def read_whole(cluster: Json, topic: str) -> WholeTopic:
    """In the order in which it was stored. Raises TopicMissing, and Retriable where that takes too long."""
    records: list[TopicRecord] = []
    lacking: list[str] = []
    with Client(ClusterOptions.of(cluster).client_options()) as client:
        ends = visible_ends(client, client.topics.read_queues(topic))
        for queue, end in ends.items():
            begin = client.offsets.begin(queue)
            if begin:
                lacking.append(f"{queue}: its first {begin:,} records have expired")
            lacking += _read(client, queue, begin, end, records)
    return WholeTopic(sorted(records, key=lambda one: one.stored_ms), lacking)


def _read(client: Client, queue: Queue, begin: int, end: int, into: list[TopicRecord]) -> list[str]:
    lacking: list[str] = []
    reader = client.read(queue, begin, end, deadline=clock.monotonic() + READ_S)
    for part in reader:
        into += [_record(queue, message) for message in part.messages]
        lacking += [f"{queue}: {one.begin} to {one.end} cannot be read: {one.cause}" for one in part.missing]
    if reader.position < end:
        raise Retriable(
            "The topic was not read to its end in time",
            where=f"{queue}, offset {reader.position} of {end}",
            next_step="Look whether the broker is overloaded, and try again",
        )
    return lacking


def _record(queue: Queue, message: StoredMessage) -> TopicRecord:
    key, value = "", None
    with suppress(WireFormatError):
        key = properties.decode(message.properties).get(properties.KEYS, "")
    with suppress(WireFormatError):
        value = plain_body(message, decompress)
    return TopicRecord(str(queue), message.queue_offset, message.store_timestamp_ms, key, value)
