"""One topic of its own on a real broker for each test, and what a driver would do with it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from connect_core.rocketmq import (
    Client,
    ClientOptions,
    Queue,
    encode_batch,
)
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Scan, Sink
from connect_core.sdk.source import Source
from connect_core.sdk.testing.driving import UID, Follower, attempt, limit, range_of
from connect_core.sdk.values import Attempt, Bounds, OpenRange
from connect_core.systems import sink, source
from connect_core.work import Side
from tests.servers import RocketMQ


@dataclass
class Cluster:
    """One topic of its own for each test."""

    name_servers: list[str]
    client: Client
    resources: ExitStack
    topic: str = field(default_factory=lambda: f"sys-{uuid.uuid4().hex[:12]}")

    def sink(self, **options: object) -> Sink:
        given = {"name_servers": self.name_servers, "topic": self.topic, "queues": 2, **options}
        return sink(Side("rocketmq", given), self.resources)

    def source(self, **options: object) -> Source:
        given = {"name_servers": self.name_servers, "topics": [self.topic], "uid": uuid.uuid4().hex[:8], **options}
        return source(Side("rocketmq", given), self.resources)

    def planned(self, target: Sink, *, begin: int = 0, slot: int = 0, inherited: bool = False) -> OpenRange:
        """A range of 1,000 offsets with its floors, as a driver plans it."""
        pins = target.targets(0, (), {}).pins
        partition = Partition(f"source-{slot}")
        wanted = replace(range_of(partition, Bounds(0, begin, 0, begin + 1000), pins=pins), slot=slot)
        return OpenRange(1 + slot, wanted, target.floors(wanted, ()), inherited)

    def queue(self, planned: OpenRange) -> Queue:
        topic, broker, number = planned.floors[0].target.split("/")
        return Queue(topic, broker, int(number))

    def send(self, queue: Queue, bodies: list[bytes], properties: list[bytes] | None = None) -> None:
        sender = self.client.sender(queue)
        sender.submit(encode_batch(bodies, properties or [b""] * len(bodies)), deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)
        self.client.barrier(queue.broker, deadline=time.monotonic() + 5)

    def everything(self) -> list[bytes]:
        """The bodies of all queues, queue by queue."""
        return Follower(self.source()).run()


@contextmanager
def cluster_on(servers: RocketMQ) -> Iterator[Cluster]:
    with ExitStack() as resources:
        client = resources.enter_context(Client(ClientOptions(tuple(servers.name_servers))))
        yield Cluster(servers.name_servers, client, resources)


def write(target: Sink, planned: OpenRange, rows: pa.RecordBatch) -> int:
    """Writes and flushes; how many were delivered."""
    with target.writer(attempt(), planned) as writer:
        assert writer.write(rows, limit()) == len(rows)
        return writer.flush(limit()).records


def found_in(target: Sink, planned: OpenRange, limit_s: float = 10.0) -> OpenRange:
    found = target.scan(Scan(Attempt(UID, 1), (planned,), limit_s))[planned.id]
    return replace(planned, found=found)
