"""A look at the newest messages of topics, for people: reads, commits nothing, leaves no trace on the cluster."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from connect_core.sdk.batches import empty_records
from connect_core.sdk.records import Partition, decode_headers
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq.clusters import ClusterOptions
from connect_core.systems.rocketmq.columns import columns_of_messages
from connect_core.systems.rocketmq.connecting import Connecting
from connect_core.systems.rocketmq.decoding import record_batch
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.source import RocketMQSource

READ_S = 5.0


def in_topic(cluster: Json, topic: str, last: int) -> list[Json]:
    """The newest messages over all queues, oldest first. `cluster` are the options of an end or a connection."""
    found = [
        _told(partition.key, row)
        for partition, records in peek(ClusterOptions.of(cluster), topic, last).items()
        for row in records.to_pylist()
    ]
    return sorted(found, key=lambda told: (told["stored_at"], told["queue"], told["offset"]))[-last:]


def _told(queue: str, row: dict[str, Any]) -> Json:
    return {
        "queue": queue,
        "offset": row["offset"],
        "stored_at": row["timestamp"],
        "key": row["key"],
        "tags": row["tags"],
        "properties": decode_headers(row["headers"]),
        "value": row["value"] or b"",
    }


def newest(options: RocketMQSourceOptions, last: int) -> pa.Table:
    """The newest records over all topics and queues, oldest of them first."""
    source = RocketMQSource(options)
    topics = sorted({source.topic(partition) for partition in source.partitions([])})
    found = [batch for topic in topics for batch in peek(options, topic, last).values()]
    table = pa.Table.from_batches(found or [empty_records()]).sort_by([("timestamp", "ascending")])
    return table.slice(max(len(table) - last, 0))


def peek(
    cluster: ClusterOptions, topic: str, last: int, resources: ExitStack | None = None
) -> dict[Partition, pa.RecordBatch]:
    """For each queue of the topic that holds messages, its newest ones, at most `last`, oldest first."""
    newest: dict[Partition, pa.RecordBatch] = {}
    deadline = time.monotonic() + READ_S
    with Connecting(cluster, resources).client() as client:
        for queue, seen in client.offsets.bounds(topic).items():
            begin = max(seen.begin, seen.end - last)
            messages = [m for part in client.read(queue, begin, seen.end, deadline=deadline) for m in part.messages]
            if messages:
                newest[Partition(str(queue))] = record_batch(columns_of_messages(messages), topic)[0]
    return newest
