"""Protobuf with the number of a Schema Registry, while a worker is killed and the message changes: a range is finished
with the number that it was begun with, and nobody asks the registry meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from connect_core.rows.protobuf_schemas import message_of
from tests.faults.kit.checker import EXACT, account
from tests.faults.kit.journeys import database_of, receipts_of, run_until_done, struck
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.faults.test_rules import RANGE, sends_to_any, told
from tests.faults.test_transforms import FIELDS, TRANSFORMS, Reshaped, check_rejects, passes
from tests.protobuf import descriptors
from tests.schema_registry import Registry, served
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

SET = descriptors("""syntax = "proto3";
message Row { string n = 1; optional string price = 2; string who_card = 3; string customer = 4; string origin = 5; }
message Other { string n = 1; optional string price = 2; string who_card = 3; string customer = 4; string origin = 9; }
""")
PLACES = {"Row": b"\0", "Other": b"\2\2"}


def value(number: int, message: str, schema: int) -> bytes:
    """By the classes that the library makes of the same descriptors."""
    price = f"{number % 9_000 // 100}.{number % 100:02}"
    made = GetMessageClass(message_of(SET, message))(
        n=f"{number}", price=price, who_card="***", customer=f"Zoë {number}", origin=f"kiln-{number}"
    )
    return b"\0" + schema.to_bytes(4, "big") + PLACES[message] + bytes(made.SerializeToString())


@dataclass
class Messages(Reshaped):
    """One queue of a topic → another topic, as Protobuf."""

    name: str = "as-protobuf"
    where: str = "RocketMQ → RocketMQ as Protobuf"
    message: str = "Row"
    registry: Registry = field(default_factory=Registry)

    def apply(self, rules: Any) -> None:
        with served(self.registry):
            said = {"url": self.registry.url, "auto_register": True, "subject": f"{self.site.topic}-{self.message}"}
            encode = {"format": "protobuf", "message": self.message, "descriptors": SET}
            self.site.apply(
                self.name,
                {
                    "source": {"rocketmq": {"name_servers": self.site.name_servers, "topics": [self.origin]}},
                    "sink": {"rocketmq": self.sink()},
                    "parse": {"format": "json", "fields": FIELDS},
                    "transforms": [*TRANSFORMS, {"cast": {"price": "text"}}],
                    "encode": {**encode, "framing": "registry", "registry": said},
                    "errors": {"tolerance": "all"},
                    "limits": {"range_records": RANGE},
                },
            )

    def sink(self) -> dict[str, Any]:
        return {"name_servers": [self.proxy.address], "topic": self.site.topic, "queues": 1}

    def topics(self) -> list[str]:
        return [self.site.topic]

    def source_of(self, boundary: int) -> dict[str, list[bytes]]:
        topic = self.site.topic
        numbers = filter(passes, range(self.fed))
        return {topic: [topic.encode() + value(n, "Row" if n < boundary else "Other", 1) for n in numbers]}


@pytest.mark.parametrize("sends", [0, 1, 4])
def test_a_range_is_finished_with_the_message_that_it_was_begun_with(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, sends: int
) -> None:
    row.describe("SIGKILL of the worker, then another message is applied", database=database_of(site))
    journey = Messages(site, java_reader, proxy)
    row.where = journey.where
    struck(journey, proxy.set(Trap(sends_to_any(journey.topics()), sends, first=kill_sender)), row)
    journey.message = "Other"
    journey.apply([])
    assert journey.registry.schemas.keys() == {1}, "one file has both messages"
    journey.registry.asked.clear()
    run_until_done(journey)
    row.moves_again()
    ends = [(one["revision"], one["end"]) for one in told(journey)]
    assert {revision for revision, _ in ends} == {1, 2}
    boundary = max(end for revision, end in ends if revision == 1)
    assert boundary < journey.fed, "a range may end early, and then the next one is open at the kill"
    found = account(journey.source_of(boundary), journey.target(), receipts_of(journey), journey.spans())
    assert found.into(row) == EXACT
    check_rejects(journey)
    assert journey.registry.asked == []
