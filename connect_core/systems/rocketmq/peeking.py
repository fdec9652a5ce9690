"""A look at the newest messages of a topic, for people: reads, commits nothing, leaves no trace on the cluster."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pyarrow as pa

from connect_core.sdk.records import Partition
from connect_core.systems.rocketmq.clusters import ClusterOptions
from connect_core.systems.rocketmq.columns import columns_of_messages
from connect_core.systems.rocketmq.connecting import Connecting
from connect_core.systems.rocketmq.decoding import record_batch

READ_S = 5.0


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
