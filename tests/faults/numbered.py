"""Payloads with the number of a Schema Registry, while a worker is killed and the schema changes: a range is finished
with the number that it was begun with, and nobody asks the registry meanwhile. Of which format, its test says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tests.faults.kit.checker import EXACT, account
from tests.faults.kit.journeys import receipts_of, run_until_done, struck
from tests.faults.kit.proxy import Trap, kill_sender
from tests.faults.rows import FaultRow
from tests.faults.test_rules import RANGE, sends_to_any, told
from tests.faults.test_transforms import FIELDS, TRANSFORMS, Reshaped, check_rejects, passes
from tests.schema_registry import Registry, served


@dataclass
class Numbered(Reshaped):
    """One queue of a topic → another topic."""

    record: str = "Row"
    """What the schema calls a record: another one is another schema."""
    registry: Registry = field(default_factory=Registry)

    def encode(self) -> dict[str, Any]:
        """The format, and what says the schema."""
        raise NotImplementedError

    def value(self, number: int, *, first: bool) -> bytes:
        """With its number, of the first or the second schema."""
        raise NotImplementedError

    def apply(self, rules: Any) -> None:
        with served(self.registry):
            super().apply(rules)

    def parts(self) -> dict[str, Any]:
        said = {"url": self.registry.url, "auto_register": True, "subject": f"{self.site.topic}-{self.record}"}
        return {
            "parse": {"format": "json", "fields": FIELDS},
            "transforms": TRANSFORMS,
            "encode": {**self.encode(), "framing": "registry", "registry": said},
            "errors": {"tolerance": "all"},
        }

    def topics(self) -> list[str]:
        return [self.site.topic]

    def source_of(self, boundary: int) -> dict[str, list[bytes]]:
        topic = self.site.topic
        return {topic: [topic.encode() + self.value(n, first=n < boundary) for n in range(self.fed) if passes(n)]}


def check_finished_as_begun(journey: Numbered, row: FaultRow, sends: int, schemas: Collection[int]) -> None:
    """`schemas`: the numbers that the registry has given in the end."""
    row.where = journey.where
    struck(journey, journey.proxy.set(Trap(sends_to_any(journey.topics()), sends, first=kill_sender)), row)
    journey.record = "Other"
    journey.apply([])
    journey.feed(journey.fed, journey.fed + RANGE)  # on a busy machine the open range may have had all that was left
    assert journey.registry.schemas.keys() == set(schemas)
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
