"""Before a position is moved back by hand, dead letters are replayed or discarded, or inferred fields change: what that
does, and whether somebody wants it.

On a terminal a person is asked; elsewhere the change is refused unless the command has --yes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from connect_core.cli import output
from connect_core.errors import ConfigError
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    from connect_core.service.dead_letters import Agree as AgreeOnLetters
    from connect_core.service.dead_letters import LettersPreview
    from connect_core.service.documents import Show
    from connect_core.service.offsets import Agree, LastChange, Move

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation; required without a terminal.")]


def agreeing(yes: bool) -> Agree:
    """Shows what a move repeats, and asks when it repeats anything.

    Raises ConfigError when a person would have to be asked and there is no terminal, Abort when they say no.
    """

    def agree(move: Move) -> None:
        sentences = _sentences(move)
        if sentences and not yes and not sys.stdin.isatty():
            raise ConfigError(
                "; ".join(sentences),
                where=f"connector {move.connector}, partition {move.partition}",
                next_step="Nothing was changed. Add --yes to confirm",
            )
        for sentence in sentences:
            output.notice(f"{move.connector}: {move.partition}: {sentence}")
        if sentences and not yes:
            typer.confirm("Change it?", abort=True, err=True)

    return agree


def agreeing_on_letters(yes: bool, question: str, words: Mapping[str, str]) -> AgreeOnLetters:
    """Shows which dead letters are meant, and asks. `words` say why some are left out.

    Raises ConfigError when a person would have to be asked and there is no terminal, Abort when they say no.
    """

    def agree(preview: LettersPreview) -> None:
        sentences = [*_chosen(preview), *left_out(preview.left_out, words)]
        for sentence in sentences:
            output.notice(f"{preview.connector}: {sentence}")
        if not yes and not sys.stdin.isatty():
            raise ConfigError(
                "This needs a confirmation",
                where=f"connector {preview.connector}, {output.count(preview.letters, 'dead letter')}",
                next_step="Nothing was changed. Add --yes to confirm",
            )
        if not yes:
            typer.confirm(question, abort=True, err=True)

    return agree


def agreeing_on_fields(yes: bool) -> Show:
    """Shows how the fields of documents that infer them would change, and asks.

    Raises ConfigError when a person would have to be asked and there is no terminal, Abort when they say no.
    """

    def agree(changes: list[Json]) -> None:
        for change in changes:
            for line in change["difference"]:
                output.notice(f"{change['name']}: {line}")
        if not yes and not sys.stdin.isatty():
            raise ConfigError(
                "The source has other fields now, and this needs a confirmation",
                where=", ".join(f"connector {change['name']}" for change in changes),
                next_step="Nothing was changed. Add --yes to confirm",
            )
        if not yes:
            typer.confirm("Change them?", abort=True, err=True)

    return agree


def left_out(counts: Mapping[str, int], words: Mapping[str, str]) -> Iterator[str]:
    """Which letters are not sent, and why: a sentence each."""
    for why, number in sorted(counts.items()):
        yield f"{output.count(number, 'dead letter')} left out: {words[why]}"


def _chosen(preview: LettersPreview) -> Iterator[str]:
    for stream in preview.resumed:
        yield f"{stream} is not over: it continues first"
    for one in preview.counts:
        letters, held = output.count(one.letters, "dead letter"), output.count(one.bytes, "byte")
        yield f"{letters} of {one.partition}, rejected at stage {one.stage} ({held})"
    if preview.delivered:
        yield f"{preview.delivered:,} of them an earlier replay has delivered, or may have: they are sent once more"


def _sentences(move: Move) -> list[str]:
    return [
        *([_moved_back(move)] if move.repeats.receipts else []),
        *([_built_on(move.undone)] if move.undone and move.undone.built_on else []),
        *([_deleted(move)] if move.unseen else []),
    ]


def _moved_back(move: Move) -> str:
    repeats = move.repeats
    most = "up to " if repeats.at_most else ""
    records, receipts = output.count(repeats.records, "record"), output.count(repeats.receipts, "receipt")
    amount = f"{most}{records} of {receipts} ({most}{output.count(repeats.bytes_read, 'byte')} read)"
    begin = "the beginning" if move.after is None else output.cell(move.after)
    return f"moving back from {output.cell(move.before or 0)} to {begin} delivers {amount} again"


def _deleted(move: Move) -> str:
    return (
        f"the target deleted {output.count(move.unseen, 'message')} before they were checked: records of the open range"
        f" among them, at or after {output.cell(move.after or 0)}, are delivered again"
    )


def _built_on(undone: LastChange) -> str:
    runs = output.count(undone.built_on, "run")
    have = "has" if undone.built_on == 1 else "have"
    moment = output.cell(undone.changed_at)
    return f"{runs} {have} used the change by {undone.who} of {moment} (the last: {undone.newest_run})"
