"""What was moved, by run and by receipt, and what was gone. Reads the ledger only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from connect_core.config import database_url, find_home, load_document
from connect_core.errors import WaybillError
from connect_core.ledger import Connector, Ledger, Run, SettledRange, StoredGap
from connect_core.replication.driver import found_before
from connect_core.replication.driver.set_aside import sentence, set_aside
from connect_core.sdk.values import LIVE, Json
from connect_core.service.json_values import fields_of
from connect_core.service.opened import Opened
from connect_core.service.streams import ALL, of_stream
from connect_core.systems import SYSTEMS
from connect_core.work import COUNTS


def runs(opened: Opened, name: str = "", *, stream: str = ALL, last: int = 20) -> list[Json]:
    """The newest `last` runs of a connector, or of all, the newest first. `delivered` counts also what a run that was
    killed has settled. `taken_over` says how the leases of a former run could be taken: by its free lock, or after
    silence."""
    names = {one.uid: one.name for one in opened.ledger.connectors(include_deleted=True)}
    uid = opened.ledger.connector(name).uid if name else None
    found = opened.ledger.runs(uid, limit=last, stream=of_stream(stream))
    told = runs_told(opened.ledger, found)
    return [{"connector": names.get(run.uid, run.uid), **one} for run, one in zip(found, told, strict=True)]


def runs_told(ledger: Ledger, found: Sequence[Run]) -> list[Json]:
    """As `runs` has them, without the names of their connectors."""
    settled = ledger.settled_by([run.id for run in found if run.summary is None])
    return [
        {
            **_run(run),
            "delivered": (run.summary or settled.get(run.id) or {}).get("delivered", 0),
            "taken_over": (run.summary or {}).get("taken_over", []),
        }
        for run in found
    ]


def run_told(ledger: Ledger, found: Run) -> Json:
    """One of them, and the `total` of its receipts."""
    from connect_core.service.run_report import total

    (told,) = runs_told(ledger, [found])
    receipts = ledger.receipts(found.uid, found.id, limit=None)
    return {**told, "total": total([one.receipt for one in receipts])}


def receipts(opened: Opened, name: str = "", *, run: str = "", stream: str = "", last: int = 20) -> list[Json]:
    """The newest `last` receipts of a connector, or of all, the newest first: of the live stream, unless a stream or a
    run is named."""
    wanted = of_stream(stream or (ALL if run else LIVE))
    found = [
        {"connector": connector.name, **receipt_of(connector, settled)}
        for connector in _chosen(opened, name)
        for settled in opened.ledger.receipts(connector.uid, run or None, wanted, limit=last)
    ]
    return sorted(found, key=lambda receipt: receipt["settled_at"], reverse=True)[:last]


def of_scheduled_run(name: str, attempt_of: str) -> Json:
    """All `runs` (its attempts) and `receipts` of one run of a scheduler, and the `total` of the receipts."""
    from connect_core.service.run_report import total

    with Ledger.glance(database_url(find_home())) as ledger:
        uid = ledger.connector(name).uid
        runs, settled = ledger.runs_of(uid, attempt_of), ledger.ranges_of_run(uid, attempt_of)
    return {
        "runs": [_run(run) for run in runs],
        "receipts": [{**receipt_told(one), "gaps": len(one.receipt.gaps)} for one in settled],
        "total": total([one.receipt for one in settled]),
    }


def target_lines(receipt: Json) -> list[str]:
    """A sentence for each stretch of bytes that was moved out of the target before it, one for records that were there
    before, and one for each condition. From `receipts`."""
    count = receipt["found_before"]
    conditions = [f"rows of a snapshot in it are of {one}" for one in receipt.get("conditions", ())]
    return [*map(sentence, receipt["set_aside"]), *([found_before.sentence(count)] if count else []), *conditions]


def gaps(opened: Opened, name: str = "") -> list[Json]:
    """Records that were gone when they were to be read, or that a person left out, of a connector or of all, the newest
    first."""
    found = [
        {"connector": connector.name, **gap_told(stored)}
        for connector in _chosen(opened, name)
        for stored in gaps_of(opened.ledger, connector)
    ]
    return sorted(found, key=place_of_gap, reverse=True)


def place_of_gap(gap: Json) -> tuple[datetime, str, int]:
    """Where it is among others."""
    return gap["stored_at"], f"{gap['stream']} {gap['partition']}", gap["begin"]


def gap_told(stored: StoredGap) -> Json:
    return {
        "stream": stored.stream,
        "partition": stored.partition.key,
        **fields_of(stored.gap),
        "run": stored.run_id,
        "stored_at": stored.stored_at,
    }


def gaps_of(ledger: Ledger, connector: Connector) -> list[StoredGap]:
    """Those that were settled, and what people left out."""
    return [*ledger.gaps(connector.uid), *(() if _pushes(connector) else ledger.left_out(connector.uid))]


def _pushes(connector: Connector) -> bool:
    """Whether offsets are our own numbers of what arrives: a higher one leaves nothing out."""
    try:
        document = load_document(connector.document, f"connector {connector.name}")
    except WaybillError:  # of a system that is not installed any more
        return False
    return "pushes" in SYSTEMS[document.source.system].abilities


def _chosen(opened: Opened, name: str) -> list[Connector]:
    return [opened.ledger.connector(name)] if name else opened.ledger.connectors()


def _run(run: Run) -> Json:
    return {**fields_of(run), "failure": fields_of(run.failure) if run.failure else None}


def receipt_of(connector: Connector, settled: SettledRange) -> Json:
    """With the `conditions` that rows of a snapshot in it fulfil, where somebody gave one."""
    plugin = SYSTEMS.get(next(iter(connector.document["source"])))  # of another package, it may be gone
    return {**receipt_told(settled), "conditions": plugin.conditions(settled.evidence) if plugin else []}


def receipt_told(settled: SettledRange) -> Json:
    """One flat object a receipt; the keys are part of the promise to scripts."""
    receipt = settled.receipt
    return {
        "range": settled.id,
        "run": settled.run_id,
        "stream": settled.stream,
        "partition": settled.partition.key,
        "incarnation": settled.incarnation,
        "task": settled.task,
        "epoch": settled.epoch,
        "attempts": settled.attempts,
        "begin": receipt.begin,
        "end": receipt.end,
        **{name: getattr(receipt, name) for name in COUNTS},
        "covered": receipt.covered,
        "bytes_read": receipt.bytes_read,
        "bytes_written": receipt.bytes_written,
        "seconds": receipt.seconds,
        "digest_read": receipt.digest_read,
        "digest_sent": receipt.digest_sent,
        "where": receipt.where,
        "set_aside": set_aside([receipt]),
        "found_before": found_before.found_before([receipt]),
        "reconstructed": receipt.reconstructed,
        "revision": settled.pins.revision,
        "code": settled.pins.code,
        "settled_at": settled.settled_at,
    }
