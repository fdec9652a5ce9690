"""A run of a file connector as it leaves its marks in the ledger, without moving anything."""

from __future__ import annotations

from pathlib import Path

from connect_core.ledger import Ledger, task_lease_id
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Pins, Range, Reject
from connect_core.work import Outcome, Receipt


def moved(
    ledger: Ledger, name: str, folder: Path, *, records: int, rejects: tuple[Reject, ...] = (), ends: bool = True
) -> str:
    """Settles the whole of logs/a.log as `records` delivered lines; returns the run's id. Closes the ledger. The run is
    killed before it `ends`, if that is said."""
    path = folder / "logs" / "a.log"
    partition, end = Partition(str(path)), path.stat().st_size
    with ledger:
        connector = ledger.connector(name)
        assignment = ledger.assign(connector.uid, [partition], 1)
        lease_id = task_lease_id(connector.uid, LIVE, assignment.version, 0)
        lease = ledger.take(lease_id, None, "test", uid=connector.uid, stream=LIVE, version=assignment.version)
        run_id = ledger.begin_run(connector.uid, LIVE, task=0, engine="inline")
        evidence = source_evidence(path)
        wanted = Range(LIVE, partition, 0, 0, 0, end, 1000, 10**6, evidence, Pins(1, "p", {}, "test"))
        (opened,) = ledger.plan([lease], run_id, connector.uid, 0, [wanted], [])
        receipt = _receipt(end, records, rejects, evidence)
        ledger.settle([lease], run_id, connector.uid, [Outcome(opened.id, receipt)])
        ledger.release(lease)
        if ends:
            ledger.end_run(run_id, state="done", failure=None, summary={"delivered": records})
    return run_id


def source_evidence(path: Path) -> dict[str, object]:
    """What the file source itself sees at the end of the file, so that it recognises the position later."""
    from connect_core import systems
    from connect_core.sdk.values import Position
    from connect_core.work import Side

    source = systems.source(Side("file", {"path": str(path)}))
    partition = Partition(str(path))
    seen = source.available_offsets({partition: None})[partition]
    return dict(Position(seen.incarnation, seen.end, seen.evidence).evidence)


def _receipt(end: int, records: int, rejects: tuple[Reject, ...], evidence: dict[str, object]) -> Receipt:
    return Receipt(
        begin=0,
        end=end,
        read=records + len(rejects),
        absent=0,
        filtered=0,
        rejected=len(rejects),
        passed=records,
        emitted=records,
        delivered=records,
        deduplicated=0,
        duplicates=0,
        possible_duplicates=0,
        bytes_read=end,
        bytes_written=end,
        seconds=0.1,
        digest_read="0",
        digest_sent="0",
        where={},
        evidence=evidence,
        floors=(),
        rejects=rejects,
        covered=end,
    )
