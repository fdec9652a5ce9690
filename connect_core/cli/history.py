"""runs, receipts, lag, gaps: what was moved, what is waiting, and what is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from connect_core.cli import completing, output, partition_states
from connect_core.cli.columns import Column
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import Unreachable
from connect_core.service.streams import ALL

OptionalName = Annotated[
    str,
    typer.Argument(
        help="Name of a connector; without it, all connectors.", metavar="[NAME]", autocompletion=completing.connectors
    ),
]
Stream = Annotated[str, typer.Option("--stream", help="live, all, or a stream as `backfills list` shows it.")]
Last = Annotated[int, typer.Option("--last", min=1, max=100_000, help="Show only this many, the newest.")]

_SHOWN = {
    "partition": Column("PARTITION", least=16),
    "begin": Column("BEGIN", 3),
    "end": Column("END"),
    "read": Column("READ", unit="records"),
    "filtered": Column("FILTERED", 4, unit="records"),
    "rejected": Column("REJECTED", 4, unit="records"),
    "emitted": Column("EMITTED", 6, unit="records"),
    "delivered": Column("DELIVERED", unit="records"),
    "deduplicated": Column("DEDUPED", 2, unit="records"),
    "duplicates": Column("DUPLICATES", 7, unit="records"),
    "settled_at": Column("SETTLED AT", 5),
}
"""Of a receipt, between READ and DELIVERED what explains their difference: read = filtered + rejected + passed, which
becomes what is emitted, and emitted = delivered + deduplicated."""


def register(app: typer.Typer) -> None:
    app.command("runs")(runs)
    app.command("receipts")(receipts)
    app.command("lag")(lag)
    app.command("gaps")(gaps)


def runs(
    name: OptionalName = "", stream: Stream = ALL, last: Last = 20, wide: WideFlag = False, as_json: JsonFlag = False
) -> None:
    """List runs, newest first, those of backfills included."""
    told = output.newest(installation().runs(name, stream=stream, last=last + 1), last)
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
            run["failure"]["what"] if run["failure"] else "",
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
    run: Annotated[str, typer.Option("--run", help="Only receipts of this run.")] = "",
    stream: Stream = "",
    last: Last = 20,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """List receipts, newest first: of the live stream, of another stream, or of one run."""
    from connect_core.service import reports

    found = output.newest(installation().receipts(name, run=run, stream=stream, last=last + 1), last)
    columns = (Column("CONNECTOR", _of_one(name, 2)), *_SHOWN.values())
    rows = [[receipt["connector"], *(receipt[key] for key in _SHOWN)] for receipt in found]

    def for_people() -> None:
        output.table(columns, rows, "no receipts", wide=wide)
        if any(receipt["reconstructed"] for receipt in found):
            output.line(
                'READ "-": the source could not give these records again; the receipt counts what is in the target'
            )
        for receipt in found:
            for sentence in reports.target_lines(receipt):
                output.line(f"{receipt['connector']}, settled {output.cell(receipt['settled_at'])}: {sentence}")

    output.emit(as_json, {"receipts": found}, for_people)


def lag(name: OptionalName = "", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Show the lag of each partition: end of the source minus committed offset, in records, or in bytes for files.

    WAITING counts the bytes of a last line that has no line feed yet. Of a log that was rotated several times the next
    file is counted, not those behind it.
    """
    told = installation().lag(name)
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
            for table in one["snapshot"]:
                output.line(f"{one['connector']}: {rows_left(table)}")
            for alert in [word for word in ("late", "silent") if one[word]]:
                output.notice(f"{one['connector']} is {alert}: last settled {output.cell(one['settled_at'])}")
            if "problem" in one:
                output.notice(f"{one['connector']}: {one['problem']}")

    output.emit(as_json, {"connectors": told}, for_people)
    if any("problem" in one for one in told):
        raise typer.Exit(Unreachable.exit_code)


def gaps(name: OptionalName = "", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """List gaps, newest first: records that were gone before they could be read, or that `offsets set` left out, by
    exact range where it is known."""
    found = installation().gaps(name)
    keys = ("connector", "stream", "partition", "incarnation", "begin", "end", "reason", "stored_at")
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


def rows_left(of: Mapping[str, Any]) -> str:
    """What to say of a table whose rows come by a snapshot."""
    condition = of.get("where")
    which, how = (f" WHERE {condition}", "be read") if condition else ("", "come")
    return f"table {of['table']}{which}: about {of['left']:,} of {of['rows']:,} rows are still to {how}"


def _of_one(name: str, priority: int) -> int:
    """Of the column that names the connector: where all rows are of one it leaves first."""
    return 9 if name else priority


def _seconds(run: dict[str, Any]) -> str:
    ended = run["ended_at"]
    return f"{(ended - run['started_at']).total_seconds():.1f}" if ended else ""
