"""Retention: a broker deletes the oldest files of its log, whole ones and never the last.

`expiring` does it to a broker that is killed for it, in seconds. `expire_while_serving` lets a broker do it that stays
at work; it looks for what it may delete every ten seconds, for the first time a minute after its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.rocketmq import Client
from tests.faults.kit.processes import wait_for
from tests.faults.kit.topics import fill
from tests.faults.kit.writers import client_of
from tests.servers import RocketMQ

WHILE_SERVING_S = 80.0
"""The longest that it takes, with what is written first."""
_AT_ONCE = {"fileReservedTime": "0", "deleteWhen": ";".join(f"{hour:02d}" for hour in range(24))}
_PADDING = 24_000
"""Messages that are more than a file of the log holds, as the local stack sets it (64 MiB)."""


@contextmanager
def expiring(cluster: RocketMQ, topic: str) -> Iterator[None]:
    """What stands in the topic is deleted behind the block; what the block stores stays. The broker learns at its start
    what is left."""
    log = cluster.home / "rocketmq" / "store" / "commitlog"
    end = _pad(cluster, topic)
    files = sorted(log.iterdir())  # named after the place of the log at which they begin
    written = max(path for path in files if int(path.name) <= end)
    yield
    cluster.kill()
    for path in files[: files.index(written)]:
        path.unlink()
    cluster.start()


def expire_while_serving(cluster: RocketMQ, topic: str) -> None:
    """Returns when the broker has deleted all that stands in the topic now."""
    _pad(cluster, topic)
    with client_of(cluster) as client, _kept_for_no_time(client, cluster.broker_name):
        ends = {queue: seen.end for queue, seen in client.offsets.bounds(topic).items()}
        wait_for(
            lambda: all(client.offsets.begin(queue) >= end for queue, end in ends.items()),
            f"retention of {topic}",
            WHILE_SERVING_S,
        )


def _pad(cluster: RocketMQ, topic: str) -> int:
    """Writes so much that what stands in the topic is not in the log's last file; where the log ends then."""
    padding = f"{topic}-pad"
    fill(cluster.name_servers, padding, [[b"x" * 3_000] * _PADDING])
    with client_of(cluster) as client:
        (queue,) = client.topics.read_queues(padding)
        last = client.pull(queue, client.offsets.end(queue) - 1, max_messages=1)
    return last.messages[0].physical_offset


@contextmanager
def _kept_for_no_time(client: Client, broker: str) -> Iterator[None]:
    usual = client.brokers.settings(broker)
    client.brokers.change_settings(broker, _AT_ONCE)
    try:
        yield
    finally:
        client.brokers.change_settings(broker, {name: usual[name] for name in _AT_ONCE})
