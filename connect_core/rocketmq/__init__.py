"""RocketMQ client library: the remoting protocol without I/O in `wire`, and a thread-safe synchronous client around it.

    with Client(ClientOptions(name_servers=("127.0.0.1:9876",))) as client:
        client.topics.create("orders", queues=4)
        for part in client.read(queue, begin, end, deadline=time.monotonic() + 5):
            ...

Deadlines are moments of `time.monotonic()`. Knows nothing of records, connectors or the ledger.
"""

from connect_core.rocketmq.client import Client
from connect_core.rocketmq.errors import (
    BrokerBusy,
    BrokerFault,
    ConnectionLost,
    GroupMissing,
    InvalidRequest,
    MessageIllegal,
    NoAnswer,
    NoMaster,
    NotSupported,
    PermissionRefused,
    RouteStale,
    SendUnknown,
    TopicMissing,
)
from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.pulling import PullResult, PullStatus
from connect_core.rocketmq.queues import GroupProgress, Queue, QueueBounds
from connect_core.rocketmq.reading import MissingRange, QueueReader, QueueSlice, StoredSlice
from connect_core.rocketmq.sending import Acknowledged, BatchSender, StoreStatus
from connect_core.rocketmq.topics import TopicConfig
from connect_core.rocketmq.waiting import wait_for_any
from connect_core.rocketmq.wire.batch_entries import Batch, BatchEntry, encode_batch, encode_batches
from connect_core.rocketmq.wire.signing import Credentials
from connect_core.rocketmq.wire.stored_message import StoredMessage

__all__ = [
    "Acknowledged",
    "Batch",
    "BatchEntry",
    "BatchSender",
    "BrokerBusy",
    "BrokerFault",
    "Client",
    "ClientOptions",
    "ConnectionLost",
    "Credentials",
    "GroupMissing",
    "GroupProgress",
    "InvalidRequest",
    "MessageIllegal",
    "MissingRange",
    "NoAnswer",
    "NoMaster",
    "NotSupported",
    "PermissionRefused",
    "PullResult",
    "PullStatus",
    "Queue",
    "QueueBounds",
    "QueueReader",
    "QueueSlice",
    "RouteStale",
    "SendUnknown",
    "StoreStatus",
    "StoredMessage",
    "StoredSlice",
    "TopicConfig",
    "TopicMissing",
    "encode_batch",
    "encode_batches",
    "wait_for_any",
]
