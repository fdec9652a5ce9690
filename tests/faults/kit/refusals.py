"""Brokers that do not take what they are sent, and say so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.rocketmq import BrokerBusy, Queue, SendUnknown, encode_batch
from tests.faults.kit.writers import FOREIGN, client_of
from tests.servers import RocketMQ


def refusal(cluster: RocketMQ, topic: str) -> str:
    """What the broker says to one message for the topic's first queue when it is busy, or that it gave no answer; empty
    when it has stored it."""
    with client_of(cluster) as client:
        sender = client.sender(Queue(topic, cluster.broker_name, 0))
        sender.submit(encode_batch([FOREIGN], [b""]), deadline=time.monotonic() + 5)
        try:
            sender.finish(deadline=time.monotonic() + 0.1)
        except (BrokerBusy, SendUnknown) as error:
            return error.what
    return ""


@contextmanager
def busy(cluster: RocketMQ, topic: str) -> Iterator[None]:
    """Every send is answered with SYSTEM_BUSY, and nothing of it is stored: a broker that was started without a pool of
    buffers has none left from the moment at which it is told to use it."""
    with client_of(cluster) as client:
        client.brokers.change_settings(cluster.broker_name, {"transientStorePoolEnable": "true"})
        try:
            assert "code 2: [REJECTREQUEST]system busy" in refusal(cluster, topic)
            yield
        finally:
            client.brokers.change_settings(cluster.broker_name, {"transientStorePoolEnable": "false"})
