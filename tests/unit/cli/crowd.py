"""A ledger as a plant has it: long names and paths, big numbers, failures in long sentences, backfills, gaps, rejects.

Its counts are all different and above 999, so that a number seen in a list can be told from every other one.
"""

from __future__ import annotations

from pathlib import Path

from connect_core.errors import Failure, Unreachable
from connect_core.ledger import Backfill, Ledger, task_lease_id
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Gap, Part, Pins, Position, Range, Reject
from connect_core.work import Outcome, Receipt
from tests.unit.cli.moves import source_evidence

NAME = "plant-17-building-3-line-4-temperature-and-vibration"
BACKFILL = "backfill-2026-11-20T00-00-00Z.2026-11-21T00-00-00Z"
FOLDER = Path("logs", "site-of-the-northern-plant", "building-3-of-seven", "machines-and-their-controllers")
DOCUMENT = f"""\
version: 1
name: {NAME}
source: {{file: {{path: {FOLDER}/*.log}}}}
sink: {{file: {{path: out/what-the-plant-has-said-in-all-the-years.txt}}}}
rules:
  - name: alarms-of-all-machines-that-are-not-in-maintenance
    when: "$.temperature_of_the_inlet > 30 AND $.maintenance = 'none-at-this-time'"
"""
FILES = 3
_FILE_BYTES = 1_208_925_819_614


def crowded(ledger: Ledger, folder: Path) -> None:
    """Of the connector NAME, whose logs are made here as sparse files. Closes the ledger."""
    paths = [folder / FOLDER / f"worker-{number}-of-the-conveyor.log" for number in range(FILES)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.seek(_FILE_BYTES + 1_111 * number)
            file.write(b"\n")
    with ledger:
        connector = ledger.connector(NAME)
        partitions = [Partition(str(path)) for path in paths]
        assignment = ledger.assign(connector.uid, partitions, 1)
        lease_id = task_lease_id(connector.uid, LIVE, assignment.version, 0)
        lease = ledger.take(lease_id, None, "test", uid=connector.uid, stream=LIVE, version=assignment.version)
        run_id = ledger.begin_run(connector.uid, LIVE, task=0, engine="inline")
        planned = [_range(partition, path) for partition, path in zip(partitions, paths, strict=True)]
        opened = ledger.plan([lease], run_id, connector.uid, 0, planned, [])
        outcomes = [Outcome(one.id, _receipt(one.range, number)) for number, one in enumerate(opened)]
        ledger.settle([lease], run_id, connector.uid, outcomes)
        ledger.end_run(run_id, state="done", failure=None, summary={"delivered": 2_999_814_765})
        failing = ledger.begin_run(connector.uid, LIVE, task=0, engine="inline")
        away = Unreachable("no name server answered within three seconds", where="10.20.30.40:9876, 10.20.30.41:9876")
        ledger.end_run(failing, state="failed", failure=Failure.of(away), summary={"delivered": 0})
        for partition in partitions:
            back = Position(0, 604_462_909)
            ledger.set_offset([lease], connector.uid, LIVE, partition, back, who="ann", why="once more from before it")
        parts = tuple(Part(partition, 0, 1_234_567, 604_462_909_807) for partition in partitions)
        sink = {"path": f"{folder}/out/what-the-plant-has-said-again.txt"}
        ledger.begin_backfill(Backfill(connector.uid, BACKFILL, "backfill", 1, {"from": "2h"}, parts, sink, "ann"))
        ledger.release(lease)


def _range(partition: Partition, path: Path) -> Range:
    pins = Pins(1, "p", {}, "test")
    return Range(LIVE, partition, 0, 0, 0, path.stat().st_size, 10**10, 10**13, source_evidence(path), pins)


def _receipt(planned: Range, number: int) -> Receipt:
    delivered = 2_999_814_765 + number
    rejects = tuple(
        Reject(1_234_567 + one, 0, "transform", "ValueNotANumber", "the temperature of the inlet is no number", b"x")
        for one in range(3)
    )
    return Receipt(
        begin=planned.begin,
        end=planned.end,
        read=delivered + 7_654_321 + len(rejects),
        absent=0,
        filtered=7_654_321,
        rejected=len(rejects),
        passed=delivered,
        emitted=delivered,
        delivered=delivered - 8_765,
        deduplicated=8_765,
        duplicates=1_492,
        possible_duplicates=0,
        bytes_read=planned.end,
        bytes_written=planned.end,
        seconds=0.1,
        digest_read="0",
        digest_sent="0",
        where={"path": f"/srv/plant/{number}/what-the-plant-has-said.txt", "begin": 0, "end": planned.end},
        evidence=planned.evidence,
        floors=(),
        rejects=rejects,
        covered=planned.end - planned.begin,
        gaps=(Gap(0, 1_300_000, 1_400_000, "the file was cut to less than what had been read of it"),),
    )
