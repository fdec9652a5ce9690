"""Documents that say where things are, as values: the route of a topic, the brokers of a cluster, and the figures of
queues that brokers report. Built from what `json_reader` gives; anything unexpected raises `WireFormatError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.commands import PERM_READ, PERM_WRITE
from connect_core.rocketmq.wire.document import as_object, as_texts, list_of, number_of, text_of
from connect_core.rocketmq.wire.json_reader import Pairs, read

MASTER_ID = 0
MAX_QUEUES = 65_536
"""More queues than this on one broker is no route but nonsense."""


@dataclass(frozen=True)
class BrokerGroup:
    """A master and its slaves under one name: broker id to "host:port". Without id 0 there is no master."""

    name: str
    cluster: str
    addresses: Mapping[int, str]

    @property
    def master(self) -> str | None:
        return self.addresses.get(MASTER_ID)


@dataclass(frozen=True)
class TopicQueues:
    """How many queues of a topic one broker group has, and what may be done with them."""

    broker: str
    read_queues: int
    write_queues: int
    perm: int

    @property
    def readable(self) -> range:
        return range(self.read_queues if self.perm & PERM_READ else 0)

    @property
    def writable(self) -> range:
        return range(self.write_queues if self.perm & PERM_WRITE else 0)


@dataclass(frozen=True)
class Route:
    """Where a topic lives. `static` topics (logic queues) number their queues across brokers."""

    brokers: Mapping[str, BrokerGroup]
    queues: tuple[TopicQueues, ...]
    static: bool = False


@dataclass(frozen=True)
class Cluster:
    """Every broker group the name server knows, and the groups' names by cluster."""

    brokers: Mapping[str, BrokerGroup] = field(default_factory=dict)
    clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def decode_route(body: bytes | memoryview) -> Route:
    """Answer to 105."""
    document = as_object(read(body), "route")
    groups = [_broker_group(item) for item in list_of(document, "brokerDatas")]
    return Route(
        brokers={group.name: group for group in groups},
        queues=tuple(_topic_queues(item) for item in list_of(document, "queueDatas")),
        static=bool(document.get("topicQueueMappingByBroker")),
    )


def decode_cluster(body: bytes | memoryview) -> Cluster:
    """Answer to 106."""
    document = as_object(read(body), "cluster")
    groups = as_object(document.get("brokerAddrTable") or {}, "brokerAddrTable")
    clusters = as_object(document.get("clusterAddrTable") or {}, "clusterAddrTable")
    return Cluster(
        brokers={name: _broker_group(item) for name, item in groups.items()},
        clusters={name: tuple(as_texts(names)) for name, names in clusters.items()},
    )


def decode_names(body: bytes | memoryview, key: str) -> list[str]:
    """Answers to 206 and 305: the list of names under `key`."""
    return as_texts(as_object(read(body), "list").get(key) or [])


@dataclass(frozen=True)
class QueueFigures:
    """One entry of a table keyed by queues: whose it is, and the numbers that were reported."""

    topic: str
    broker: str
    queue_id: int
    numbers: Mapping[str, int]


def decode_queue_table(body: bytes | memoryview, names: tuple[str, ...]) -> list[QueueFigures]:
    """Answers to 202 and 208: `offsetTable`, a map with objects as keys; `names` are the numbers wanted."""
    table = as_object(read(body), "statistics").get("offsetTable") or Pairs()
    if not isinstance(table, Pairs):
        raise WireFormatError("offsetTable is not keyed by queues")
    return [_queue_figures(key, value, names) for key, value in table]


def _queue_figures(key: object, value: object, names: tuple[str, ...]) -> QueueFigures:
    queue, figures = as_object(key, "queue"), as_object(value, "figures")
    numbers = {name: number_of(figures, name) for name in names}
    return QueueFigures(text_of(queue, "topic"), text_of(queue, "brokerName"), number_of(queue, "queueId"), numbers)


def _broker_group(value: object) -> BrokerGroup:
    item = as_object(value, "broker")
    addresses = as_object(item.get("brokerAddrs") or {}, "brokerAddrs")
    if not all(str(number).isdecimal() and isinstance(address, str) for number, address in addresses.items()):
        raise WireFormatError("brokerAddrs is not a map of broker ids to addresses")
    return BrokerGroup(
        name=text_of(item, "brokerName"),
        cluster=str(item.get("cluster") or ""),
        addresses={int(number): address for number, address in addresses.items()},
    )


def _topic_queues(value: object) -> TopicQueues:
    item = as_object(value, "queues")
    return TopicQueues(
        broker=text_of(item, "brokerName"),
        read_queues=_queue_count(item, "readQueueNums"),
        write_queues=_queue_count(item, "writeQueueNums"),
        perm=number_of(item, "perm"),
    )


def _queue_count(item: dict[str, Any], name: str) -> int:
    count = number_of(item, name)
    if not 0 <= count <= MAX_QUEUES:
        raise WireFormatError(f"Route with {name} {count}")
    return count
