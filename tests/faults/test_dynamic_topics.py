"""Topics that only records name, and SIGKILL while they are created, planned, written and settled.

Compared topic by topic: a topic in which nobody had planned to write is one in which nobody would look afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from connect_core.ledger import Ledger
from connect_core.rocketmq import Client, ClientOptions
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command
from tests.faults.kit.checker import EXACT, Span
from tests.faults.kit.journeys import (
    SHORT_LEASES,
    TRY_AGAIN,
    database_of,
    made_up_for,
    receipts_of,
    struck,
)
from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import JavaReader, fill, records_of
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import MqttBroker
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

RECORDS = 10_000
DEVICES = 12
POINTS = {
    "before-planned": ("after topics are created, before they are planned", 1),
    "planned": ("after topics are planned, before anything is written", 1),
    "batch-written": ("in mid range", 0),
    "before-receipt": ("after the last write, before the receipt", 1),
    "executed": ("after the receipt, before settle", 1),
    "settled": ("after settle", 1),
}
"""In words, and how often it is passed: a first range of a run pins no topic, and nothing is written of it."""


def device_of(number: int) -> int:
    """A new one now and then, beside those that there are."""
    return number % (1 + number * DEVICES // RECORDS)


def body_of(number: int) -> bytes:
    return b'{"device": %d, "n": %d , "pad": "%s"}' % (device_of(number), number, b"x" * 200)


@dataclass
class Named:
    """One queue of a topic → a topic for each device, behind a line that can be broken."""

    site: Site
    reader: JavaReader
    proxy: RocketMQProxy
    records: int = RECORDS
    name: str = "by-device"
    where: str = "RocketMQ → topics that records name"
    partitions: int = 1
    tasks: int = 1
    fed: int = 0
    apart: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site.settings.update(SHORT_LEASES)
        self.origin, self.prefix = f"{self.site.topic}-in", f"{self.site.topic}-of-"
        self.feed(0, self.records)
        sink = {"name_servers": [self.proxy.address], "topic": self.site.topic, "queues": 1}
        self.site.apply(
            self.name,
            {
                "source": {"rocketmq": {"name_servers": self.site.name_servers, "topics": [self.origin]}},
                "sink": {"rocketmq": {**sink, "dynamic_topics": "create"}},
                "rules": [{"name": "each", "to": f"{self.prefix}{{$.device}}"}],
                "limits": {"range_records": 6_000},
            },
        )

    def feed(self, begin: int, end: int) -> None:
        fill(self.site.name_servers, self.origin, [[body_of(n) for n in range(begin, end)]])
        self.fed = end

    def source(self) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for number in range(self.fed):
            found.setdefault(f"{self.prefix}{device_of(number)}", []).append(body_of(number))
        return found

    def spans(self) -> dict[str, Span]:
        with Client(ClientOptions(name_servers=tuple(self.site.name_servers))) as client:
            return {str(queue): Span(0, seen.end) for queue, seen in client.offsets.bounds(self.origin).items()}

    def topics(self) -> list[str]:
        with Client(ClientOptions(name_servers=tuple(self.site.name_servers))) as client:
            return [name for name in client.topics.names() if name.startswith(self.prefix)]

    def target(self) -> dict[str, list[bytes]]:
        """By the two clients, which have to agree."""
        found: dict[str, list[bytes]] = {}
        for topic in self.topics():
            theirs = self.reader.records(topic)
            assert records_of(self.site.name_servers, topic) == theirs
            found |= theirs
        return found


def pinned_before_written(site: Site, name: str) -> bool:
    """Whether each receipt tells only of topics that its range has pinned."""
    with Ledger.open(site.database_url) as ledger:
        uid = ledger.connector(name).uid
        return all(
            {place.partition("/")[0] for place in one.receipt.where} <= one.pins.target["to"].keys()
            for one in ledger.receipts(uid, stream="live", limit=100_000)
        )


def sends_to(prefix: str) -> object:
    def matches(command: Command) -> bool:
        return command.code == RequestCode.SEND_BATCH_MESSAGE and command.fields["b"].startswith(prefix)

    return matches


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_while_topics_are_created_planned_or_written(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, point: str
) -> None:
    words, passes = POINTS[point]
    row.describe(f"SIGKILL {words}", database=database_of(site))
    journey = Named(site, java_reader, proxy)
    row.where = journey.where
    site.fault(point, "kill", passes)
    killed = site.start("run", journey.name)
    row.strikes()
    assert ended(killed) in (*TRY_AGAIN, -9)
    assert (site.home / "faults" / f"{point}.taken").exists()
    assert made_up_for(journey, row) == EXACT
    assert pinned_before_written(site, journey.name)


@pytest.mark.parametrize("passes", [0, 1, 3, 6, 11])
@pytest.mark.fault(costly=True)
def test_a_kill_between_sends_to_topics_that_records_name(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, passes: int
) -> None:
    """The next attempt knows them by what the range has pinned."""
    row.describe(f"SIGKILL of the worker behind send {passes + 1}", database=database_of(site))
    journey = Named(site, java_reader, proxy)
    row.where = journey.where
    trap = proxy.set(Trap(sends_to(journey.prefix), passes, first=kill_sender))  # type: ignore[arg-type]
    struck(journey, trap, row)
    assert made_up_for(journey, row) == EXACT
    assert sum(one["deduplicated"] for one in receipts_of(journey)) > 0  # type: ignore[misc]
    assert pinned_before_written(site, journey.name)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("point", ["before-planned", "planned", "batch-durable", "acknowledged", "executed", "settled"])
def test_a_kill_while_devices_appear(site: Site, mosquitto: MqttBroker, row: FaultRow, point: str) -> None:
    """What MQTT has pushed, and was not acknowledged, comes again; what was is in topics that are looked into."""
    row.describe(f"SIGKILL at {point} while new devices appear", database=database_of(site))
    row.where = "MQTT (Mosquitto) → topics that records name"
    site.settings.update(SHORT_LEASES)
    prefix = f"{site.topic}-of-"
    sink = {"name_servers": site.name_servers, "topic": site.topic, "queues": 1, "dynamic_topics": "create"}
    site.apply(
        "devices",
        {
            "source": {"mqtt": {"host": mosquitto.host, "port": mosquitto.port, "filters": ["devices/+/telemetry"]}},
            "sink": {"rocketmq": sink},
            "rules": [{"name": "each", "to": f"{prefix}{{topic[2]}}"}],
        },
    )
    site.waybill("run", "devices", "--engine", "inline")
    sent: dict[str, list[bytes]] = {}

    def publish(numbers: range) -> None:
        with devices(mosquitto) as all_of_them:
            for number in numbers:
                sent.setdefault(f"d{number % (2 + number // 100)}", []).append(b"%d" % number)
                all_of_them.publish(f"devices/d{number % (2 + number // 100)}/telemetry", [b"%d" % number])
            all_of_them.wait()

    publish(range(300))
    site.fault(point, "kill", 1)
    killed = site.start("run", "devices", "--engine", "inline", "--window", "30s")
    wait_for(lambda: any(bodies for bodies in stored(site, prefix).values()) or killed.poll() is not None, "a record")
    publish(range(300, 600))
    row.strikes()
    assert ended(killed) in (*TRY_AGAIN, -9)
    assert (site.home / "faults" / f"{point}.taken").exists()
    site.waybill("run", "devices", "--engine", "inline")
    row.moves_again()
    site.waybill("run", "devices", "--engine", "inline")
    there = stored(site, prefix)
    receipts = site.json("receipts", "devices", "--last", "1000")["receipts"]
    row.lost = sum(len({*bodies} - {*there.get(device, ())}) for device, bodies in sent.items())
    row.repeated = sum(len(bodies) - len({*bodies}) for bodies in there.values())
    row.reordered, row.duplicates = 0, sum(one["duplicates"] for one in receipts)
    told_of = sum(one["possible_duplicates"] for one in receipts)
    row.condition = f"reported: {told_of} possible duplicates" if row.repeated else ""
    assert row.lost == 0
    assert row.repeated <= told_of
    assert {device: {*bodies} for device, bodies in there.items()} == {one: {*bodies} for one, bodies in sent.items()}
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == sum(map(len, there.values()))
    assert pinned_before_written(site, "devices")


def stored(site: Site, prefix: str) -> dict[str, list[bytes]]:
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        topics = [name for name in client.topics.names() if name.startswith(prefix)]
    return {
        topic.removeprefix(prefix): [
            body for bodies in records_of(site.name_servers, topic).values() for body in bodies
        ]
        for topic in topics
    }
