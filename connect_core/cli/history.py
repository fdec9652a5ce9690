"""runs, receipts, lag, gaps: what was moved, what is waiting, and what is gone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, partition_states, session
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import Unreachable, WaybillError

if TYPE_CHECKING:
    from connect_core.cli.session import Session
    from connect_core.ledger import Connector, SettledRange

OptionalName = Annotated[
    str,
    typer.Argument(
        help="Name of a connector; all of them when left out.", metavar="[NAME]", autocompletion=completing.connectors
    ),
]
Stream = Annotated[
    str, typer.Option("--stream", help="live, a backfill or a replay as `backfills list` names it, or all.")
]
ALL = "all"
Last = Annotated[int, typer.Option("--last", min=1, max=100_000, help="How many, the newest.")]

_SHOWN = {
    "partition": Column("PARTITION", least=16),
    "begin": Column("BEGIN", 3),
    "end": Column("END"),
    "read": Column("READ", unit="records"),
    "filtered": Column("FILTERED", 4, unit="records"),
    "rejected": Column("REJECTED", 4, unit="records"),
    "emitted": Column("EMITTED", 6, unit="records"),
    "delivered": Column("DELIVERED", unit="records"),
    "already": Column("ALREADY", 2, unit="records"),
    "surplus": Column("SURPLUS", 7, unit="records"),
    "settled_at": Column("SETTLED AT", 5),
}
"""Of a receipt, between READ and DELIVERED what explains their difference: read = filtered + rejected + passed, which
becomes what is emitted, and emitted = delivered + already."""


def register(app: typer.Typer) -> None:
    app.command("runs")(runs)
    app.command("receipts")(receipts)
    app.command("lag")(lag)
    app.command("gaps")(gaps)


def runs(
    name: OptionalName = "", stream: Stream = ALL, last: Last = 20, wide: WideFlag = False, as_json: JsonFlag = False
) -> None:
    """Runs, the newest first; those of backfills as well."""
    with session.reading() as opened:
        names = {c.uid: c.name for c in opened.ledger.connectors(include_deleted=True)}
        uid = opened.ledger.connector(name).uid if name else None
        found = opened.ledger.runs(uid, limit=last, stream=of_stream(stream))
        settled = opened.ledger.settled_by([run.id for run in found if run.summary is None])
    told = [
        {
            "connector": names.get(run.uid, run.uid),
            **output.plain(run),
            "delivered": (run.summary or settled.get(run.id) or {}).get("delivered", 0),
        }
        for run in found
    ]
    rows = [
        [
            run["connector"],
            run["id"],
            run["stream"],
            run["task"],
            run["engine"],
            run["state"],
            run["started_at"],
            _seconds(run),
            run["delivered"],
            run["failure"].what if run["failure"] else "",
        ]
        for run in told
    ]
    columns = (
        Column("CONNECTOR", _of_one(name, 2)),
        Column("RUN", cut="never"),
        Column("STREAM", 6),
        Column("TASK", 7),
        Column("ENGINE", 8),
        Column("STATE"),
        Column("STARTED", 3),
        Column("TOOK", 5, unit="seconds"),
        Column("DELIVERED", unit="records"),
        Column("FAILURE", 4, cut="end"),
    )
    output.emit(as_json, {"runs": told}, lambda: output.table(columns, rows, "no runs yet", wide=wide))


def receipts(
    name: OptionalName = "",
    run: Annotated[str, typer.Option("--run", help="Only those of this run.")] = "",
    stream: Stream = "",
    last: Last = 20,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Receipts of the live stream, of another one or of one run, the newest first: what became of each range."""
    wanted = of_stream(stream or (ALL if run else "live"))
    with session.reading() as opened:
        found = [
            {"connector": connector.name, **_receipt(settled)}
            for connector in _chosen(opened, name)
            for settled in opened.ledger.receipts(connector.uid, run or None, wanted, limit=last)
        ]
    found = sorted(found, key=lambda receipt: receipt["settled_at"], reverse=True)[:last]
    columns = (Column("CONNECTOR", _of_one(name, 2)), *_SHOWN.values())
    rows = [[receipt["connector"], *(receipt[key] for key in _SHOWN)] for receipt in found]

    def for_people() -> None:
        from connect_core.replication.driver.set_aside import sentence

        output.table(columns, rows, "no receipts", wide=wide)
        if any(receipt["reconstructed"] for receipt in found):
            output.line('READ "-": the source had lost the records; the receipt tells what the target holds of them')
        for receipt in found:
            for aside in receipt["set_aside"]:
                output.line(f"{receipt['connector']}, settled {output.cell(receipt['settled_at'])}: {sentence(aside)}")

    output.emit(as_json, {"receipts": found}, for_people)


def lag(name: OptionalName = "", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """What is waiting in the sources: newest position minus committed one, in records, or in bytes for files.

    WAITING are the bytes of a last line that has no line feed yet.
    """
    with session.reading() as opened:
        if name:
            told = [_lag(opened, opened.ledger.connector(name))]
        else:
            told = [_lag_or_why_not(opened, connector) for connector in opened.ledger.connectors()]
    keys = ("partition", "committed", "end", "lag")
    rows = [
        [one["connector"], *(part[key] for key in keys), one["unit"], part["waiting"]]
        for one in told
        for part in one["partitions"]
    ]
    columns = (
        Column("CONNECTOR", _of_one(name, 2)),
        Column("PARTITION", least=16),
        Column("COMMITTED", 3),
        Column("END", 4),
        Column("LAG"),
        Column("UNIT"),
        Column("WAITING", 5, unit="bytes"),
    )

    def for_people() -> None:
        output.table(columns, rows, "nothing to read", wide=wide)
        for sentence in waiting_lines([part["waiting"] for one in told for part in one["partitions"]]):
            output.line(sentence)
        for one in told:
            for sentence in partition_states.lines(one["aside"]):
                output.line(f"{one['connector']}: {sentence}")
            for alert in [word for word in ("late", "silent") if one[word]]:
                output.notice(f"{one['connector']} is {alert}: last settled {output.cell(one['settled_at'])}")
            if "problem" in one:
                output.notice(f"{one['connector']}: {one['problem']}")

    output.emit(as_json, {"connectors": told}, for_people)
    if any("problem" in one for one in told):
        raise typer.Exit(Unreachable.exit_code)


def gaps(name: OptionalName = "", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Records that were gone when they were to be read, by exact range where it is known; the newest first."""
    with session.reading() as opened:
        found = [
            {
                "connector": connector.name,
                "stream": stored.stream,
                "partition": stored.partition.key,
                **output.plain(stored.gap),
                "run": stored.run_id,
                "stored_at": stored.stored_at,
            }
            for connector in _chosen(opened, name)
            for stored in reversed(opened.ledger.gaps(connector.uid))
        ]
    keys = ("connector", "stream", "partition", "incarnation", "begin", "end", "reason", "stored_at")
    found.sort(key=lambda gap: gap["stored_at"], reverse=True)
    rows = [[gap[key] for key in keys] for gap in found]
    columns = (
        Column("CONNECTOR", _of_one(name, 3)),
        Column("STREAM", 6),
        Column("PARTITION", least=16),
        Column("INCARNATION", 5),
        Column("BEGIN"),
        Column("END"),
        Column("REASON", 2, cut="end"),
        Column("STORED AT", 4),
    )
    output.emit(as_json, {"gaps": found}, lambda: output.table(columns, rows, "no gaps", wide=wide))


def waiting_lines(counts: Sequence[int]) -> list[str]:
    """What to say of last lines without a line feed, given the bytes of each partition; nothing without any."""
    lines = [count for count in counts if count]
    if not lines:
        return []
    many = "1 last line has" if len(lines) == 1 else f"{len(lines):,} last lines have"
    return [f"{many} no line feed yet ({sum(lines):,} bytes): read once it comes, or once the file is renamed"]


def of_stream(word: str) -> str | None:
    """None stands for every stream."""
    return None if word == ALL else word


def _lag(opened: Session, connector: Connector) -> dict[str, Any]:
    from connect_core.config import load_document
    from connect_core.replication.driver.preview import plan_connector
    from connect_core.sdk.values import LIVE

    previews = plan_connector(opened.ledger, connector, opened.resolved(connector))
    newest = next(iter(opened.ledger.receipts(connector.uid, stream=LIVE, limit=1)), None)
    since = newest.settled_at if newest else connector.created_at
    alerts = load_document(connector.document).alerts
    waiting = sum(preview.lag for preview in previews)
    return {
        "connector": connector.name,
        "lag": waiting,
        "unit": lag_unit(connector),
        "settled_at": newest.settled_at if newest else None,
        "late": bool(waiting) and _older(since, alerts.lag),
        "silent": _older(since, alerts.silent),
        "partitions": [
            {key: getattr(seen, key) for key in ("partition", "committed", "end", "lag", "waiting", "state")}
            for seen in previews
        ],
        "aside": partition_states.of_previews(previews),
    }


def _lag_or_why_not(opened: Session, connector: Connector) -> dict[str, Any]:
    """In a listing of all, a source that does not answer must not hide the others."""
    try:
        return _lag(opened, connector)
    except WaybillError as error:
        unknown: dict[str, Any] = {"lag": None, "settled_at": None, "late": False, "silent": False, "partitions": []}
        unknown["aside"] = partition_states.of_states(opened.ledger.partition_states(connector.uid))
        return {"connector": connector.name, **unknown, "unit": lag_unit(connector), "problem": str(error)}


def lag_unit(connector: Connector) -> str:
    """What the positions of its source count."""
    return "bytes" if "file" in connector.document["source"] else "records"


def _of_one(name: str, priority: int) -> int:
    """Of the column that names the connector: where all rows are of one it leaves first."""
    return 9 if name else priority


def _chosen(opened: Session, name: str) -> list[Connector]:
    return [opened.ledger.connector(name)] if name else opened.ledger.connectors()


def _receipt(settled: SettledRange) -> dict[str, Any]:
    """One flat object a receipt; the keys are part of the command's promise to scripts."""
    from connect_core.replication.driver.report import COUNTS
    from connect_core.replication.driver.set_aside import set_aside

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
        "reconstructed": receipt.reconstructed,
        "revision": settled.pins.revision,
        "settled_at": settled.settled_at,
    }


def _older(moment: datetime, limit_s: float | None) -> bool:
    return limit_s is not None and datetime.now(UTC) - moment > timedelta(seconds=limit_s)


def _seconds(run: dict[str, Any]) -> str:
    ended = run["ended_at"]
    return f"{(ended - run['started_at']).total_seconds():.1f}" if ended else ""
