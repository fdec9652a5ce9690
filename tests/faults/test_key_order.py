"""RocketMQ to RocketMQ by key: one range is spread over four queues, and any of its sends can be the one that is lost.

Compared key by key: each record once, those of a key in one queue and in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from connect_core.rocketmq import Client, ClientOptions
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command
from tests.faults.kit.checker import EXACT, Span
from tests.faults.kit.journeys import (
    SHORT_LEASES,
    TRY_AGAIN,
    arrived,
    begun_and_trapped,
    database_of,
    made_up_for,
    numbered,
    struck,
)
from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender, sends_to
from tests.faults.kit.topics import JavaReader, fill, records_of
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

QUEUES, KEYS = 4, 40
LOST, LAST = 1, 3
"""The queue whose send is lost, and the last of a round. Each gets 9 of 40 keys: one batch of every 4,000 records."""


@dataclass
class ByKey:
    """One queue of a topic → four of another one, behind a line that can be broken. A range has two rounds of sends."""

    site: Site
    reader: JavaReader
    proxy: RocketMQProxy
    order: str
    records: int = 12_000
    name: str = "by-key"
    where: str = "RocketMQ → RocketMQ by key"
    fed: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site.settings.update(SHORT_LEASES)
        self.origin = f"{self.site.topic}-in"
        self.feed(0, self.records)
        servers = self.site.name_servers
        target = {"name_servers": [self.proxy.address], "topic": self.site.topic, "queues": QUEUES}
        self.site.apply(
            self.name,
            {
                "source": {"rocketmq": {"name_servers": servers, "topics": [self.origin]}},
                "sink": {"rocketmq": {**target, "order": self.order}},
                "limits": {"range_records": 8_000},
            },
        )

    def feed(self, begin: int, end: int) -> None:
        name = {"key": "KEYS", "sharding_key": "__SHARDINGKEY"}[self.order]
        more = numbered(0, begin, end)
        properties = [f"{name}\x01{key_of(record)}\x02".encode() for record in more]
        fill(self.site.name_servers, self.origin, [more], [properties])
        self.fed += more

    def source(self) -> dict[str, list[bytes]]:
        by_key: dict[str, list[bytes]] = {}
        for record in self.fed:
            by_key.setdefault(key_of(record), []).append(record)
        return by_key

    def spans(self) -> dict[str, Span]:
        with Client(ClientOptions(name_servers=tuple(self.site.name_servers))) as client:
            return {str(queue): Span(0, seen.end) for queue, seen in client.offsets.bounds(self.origin).items()}

    def target(self) -> dict[str, list[bytes]]:
        return arrived(self.site, self.reader)


def key_of(record: bytes) -> str:
    return f"key-{number_of(record) % KEYS}"


def number_of(record: bytes) -> int:
    return int(record.split()[3])


def sends_to_queue(topic: str, number: int) -> Callable[[Command], bool]:
    def matches(command: Command) -> bool:
        fields = command.fields
        return command.code == RequestCode.SEND_BATCH_MESSAGE and fields["b"] == topic and int(fields["e"]) == number

    return matches


@pytest.mark.parametrize("order", ["key", "sharding_key"])
@pytest.mark.parametrize("passes", [0, 1, 5])
def test_a_worker_killed_in_the_middle_of_a_range_by_key_repeats_nothing(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, passes: int, order: str
) -> None:
    row.describe(f"SIGKILL of the worker behind send {passes + 1} of a range", database=database_of(site))
    journey = ByKey(site, java_reader, proxy, order)
    row.where = journey.where
    trap = proxy.set(Trap(sends_to(site.topic), passes, first=kill_sender))
    struck(journey, trap, row)
    assert made_up_for(journey, row) == EXACT


@pytest.mark.parametrize("killed", [False, True], ids=["given up", "killed"])
@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.fault(costly=True)
def test_one_lost_send_among_stored_ones_is_made_up_for(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, rounds: int, killed: bool
) -> None:
    """The send to one queue never arrives, those to the others that were begun behind it are stored."""
    how = "its sender is killed when the others are stored" if killed else "its sender gives up"
    row.describe(f"one send lost among stored ones; {how}", database=database_of(site))
    journey = ByKey(site, java_reader, proxy, "key")
    row.where = journey.where
    lost = proxy.set(Trap(sends_to_queue(site.topic, LOST), rounds, forward=False))
    last = proxy.set(Trap(lambda command: lost.caught and sends_to_queue(site.topic, LAST)(command)))
    if killed:
        last.first = kill_sender
    driver = begun_and_trapped(journey, lost)
    wait_for(lambda: last.caught, "the last send of the round")
    last.wait_for_answer()
    row.strikes()
    assert ended(driver) in TRY_AGAIN
    check_one_queue_is_behind(journey)
    assert made_up_for(journey, row) == EXACT
    told = site.json("receipts", journey.name)["receipts"]
    assert sum(receipt["deduplicated"] for receipt in told) > 0
    assert any(len(receipt["where"]) == QUEUES for receipt in told)


def check_one_queue_is_behind(journey: ByKey) -> None:
    """What makes this another case than a range that stops: records are missing in front of others that are stored."""
    there = {
        name.rpartition("/")[2]: [number_of(record) for record in found] for name, found in stored(journey).items()
    }
    present = {number for numbers in there.values() for number in numbers}
    first_missing = min(set(range(journey.records)) - present)
    assert any(max(numbers) > first_missing for name, numbers in there.items() if name != str(LOST)), there.keys()


def stored(journey: ByKey) -> dict[str, list[bytes]]:
    return records_of(journey.site.name_servers, journey.site.topic)
