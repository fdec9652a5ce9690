"""What the next attempt makes of an open range when something else has changed as well: the source has lost it, it
gets less far than the one before, the document is another one, the code gives other results
(delivery rules 6, 8 and 9)."""

from __future__ import annotations

import time
from typing import Any

import pytest
import sqlalchemy as sa

from connect_core.ledger.tables import RANGES
from tests.faults.copying import NAME, Copying
from tests.faults.kit.checker import EXACT
from tests.faults.kit.journeys import Inward, begun_and_stopped, database_of, lines_of, settled_up
from tests.faults.kit.processes import ended, go_on, wait_for
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = pytest.mark.fault


@pytest.mark.server
@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("step", ["batch-written", "before-receipt"])
def test_what_is_in_the_topic_is_no_gap(site: Site, java_reader: JavaReader, row: FaultRow, step: str) -> None:
    """Delivery rules 9 and 13: fewer records can be read than the attempt before has delivered. These are settled from
    the topic; the gap begins behind the last of them."""
    journey = Inward(site, java_reader, partitions=1)
    row.describe(f"worker killed ({step}), then its log deleted", where=journey.where, database=database_of(site))
    (log,) = journey.folder.iterdir()
    lines = lines_of(log)
    site.fault(step)
    site.waybill("run", journey.name, code=1)
    there = [record for records in journey.target().values() for record in records]
    assert there == lines[: len(there)]
    row.strikes()
    log.unlink()
    behind = sum(len(line) + 1 for line in there[:-1]) + 1 if there else 0
    said = site.waybill("run", journey.name, code=5)
    assert f"deleted: from {behind} to an unknown end" in said
    assert site.json("receipts", journey.name)["receipts"] == []
    site.waybill("run", journey.name, "--accept-gaps")
    row.moves_again()
    log.write_bytes(b"".join(b"new line %d\n" % number for number in range(100)))
    site.waybill("run", journey.name)
    ((_, arrived),) = journey.target().items()
    assert arrived == [*there, *lines_of(log)]
    row.lost = row.repeated = row.reordered = row.duplicates = 0
    (gap,) = site.json("gaps", journey.name)["gaps"]
    assert (gap["begin"], gap["end"], gap["reason"]) == (behind, None, "deleted")
    told = site.json("receipts", journey.name)["receipts"]
    first = min(told, key=lambda receipt: (receipt["incarnation"], receipt["begin"]))
    assert (first["reconstructed"], first["deduplicated"], first["read"]) == (True, len(there), None)
    assert [receipt["reconstructed"] for receipt in told].count(True) == 1


@pytest.mark.server
def test_an_attempt_that_gets_less_far_than_the_one_before(site: Site, java_reader: JavaReader, row: FaultRow) -> None:
    """Delivery rule 6: the first delivers everything and dies; the second accounts for a part of it, settles and dies;
    the third must find the rest, which stands behind what the second has settled."""
    journey = Inward(site, java_reader, partitions=1, range_records=50_000)
    row.describe(
        "worker killed behind its last write; the next attempt killed when a part was settled",
        where=journey.where,
        database=database_of(site),
    )
    settled_in_part(site, journey, row)
    site.waybill("run", journey.name)
    row.moves_again()
    assert settled_up(journey, row) == EXACT


@pytest.mark.server
@pytest.mark.fault(costly=True)
def test_a_topic_changed_in_the_document_when_a_part_was_settled(
    site: Site, java_reader: JavaReader, row: FaultRow
) -> None:
    """Delivery rules 6 and 8: no range is open, but records stand in the old topic that no receipt tells of yet. The
    rest of their range is finished there."""
    journey = Inward(site, java_reader, partitions=1, records=20_000, range_records=15_000)
    row.describe("as above, then another topic in the document", where=journey.where, database=database_of(site))
    part = settled_in_part(site, journey, row)
    new = name_another_topic(site, journey)
    told = finished_in_both(journey, row, new, old_records=15_000)
    assert {(receipt["revision"], receipt["begin"] < part["end"]) for receipt in told} == {
        (1, True),
        (1, False),
        (2, False),
    }
    assert sum(receipt["deduplicated"] for receipt in told) == 15_000


def settled_in_part(site: Site, journey: Inward, row: FaultRow) -> dict[str, Any]:
    """The first attempt delivers a whole range and dies; the second accounts for a part of it, settles that and dies.
    The receipt of the part."""
    site.fault("before-receipt")
    site.waybill("run", journey.name, code=1)
    site.settings["WAYBILL_QUANTUM_S"] = "1s"
    site.fault("settled")
    driver, worker = begun_and_stopped(journey, "batch-written")
    row.strikes()
    stopped = time.monotonic()
    wait_for(lambda: time.monotonic() > stopped + 1.0, "the end of the quantum")
    go_on(worker)
    assert ended(driver) == -9
    (part,) = site.json("receipts", journey.name)["receipts"]
    assert (part["delivered"], part["deduplicated"]) == (0, part["read"])
    assert 0 < part["read"] < journey.records
    site.settings["WAYBILL_QUANTUM_S"] = "3s"
    assert isinstance(part, dict)
    return part


def name_another_topic(site: Site, journey: Inward) -> str:
    new = f"{site.topic}-new"
    sink = {"name_servers": "${stack:name_servers}", "topic": new, "queues": 1}
    site.apply(journey.name, {"source": {"file": {"path": "logs/*.log"}}, "sink": {"rocketmq": sink}})
    return new


@pytest.mark.server
@pytest.mark.fault(costly=True)
def test_a_topic_changed_in_the_document_between_two_attempts(
    site: Site, java_reader: JavaReader, row: FaultRow
) -> None:
    """Delivery rule 8: what is open is finished in the topic it was planned for; the next plan goes to the new one."""
    journey = Inward(site, java_reader, partitions=1, records=20_000, range_records=9_000)
    row.describe("worker killed, then another topic in the document", where=journey.where, database=database_of(site))
    site.fault("before-receipt")
    site.waybill("run", journey.name, code=1)
    row.strikes()
    new = name_another_topic(site, journey)
    told = finished_in_both(journey, row, new, old_records=9_000)
    assert sorted((receipt["revision"], receipt["read"]) for receipt in told) == [(1, 9_000), (2, 11_000)]


def finished_in_both(journey: Inward, row: FaultRow, new: str, old_records: int) -> list[dict[str, Any]]:
    """Runs on: the lines are in the old topic and then in the `new` one, each once and in order. The receipts."""
    journey.site.waybill("run", journey.name)
    row.moves_again()
    old, rest = (journey.reader.records(topic).popitem()[1] for topic in (journey.site.topic, new))
    assert [*old, *rest] == journey.source().popitem()[1]
    assert len(old) == old_records
    row.lost = row.repeated = row.reordered = row.duplicates = 0
    told = journey.site.json("receipts", journey.name)["receipts"]
    assert isinstance(told, list)
    return told


def killed(site: Site) -> Copying:
    """A range of 9,000 lines is open, and a part of it is in the file."""
    copying = Copying(site)
    copying.apply(limits={"range_records": 9_000})
    copying.append(20_000)
    site.fault("batch-written")
    copying.run(code=1)
    return copying


WHERE = {"where": "file → file", "database": "SQLite"}


def test_a_file_changed_in_the_document_between_two_attempts(bare_site: Site, row: FaultRow) -> None:
    """Delivery rules 8 and 16: whoever adopts the range works on the file that was planned."""
    row.describe("worker killed, then another target file in the document", **WHERE)
    copying = killed(bare_site)
    row.strikes()
    copying.sink["path"] = "out/new.txt"
    copying.apply()
    copying.run()
    row.moves_again()
    old, rest = copying.delivered(), lines_of(copying.out.with_name("new.txt"))
    assert [*old, *rest] == copying.written
    assert len(old) == 9_000
    row.lost = row.repeated = row.reordered = row.duplicates = 0
    assert [settled.pins.revision for settled in copying.receipts()] == [2, 3]


def test_code_that_gives_other_results_for_an_open_range(bare_site: Site, row: FaultRow) -> None:
    """Delivery rule 8: the run stops, and a person gives the range up; what it had written is set aside, not mixed."""
    row.describe("worker killed, then code whose pipeline gives other results", **WHERE)
    copying = killed(bare_site)
    row.strikes()
    pin_another_pipeline(bare_site)
    said = copying.run(code=5)
    assert "whose pipeline gave other results" in said
    assert f"partition {copying.log}, offset 0" in said
    assert "waybill offsets set --abandon" in said
    assert copying.receipts() == []
    bare_site.waybill("offsets", "set", NAME, str(copying.log), "0", "--abandon", "--why", "new code")
    copying.run()
    row.moves_again()
    copying.check(row)


def pin_another_pipeline(site: Site) -> None:
    """As if the open range had been planned by code that gives other results."""
    engine = sa.create_engine(site.database_url)
    with engine.begin() as connection:
        (found,) = connection.execute(sa.select(RANGES.c.id, RANGES.c.pins).where(RANGES.c.open_key.is_not(None)))
        changed: dict[str, Any] = {**found.pins, "pipeline": "of other code"}
        connection.execute(RANGES.update().where(RANGES.c.id == found.id).values(pins=changed))
    engine.dispose()
