"""dead-letters list | show | export | replay | redirect | discard | erase: rejected records, as they were read."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.consent import Yes, agreeing_on_letters, left_out
from connect_core.cli.installation import installation
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.progress import listening
from connect_core.cli.runs import EngineName

if TYPE_CHECKING:
    from connect_core.service.dead_letters import Words

app = typer.Typer(no_args_is_help=True, help="List, show, export, replay, redirect, discard and erase records.")

Name = Annotated[
    str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
]
Ids = Annotated[
    list[int] | None,
    typer.Argument(
        help="Numbers of dead letters, as `list` shows them; without them, all that the options choose.",
        metavar="[ID]...",
    ),
]
Stage = Annotated[str, typer.Option("--stage", help="Only those rejected at this stage, such as parse or write.")]
Since = Annotated[
    str, typer.Option("--since", help='Only those stored since: a time with its zone, or how long ago ("2h").')
]
Until = Annotated[str, typer.Option("--until", help="Only those stored before: written the same way.")]
PartitionText = Annotated[str, typer.Option("--partition", help="Only those of partitions with this in their key.")]
ReasonText = Annotated[str, typer.Option("--reason", help="Only those with this text in kind or message.")]
RunId = Annotated[str, typer.Option("--run", help="Only those that this run rejected or replayed.")]
State = Annotated[str, typer.Option("--state", help="open, replayed, discarded or all.")]
Why = Annotated[str, typer.Option("--why", help="Reason, kept with it.")]

_LEFT_OUT = {
    "in_part": "kept only in part (move them again from the source: `waybill backfill NAME --range`)",
    "not_read": "of a partition that no task has",
    "taken": "of a replay that is not over",
    "replayed": "replayed before (--again sends them again)",
    "discarded": "discarded",
    "doubtful": "of a cancelled replay that may have delivered them (--again sends them again)",
}


@app.command("list")
def list_(
    name: Name,
    ids: Ids = None,
    stage: Stage = "",
    since: Since = "",
    until: Until = "",
    partition: PartitionText = "",
    reason: ReasonText = "",
    run: RunId = "",
    state: State = "open",
    last: Annotated[int, typer.Option("--last", min=1, max=100_000, help="Show only this many, the newest.")] = 20,
    wide: WideFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """List rejected records of a connector, newest first: those that are open, unless --state says otherwise."""
    words = _words(stage, since, until, partition, reason, run, ids, state)
    found = output.newest(installation().dead_letters(name, words, last=last + 1), last)
    keys = ("id", "partition", "offset", "stage", "kind", "message", "state", "stored_at")
    rows = [[letter[key] for key in keys] for letter in found]
    columns = (
        Column("ID"),
        Column("PARTITION", least=16),
        Column("OFFSET"),
        Column("STAGE", 3),
        Column("KIND", 2),
        Column("MESSAGE", 2, cut="end"),
        Column("STATE", 5),
        Column("STORED AT", 4),
    )
    told = {"connector": name, "dead_letters": found}
    output.emit(as_json, told, lambda: output.table(columns, rows, "no dead letters", wide=wide))


@app.command()
def show(
    name: Name,
    number: Annotated[int, typer.Argument(help="Number of the dead letter, as `list` shows it.", metavar="ID")],
    as_json: JsonFlag = False,
) -> None:
    """Show one rejected record with its key and headers, and the first 64 KiB of its original bytes."""
    told = installation().dead_letter(name, number)

    def for_people() -> None:
        output.fields((key.replace("_", " "), value) for key, value in told.items() if key != "original")
        output.line()
        output.line(output.shown_bytes(told["original"]))

    output.emit(as_json, told, for_people)


@app.command()
def export(
    name: Name,
    to: Annotated[
        str, typer.Option("--to", help="A new file for JSON lines with the payloads; - writes them to stdout.")
    ],
    ids: Ids = None,
    stage: Stage = "",
    since: Since = "",
    until: Until = "",
    partition: PartitionText = "",
    reason: ReasonText = "",
    run: RunId = "",
    state: State = "open",
    as_json: JsonFlag = False,
) -> None:
    """Write rejected records to a file, whole: one JSON object a line, oldest first."""
    words = _words(stage, since, until, partition, reason, run, ids, state)
    exported = installation().export_letters(name, words, to, sys.stdout)
    text = f"{name}: {output.count(exported, 'dead letter')} exported"
    if to == "-":
        output.notice(text)
    else:
        told = {"connector": name, "exported": exported, "to": to}
        output.emit(as_json, told, lambda: output.line(f"{text} to {to}"))


@app.command()
def replay(
    name: Name,
    ids: Ids = None,
    stage: Stage = "",
    since: Since = "",
    until: Until = "",
    partition: PartitionText = "",
    reason: ReasonText = "",
    run: RunId = "",
    again: Annotated[
        bool,
        typer.Option("--again", help="Also those that were, or may have been, replayed before."),
    ] = False,
    sink: Annotated[
        list[str] | None,
        typer.Option("--sink", help="KEY=VALUE: override an option of the sink. May be given several times."),
    ] = None,
    why: Why = "",
    yes: Yes = False,
    engine: EngineName = "",
    as_json: JsonFlag = False,
) -> None:
    """Send rejected records again, through the document as it is now, each once. Killed, the same command continues."""
    from connect_core.service.letter_replays import Replay
    from connect_core.service.runs import How

    wanted = Replay(_words(stage, since, until, partition, reason, run, ids), again, tuple(sink or ()), why)
    how = How(partial(listening, as_json), output.notice, engine)
    agree = agreeing_on_letters(yes, "Replay them?", _LEFT_OUT)
    told = installation().replay_letters(name, wanted, agree, how)
    output.emit(as_json, told, lambda: _show_replays(told))


@app.command()
def discard(
    name: Name,
    ids: Ids = None,
    stage: Stage = "",
    since: Since = "",
    until: Until = "",
    partition: PartitionText = "",
    reason: ReasonText = "",
    run: RunId = "",
    why: Why = "",
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """Mark rejected records as discarded: no longer listed or replayed. None is deleted."""
    words = _words(stage, since, until, partition, reason, run, ids)
    told = installation().discard_letters(name, words, agreeing_on_letters(yes, "Discard them?", {}), why=why)
    output.emit(
        as_json, told, lambda: output.line(f"{name}: {output.count(told['discarded'], 'dead letter')} discarded")
    )


@app.command()
def redirect(name: Name, why: Why = "", yes: Yes = False, as_json: JsonFlag = False) -> None:
    """Give up what was begun in a former errors.sink that does not come back; the next run sends it to that of today.

    Some of these records may be in the former target, too.
    """
    agree = agreeing_on_letters(yes, "Send them to the errors.sink of today?", {})
    told = installation().redirect_letters(name, agree, output.notice, why=why)
    letters = output.count(told["redirected"], "dead letter")
    output.emit(as_json, told, lambda: output.line(f"{name}: the next run sends {letters} to errors.sink"))


@app.command()
def erase(
    name: Name,
    ids: Ids = None,
    stage: Stage = "",
    since: Since = "",
    until: Until = "",
    partition: PartitionText = "",
    reason: ReasonText = "",
    run: RunId = "",
    why: Why = "",
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """Take payload, key and headers out of rejected records that were replayed or discarded. Cannot be undone."""
    words = _words(stage, since, until, partition, reason, run, ids)
    told = installation().erase_letters(name, words, agreeing_on_letters(yes, "Erase what they hold?", {}), why=why)
    output.emit(as_json, told, lambda: output.line(f"{name}: {output.count(told['erased'], 'dead letter')} erased"))


def _words(
    stage: str,
    since: str,
    until: str,
    partition: str,
    reason: str,
    run: str,
    ids: list[int] | None,
    state: str = "open",
) -> Words:
    from connect_core.service.dead_letters import Words

    return Words(stage, since, until, partition, reason, run, tuple(ids or ()), state)


def _show_replays(told: dict[str, Any]) -> None:
    from connect_core.service.run_report import counts, noteworthy

    name = told["connector"]
    if not told["replays"]:
        output.line(f"{name}: no dead letters to replay")
    for sentence in left_out(told["left_out"], _LEFT_OUT):
        output.line(f"  {sentence}")
    for one in told["replays"]:
        if "ranges" in one:
            output.line(f"{name}: {counts(one)} ({one['seconds']:.1f} s)")
            output.line("\n".join([*noteworthy(one), f"  receipts: waybill receipts {name} --stream {one['stream']}"]))
        output.line(f"{name}: {one['stream']} is {one['state']}")
