"""Records with a list become one record for each item, while workers are killed: each piece arrives once and in order,
and a record is there as a whole or not at all when its range ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.copying import Copying
from tests.faults.kit.checker import EXACT
from tests.faults.kit.journeys import database_of, lines_of, made_up_for, struck
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import JavaReader, fill
from tests.faults.one_topic import OneTopic
from tests.faults.rows import FaultRow
from tests.faults.test_rules import sends_to_any, told
from tests.site import Site

pytestmark = pytest.mark.fault

FIELDS = {"id": "int64", "items": [{"n": "int64", "pad": "text"}]}
STEPS: list[dict[str, Any]] = [{"explode": "items"}, {"flatten": "_"}, {"filter": "$.items_n <> 3"}]
PARTS: dict[str, Any] = {
    "parse": {"format": "json", "fields": FIELDS},
    "transforms": STEPS,
    "errors": {"tolerance": "all"},
}
PAD = "x" * 120
BAD_EVERY = 97


def body_of(number: int) -> bytes:
    """Of 0 to 6 items; every 97th is not of the declared types."""
    items = [{"n": n, "pad": PAD} for n in range(number % 7)]
    return json.dumps({"id": number if number % BAD_EVERY else "bad", "items": items}).encode()


def pieces_of(number: int) -> list[bytes]:
    """Written by hand."""
    if not number % BAD_EVERY:
        return []
    return [f'{{"id":{number},"items_n":{n},"items_pad":"{PAD}"}}'.encode() for n in range(number % 7) if n != 3]


def check_counts(receipts: list[dict[str, Any]], records: int) -> None:
    pieces = [len(pieces_of(number)) for number in range(records)]
    bad = len(range(0, records, BAD_EVERY))

    def total(name: str) -> int:
        return sum(one[name] for one in receipts)

    assert (total("read"), total("rejected")) == (records, bad)
    assert total("filtered") == pieces.count(0) - bad
    assert total("delivered") + total("deduplicated") == sum(pieces)


@dataclass
class Exploded(OneTopic):
    """One queue of a topic → one queue of another: a record has no output, or up to five."""

    name: str = "exploding"
    where: str = "RocketMQ → RocketMQ, exploded"

    def parts(self) -> dict[str, Any]:
        return PARTS

    def body(self, number: int) -> bytes:
        return body_of(number)

    def source(self) -> dict[str, list[bytes]]:
        return {self.site.topic: [piece for number in range(self.fed) for piece in pieces_of(number)]}


@pytest.mark.server
@pytest.mark.parametrize("sends", [0, 1, 3, 6])
def test_a_worker_killed_between_the_pieces_of_a_record_repeats_and_loses_nothing(
    site: Site, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow, sends: int
) -> None:
    row.describe(f"SIGKILL of the worker, behind send {sends + 1}", database=database_of(site))
    journey = Exploded(site, java_reader, proxy)
    row.where = journey.where
    struck(journey, proxy.set(Trap(sends_to_any(journey.topics()), sends, first=kill_sender)), row)
    assert made_up_for(journey, row) == EXACT
    check_counts(told(journey), journey.fed)


@pytest.mark.fault(costly=True)
@pytest.mark.server
@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "executed", "settled"])
def test_a_topic_exploded_into_a_file_has_each_piece_once(site: Site, row: FaultRow, step: str) -> None:
    row.describe(f"killed at {step}", where="RocketMQ → file, exploded", database=database_of(site))
    records, origin = 8_000, f"{site.topic}-in"
    fill(site.name_servers, origin, [[body_of(n) for n in range(records)]])
    out = site.folder / "out" / "pieces.jsonl"
    out.parent.mkdir()
    site.apply(
        "to-a-file",
        {
            "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}},
            "sink": {"file": {"path": "out/pieces.jsonl"}},
            "limits": {"range_records": 3_000},
            **PARTS,
        },
    )
    site.fault(step)
    with site.start("run", "to-a-file", "--engine", "inline") as driver:
        driver.communicate(timeout=120)
    assert driver.returncode != 0
    row.strikes()
    site.waybill("run", "to-a-file", "--engine", "inline")
    row.moves_again()
    assert lines_of(out) == [piece for number in range(records) for piece in pieces_of(number)]
    check_counts(site.json("receipts", "to-a-file", "--last", "100")["receipts"], records)
    row.lost = row.repeated = row.reordered = row.duplicates = 0


@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "settled"])
@pytest.mark.fault(costly=True)
def test_lines_exploded_into_a_file_have_each_piece_once(bare_site: Site, row: FaultRow, step: str) -> None:
    row.describe(f"killed at {step}", where="file → file, exploded", database="SQLite")
    copying = Copying(bare_site)
    copying.apply(limits={"range_records": 3_000}, **PARTS)
    copying.log.write_bytes(b"".join(body_of(number) + b"\n" for number in range(8_000)))
    bare_site.fault(step)
    with copying.start() as driver:
        driver.communicate(timeout=120)
    assert driver.returncode != 0
    row.strikes()
    copying.run()
    row.moves_again()
    assert copying.delivered() == [piece for number in range(8_000) for piece in pieces_of(number)]
    check_counts(bare_site.json("receipts", "copy", "--last", "100")["receipts"], 8_000)
    row.lost = row.repeated = row.reordered = row.duplicates = 0
