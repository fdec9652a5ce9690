"""Rules: one record goes to several topics, and whoever writes it can be killed between its outputs.

Compared topic by topic: each output once and in order, and the receipts count records and outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command
from tests.faults.kit.checker import EXACT, Account, Span, account
from tests.faults.kit.journeys import (
    SHORT_LEASES,
    TRY_AGAIN,
    begun_and_trapped,
    database_of,
    made_up_for,
    receipts_of,
    run_until_done,
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

RANGE = 6_000
Rules = list[dict[str, str]]


def number_of(body: bytes) -> int:
    return int(body.split()[1])


def body_of(number: int) -> bytes:
    return b'{"n": %d , "heat": %d, "pad": "%s"}' % (number, number % 10, b"x" * 200)


@dataclass
class Ruled:
    """One queue of a topic → three topics, behind a line that can be broken. A record has one to three outputs."""

    site: Site
    reader: JavaReader
    proxy: RocketMQProxy
    records: int = 10_000
    name: str = "by-rules"
    where: str = "RocketMQ → RocketMQ by rules"
    partitions: int = 1
    tasks: int = 1
    fed: int = 0
    rules: Rules = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site.settings.update(SHORT_LEASES)
        self.origin = f"{self.site.topic}-in"
        self.hot, self.cold = f"{self.site.topic}-hot", f"{self.site.topic}-cold"
        self.feed(0, self.records)
        self.apply(
            [
                {"name": "all", "tags": "seen"},
                {"name": "hot", "when": "$.heat >= 5", "to": self.hot},
                {"name": "cold", "when": "$.heat IN ('9') OR $.heat <= 7", "to": self.cold},
            ]
        )

    def apply(self, rules: Rules) -> None:
        self.rules = rules
        self.site.apply(
            self.name,
            {
                "source": {"rocketmq": {"name_servers": self.site.name_servers, "topics": [self.origin]}},
                "sink": {
                    "rocketmq": {"name_servers": [self.proxy.address], "topic": self.site.topic, "queues": 1},
                },
                "limits": {"range_records": RANGE},
                **self.parts(),
            },
        )

    def parts(self) -> dict[str, Any]:
        """Of the document, beside its ends."""
        return {"rules": self.rules}

    def feed(self, begin: int, end: int) -> None:
        fill(self.site.name_servers, self.origin, [[self.body(n) for n in range(begin, end)]])
        self.fed = end

    def body(self, number: int) -> bytes:
        return body_of(number)

    def topics(self) -> list[str]:
        return [self.site.topic, self.hot, self.cold]

    def source(self) -> dict[str, list[bytes]]:
        return {topic: [said(topic, n) for n in range(self.fed) if goes_to(self, topic, n)] for topic in self.topics()}

    def spans(self) -> dict[str, Span]:
        with Client(ClientOptions(name_servers=tuple(self.site.name_servers))) as client:
            return {str(queue): Span(0, seen.end) for queue, seen in client.offsets.bounds(self.origin).items()}

    def target(self) -> dict[str, list[bytes]]:
        """By the two clients, which have to agree; each output says where it is."""
        found: dict[str, list[bytes]] = {}
        for topic in self.topics():
            theirs = self.reader.records(topic)
            assert records_of(self.site.name_servers, topic) == theirs
            found |= {queue: [said(topic, number_of(body)) for body in bodies] for queue, bodies in theirs.items()}
        return found


def said(topic: str, number: int) -> bytes:
    return b"%s %d" % (topic.encode(), number)


def goes_to(journey: Ruled, topic: str, number: int) -> bool:
    heat = number % 10
    return {journey.site.topic: True, journey.hot: heat >= 5, journey.cold: heat in (0, 1, 2, 3, 4, 5, 6, 7, 9)}[topic]


def sends_to_any(topics: list[str]) -> Callable[[Command], bool]:
    def matches(command: Command) -> bool:
        return command.code == RequestCode.SEND_BATCH_MESSAGE and command.fields["b"] in topics

    return matches


@pytest.mark.parametrize("passes", [0, 1, 2, 4, 7])
def test_a_worker_killed_between_the_outputs_of_a_record_repeats_nothing(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, passes: int
) -> None:
    """A round holds all outputs of its records, a send those of one topic: behind one, others are missing."""
    row.describe(f"SIGKILL of the worker between two outputs, behind send {passes + 1}", database=database_of(site))
    journey = Ruled(site, java_reader, proxy)
    row.where = journey.where
    trap = proxy.set(Trap(sends_to_any(journey.topics()), passes, first=kill_sender))
    struck(journey, trap, row)
    if passes < 2:  # behind a later send a round may just be whole
        check_some_records_are_in_part(journey)
    assert made_up_for(journey, row) == EXACT
    check_counts(journey)


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.fault(costly=True)
def test_one_lost_send_among_stored_ones_of_other_topics_is_made_up_for(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, which: int
) -> None:
    row.describe(f"the send to topic {which + 1} of three is lost; its sender gives up", database=database_of(site))
    journey = Ruled(site, java_reader, proxy)
    row.where = journey.where
    lost = proxy.set(Trap(sends_to_any([journey.topics()[which]]), 1, forward=False))
    driver = begun_and_trapped(journey, lost)
    row.strikes()
    assert ended(driver) in TRY_AGAIN
    assert made_up_for(journey, row) == EXACT
    check_counts(journey)


@pytest.mark.fault(costly=True)
def test_a_rule_that_changes_under_an_open_range_counts_behind_it(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow
) -> None:
    """What was begun under the old rules is finished under them; the new ones begin at the next range."""
    row.describe("SIGKILL of the worker, then another set of rules is applied", database=database_of(site))
    journey = Ruled(site, java_reader, proxy)
    row.where = journey.where
    trap = proxy.set(Trap(sends_to_any(journey.topics()), 2, first=kill_sender))
    struck(journey, trap, row)
    journey.apply([{"name": "cold", "when": "$.heat < 2", "to": journey.cold}])
    run_until_done(journey)
    row.moves_again()
    by_revision = [(one["revision"], one["begin"], one["end"]) for one in told(journey)]
    assert {revision for revision, _, _ in by_revision} == {1, 2}
    boundary = max(end for revision, _, end in by_revision if revision == 1)
    assert boundary <= RANGE, "a new revision begins behind the range that was open"
    assert account_of_both(journey, boundary).into(row) == EXACT


def told(journey: Ruled) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = journey.site.json("receipts", journey.name, "--last", "1000")["receipts"]
    return found


def account_of_both(journey: Ruled, boundary: int) -> Account:
    """Under the old rules before the boundary, under the new one behind it."""
    source = {
        topic: [
            said(topic, n)
            for n in range(journey.fed)
            if (goes_to(journey, topic, n) if n < boundary else topic == journey.cold and n % 10 < 2)
        ]
        for topic in journey.topics()
    }
    return account(source, journey.target(), receipts_of(journey), journey.spans())


def check_some_records_are_in_part(journey: Ruled) -> None:
    """What makes this another case than a range that stops between records."""
    there = {one for records in stored(journey).values() for one in records}
    parts = [
        {said(topic, n) in there for topic in journey.topics() if goes_to(journey, topic, n)}
        for n in range(journey.records)
    ]
    assert any(len(part) == 2 for part in parts), f"{len(there)} outputs are there, none in part"


def stored(journey: Ruled) -> dict[str, list[bytes]]:
    servers = journey.site.name_servers
    with Client(ClientOptions(name_servers=tuple(servers))) as client:
        there = [topic for topic in journey.topics() if client.topics.exists(topic)]
    return {
        topic: [said(topic, number_of(body)) for bodies in records_of(servers, topic).values() for body in bodies]
        for topic in there
    }


def check_counts(journey: Ruled) -> None:
    receipts = told(journey)
    assert sum(one["passed"] for one in receipts) == journey.fed
    outputs = sum(len(records) for records in journey.source().values())
    assert sum(one["emitted"] for one in receipts) == outputs > journey.fed
    assert sum(one["deduplicated"] for one in receipts) > 0


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("passes", [0, 1])
def test_a_message_of_mqtt_that_was_written_in_part_comes_again(
    site: Site, mosquitto: MqttBroker, proxy: RocketMQProxy, row: FaultRow, passes: int
) -> None:
    """It was not acknowledged, so it is delivered with all its outputs; those that were there are told as repeats."""
    row.describe(f"SIGKILL of the worker between two outputs, behind send {passes + 1}", database=database_of(site))
    row.where = "MQTT (Mosquitto) → RocketMQ by rules"
    site.settings.update(SHORT_LEASES)
    topics = [site.topic, f"{site.topic}-too"]
    site.apply(
        "devices",
        {
            "source": {"mqtt": {"host": mosquitto.host, "port": mosquitto.port, "filters": ["plant/#"]}},
            "sink": {"rocketmq": {"name_servers": [proxy.address], "topic": site.topic, "queues": 1}},
            "rules": [{"name": "all"}, {"name": "too", "filter": "plant/+/temp", "when": "$.n >= 0", "to": topics[1]}],
        },
    )
    site.waybill("run", "devices", "--engine", "inline")
    bodies = [b'{"n": %d}' % n for n in range(300)]
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("plant/7/temp", bodies)
        all_of_them.wait()
    trap = proxy.set(Trap(sends_to_any(topics), passes, first=kill_sender))
    killed = site.start("run", "devices", "--engine", "inline")
    wait_for(lambda: trap.caught or killed.poll() is not None, "a send to catch")
    row.strikes()
    assert ended(killed) in TRY_AGAIN
    assert trap.caught
    site.waybill("run", "devices", "--engine", "inline")
    row.moves_again()
    site.waybill("run", "devices", "--engine", "inline")
    there = [Counter(body for one in records_of(site.name_servers, topic).values() for body in one) for topic in topics]
    receipts = site.json("receipts", "devices", "--last", "1000")["receipts"]
    row.lost = sum(len({*bodies} - found.keys()) for found in there)
    row.repeated = sum(found.total() - len(found) for found in there)
    row.reordered, row.duplicates = 0, sum(one["duplicates"] for one in receipts)
    told_of = sum(one["possible_duplicates"] for one in receipts)
    row.condition = f"reported: {told_of} possible duplicates" if row.repeated else ""
    assert (row.lost, row.duplicates) == (0, 0)
    assert row.repeated <= told_of
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == sum(found.total() for found in there)
