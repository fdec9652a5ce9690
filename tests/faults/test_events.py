"""Records become CloudEvents with attributes in properties while workers are killed: each event is there once, with the
id that its record always has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.kit.checker import EXACT
from tests.faults.kit.journeys import database_of, made_up_for, struck
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.faults.test_rules import sends_to_any
from tests.faults.test_transforms import BAD_EVERY, FIELDS, Reshaped, check_rejects
from tests.site import Site
from tests.system.replication.test_rules import arrived

pytestmark = [pytest.mark.server, pytest.mark.fault]

TRANSFORMS: list[dict[str, Any]] = [
    {"drop": ["who", "price"]},
    {"hoist": "data"},
    {"set": {"id": "{$.data.n}", "source": "/kiln", "type": "kiln.fired", "heat": "{$.data.heat}"}},
]


@dataclass
class Told(Reshaped):
    """One queue of a topic → another topic, as events in binary mode."""

    name: str = "as-events"
    where: str = "RocketMQ → RocketMQ as CloudEvents"

    def parts(self) -> dict[str, Any]:
        return {
            "parse": {"format": "json", "fields": FIELDS},
            "transforms": TRANSFORMS,
            "encode": {"format": "cloudevents", "mode": "binary"},
            "errors": {"tolerance": "all"},
        }

    def topics(self) -> list[str]:
        return [self.site.topic]

    def numbers(self) -> list[int]:
        return [n for n in range(self.fed) if n % BAD_EVERY]

    def source(self) -> dict[str, list[bytes]]:
        topic = self.site.topic
        return {topic: [topic.encode() + b'{"heat":%d,"n":%d}' % (n % 10, n) for n in self.numbers()]}


@pytest.mark.parametrize("sends", [0, 1, 4])
def test_events_that_are_written_again_have_the_ids_that_they_had(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, sends: int
) -> None:
    row.describe(f"SIGKILL of the worker, behind send {sends + 1}", database=database_of(site))
    journey = Told(site, java_reader, proxy)
    row.where = journey.where
    struck(journey, proxy.set(Trap(sends_to_any(journey.topics()), sends, first=kill_sender)), row)
    assert made_up_for(journey, row) == EXACT
    check_rejects(journey)
    found = [(one["CE_id"], one["CE_source"], one["CE_heat"]) for one in arrived(site, site.topic)]
    assert found == [(f"{n}", "/kiln", f"{n % 10}") for n in journey.numbers()]
