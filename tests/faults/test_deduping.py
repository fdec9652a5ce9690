"""Duplicates that are left out within a range, while workers are killed: what arrives is what the ranges say that were
settled, each record once, wherever attempts began their batches and ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.copying import Copying
from tests.faults.kit.checker import EXACT
from tests.faults.kit.journeys import database_of, made_up_for, struck
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import JavaReader
from tests.faults.one_topic import OneTopic
from tests.faults.rows import FaultRow
from tests.faults.test_rules import sends_to_any, told
from tests.site import Site

pytestmark = pytest.mark.fault

PARSE = {"format": "json", "fields": {"k": "int64", "n": "int64"}}
STEPS: list[dict[str, Any]] = [{"dedupe": ["k"]}]
KEYS = 2_500


def body_of(number: int) -> bytes:
    """Every key comes again, in another order each time."""
    return b'{"k":%d,"n":%d}' % (number * 7 % KEYS, number)


def first_of(begin: int, end: int) -> list[int]:
    """By hand: the records of a range that go on."""
    seen: set[int] = set()
    return [n for n in range(begin, end) if not (n * 7 % KEYS in seen or seen.add(n * 7 % KEYS))]  # type: ignore[func-returns-value]


@dataclass
class Deduped(OneTopic):
    """One queue of a topic → one queue of another."""

    name: str = "deduping"
    where: str = "RocketMQ → RocketMQ, without duplicates of a range"

    def parts(self) -> dict[str, Any]:
        return {"parse": PARSE, "transforms": STEPS}

    def body(self, number: int) -> bytes:
        return body_of(number)

    def source(self) -> dict[str, list[bytes]]:
        """By the ranges that were settled."""
        ranges = sorted((one["begin"], one["end"]) for one in told(self))
        return {self.site.topic: [body_of(n) for begin, end in ranges for n in first_of(begin, end)]}


@pytest.mark.server
@pytest.mark.parametrize("sends", [0, 1, 2])
def test_a_worker_killed_between_two_sends_leaves_out_the_same_duplicates(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, sends: int
) -> None:
    row.describe(f"SIGKILL of the worker, behind send {sends + 1}", database=database_of(site))
    journey = Deduped(site, java_reader, proxy)
    row.where = journey.where
    struck(journey, proxy.set(Trap(sends_to_any(journey.topics()), sends, first=kill_sender)), row)
    assert made_up_for(journey, row) == EXACT
    receipts = told(journey)
    assert sum(one["read"] for one in receipts) == journey.fed
    assert sum(one["filtered"] for one in receipts) == journey.fed - len(journey.source()[site.topic]) > 0


@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "settled"])
@pytest.mark.fault(costly=True)
def test_lines_without_duplicates_of_a_range(bare_site: Site, row: FaultRow, step: str) -> None:
    row.describe(f"killed at {step}", where="file → file, without duplicates of a range", database="SQLite")
    copying = Copying(bare_site)
    copying.apply(limits={"range_records": 3_000}, parse=PARSE, transforms=STEPS)
    lines = [body_of(number) + b"\n" for number in range(8_000)]
    copying.log.write_bytes(b"".join(lines))
    bare_site.fault(step)
    with copying.start() as driver:
        driver.communicate(timeout=120)
    assert driver.returncode != 0
    row.strikes()
    copying.run()
    row.moves_again()
    place, numbers = 0, {}
    for number, line in enumerate(lines):
        numbers[place] = number
        place += len(line)
    numbers[place] = len(lines)
    ranges = [(numbers[one.receipt.begin], numbers[one.receipt.end]) for one in copying.receipts()]
    expected = [body_of(n) for begin, end in ranges for n in first_of(begin, end)]
    assert copying.delivered() == expected
    assert len(expected) < len(lines)
    row.lost = row.repeated = row.reordered = row.duplicates = 0
