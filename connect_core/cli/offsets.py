"""offsets show | set | undo | history | export | import: where reading goes on, and moving it by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.consent import Yes, agreeing
from connect_core.cli.history import Stream
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag

app = typer.Typer(no_args_is_help=True, help="Show and change the offsets that are read next.")

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]
PartitionKey = Annotated[
    str,
    typer.Argument(
        help="Partition, as `offsets show` lists it.", metavar="PARTITION", autocompletion=completing.partitions
    ),
]


@app.command()
def show(name: Name, stream: Stream = "live", wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """Show the committed offset of each partition, of the live stream by default."""
    found = installation().offsets(name, stream=stream)
    rows = [list(offset.values()) for offset in found]
    columns = (
        Column("STREAM", 3),
        Column("PARTITION", least=16),
        Column("INCARNATION", 4),
        Column("OFFSET"),
        Column("CHANGED AT", 2),
    )
    told = {"connector": name, "offsets": found}
    output.emit(as_json, told, lambda: output.table(columns, rows, "nothing is committed yet", wide=wide))


@app.command("set")
def set_(
    name: Name,
    partition: PartitionKey,
    offset: Annotated[int, typer.Argument(min=0, help="The offset to read next.", metavar="OFFSET")],
    why: Annotated[str, typer.Option("--why", help="Reason, kept with the change.")] = "",
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up an open range, though it is unknown what it delivered.")
    ] = False,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """Move the committed offset. Back: records are delivered again; asks first. Forward: records are left out.

    The new offset must be where a record begins, within what the source has now. The current offset is always
    accepted, and moves nothing.
    """
    told = installation().set_offset(
        name, partition, offset, why=why, abandon=abandon, agree=agreeing(yes), say=output.notice
    )
    _show_moved(told, as_json)


@app.command()
def undo(name: Name, partition: PartitionKey, yes: Yes = False, as_json: JsonFlag = False) -> None:
    """Undo the last change by hand of a partition's offset.

    Asks first if records are delivered again, or if runs have used the changed offset.
    """
    told = installation().undo_offset(name, partition, agree=agreeing(yes), say=output.notice)
    _show_moved(told, as_json)


@app.command()
def history(
    name: Name,
    partition: Annotated[str, typer.Option("--partition", help="Only this partition.")] = "",
    stream: Stream = "live",
    last: Annotated[int, typer.Option("--last", min=1, max=100_000, help="Show only this many, the newest.")] = 50,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """List every change of the committed offsets, newest first: by settled ranges and by hand."""
    found = installation().offset_history(name, partition=partition, stream=stream, last=last + 1)
    told = output.newest(found, last)
    rows = [
        [
            step["at"],
            step["kind"],
            step["partition"],
            _offset(step["before"]),
            _offset(step["after"]),
            step["run"] or step["who"],
            step["why"],
        ]
        for step in told
    ]
    columns = (
        Column("AT", 2),
        Column("KIND"),
        Column("PARTITION"),
        Column("BEFORE"),
        Column("AFTER"),
        Column("BY", 3),
        Column("WHY", 4, cut="end"),
    )
    shown = {"connector": name, "history": told}
    output.emit(as_json, shown, lambda: output.table(columns, rows, "no history", wide=wide))


@app.command("export")
def export(name: Name) -> None:
    """Print the committed offsets as JSON, for `offsets import` with another ledger."""
    told = installation().exported_offsets(name, output.notice)
    output.emit(True, told, lambda: None)


@app.command("import")
def import_(
    name: Name,
    file: Annotated[Path, typer.Argument(help="What `offsets export` has written.", metavar="FILE")],
    why: Annotated[str, typer.Option("--why", help="Reason, kept with the change.")] = "",
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """Commit the offsets that `offsets export` has written, all or none.

    The source must be what it was then. Asks first if records are delivered again.
    """
    from connect_core.service.offset_exports import read_exported

    taken = read_exported(file)
    told = installation().import_offsets(name, taken, why=why, agree=agreeing(yes), say=output.notice)

    def for_people() -> None:
        for partition, after in told["after"].items():
            output.line(f"{name}: {partition}: {output.cell(told['before'][partition])} -> {output.cell(after)}")
        for partition in told["kept"]:
            output.line(f"{name}: {partition}: not in the file, stays as it is")

    output.emit(as_json, told, for_people)


def _show_moved(told: dict[str, Any], as_json: bool) -> None:
    before, after = output.cell(_offset(told["before"])), output.cell(_offset(told["after"]))
    text = f"{told['connector']}: {told['partition']}: {before} -> {after}"
    output.emit(as_json, told, lambda: output.line(text))


def _offset(position: dict[str, Any] | None) -> int | None:
    return position["offset"] if position else None
