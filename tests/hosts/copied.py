"""A topic that is copied into another, queue by queue: what is put in, and what has come out."""

from __future__ import annotations

from collections import Counter

from connect_core import stack
from tests.faults.kit.topics import fill, records_of
from tests.faults.rows import FaultRow
from tests.hosts.hosts import Host, Network
from tests.servers import RocketMQ
from tests.site import Site

QUEUES = 2


def reach_rocketmq(network: Network, host: Host, rocketmq: RocketMQ) -> None:
    """The name server and the broker of this machine are reached there."""
    running = stack.load(rocketmq.home)
    assert running is not None
    servers = [int(address.rpartition(":")[2]) for address in rocketmq.name_servers]
    network.serve(host, *servers, running.part(stack.BROKER).ports["remoting"])


def feed(site: Site, begin: int, end: int) -> None:
    bodies = [[b"%d:%d" % (queue, n) for n in range(begin, end)] for queue in range(QUEUES)]
    fill(site.name_servers, site.topic, bodies)


def document(site: Site) -> dict:  # type: ignore[type-arg]
    copy = {"topic": f"{site.topic}-copy", "queues": QUEUES, "order": "queue"}
    return {
        "source": {"rocketmq": {"name_servers": list(site.name_servers), "topics": [site.topic]}},
        "sink": {"rocketmq": {"name_servers": list(site.name_servers), **copy}},
    }


def require_copied(site: Site, name: str, records: int, row: FaultRow | None = None) -> None:
    """All `records` of each queue once and in order, read without the product's accounts; and no repeat told."""
    copied = sorted(records_of(site.name_servers, f"{site.topic}-copy").values())
    wanted = [[b"%d:%d" % (queue, n) for n in range(records)] for queue in range(QUEUES)]
    counted = Counter(body for queue in copied for body in queue)
    expected = {body for queue in wanted for body in queue}
    lost, repeated = len(expected - counted.keys()), sum(count - 1 for count in counted.values())
    told = sum(receipt["duplicates"] for receipt in site.json("receipts", name)["receipts"])
    if row is not None:
        row.lost, row.repeated, row.duplicates, row.reordered = lost, repeated, told, int(copied != wanted)
    assert (lost, repeated, told) == (0, 0, 0)
    assert copied == wanted
