"""Before a position is moved back by hand: what will be delivered again, and whether somebody wants that.

On a terminal a person is asked; elsewhere the change is refused unless the command has --yes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from connect_core.cli import output
from connect_core.errors import ConfigError, Retriable

if TYPE_CHECKING:
    from connect_core.cli.session import Session
    from connect_core.ledger import Connector, LastChange, Repeats
    from connect_core.sdk.records import Partition
    from connect_core.sdk.values import Position

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; without a terminal nobody can be asked.")]


def agreed(
    opened: Session,
    connector: Connector,
    partition: Partition,
    before: Position | None,
    after: Position | None,
    *,
    yes: bool,
    undone: LastChange | None = None,
    unseen: int = 0,
) -> Repeats:
    """What the move from `before` to `after` repeats, shown and agreed to. `undone`: the change that it takes back.
    `unseen`: so many messages of the target may be of a range that is given up, and are gone.

    Raises ConfigError when somebody would have to be asked and there is no terminal, Abort when they say no.
    """
    from connect_core.sdk.values import LIVE

    repeats = opened.ledger.repeats(connector.uid, LIVE, partition, before, after)
    sentences = [
        *([_moved_back(before, after, repeats)] if repeats.receipts else []),
        *([_built_on(undone)] if undone and undone.built_on else []),
        *([_deleted(after, unseen)] if unseen else []),
    ]
    if sentences and not yes and not sys.stdin.isatty():
        raise ConfigError(
            "; ".join(sentences),
            where=f"connector {connector.name}, partition {partition.key}",
            next_step="Nothing was changed. To do it without being asked, add --yes",
        )
    for sentence in sentences:
        output.notice(f"{connector.name}: {partition.key}: {sentence}")
    if sentences and not yes:
        typer.confirm("Change it?", abort=True, err=True)
    return repeats


def require_unmoved(opened: Session, connector: Connector, partition: Partition, before: Position | None) -> None:
    """Raises Retriable when the position is not the one any more that was shown. Asked under the lease."""
    from connect_core.sdk.values import LIVE

    if opened.ledger.positions(connector.uid, LIVE, [partition])[partition] != before:
        raise Retriable(
            "a run has moved the position meanwhile; nothing was changed",
            where=f"connector {connector.name}, partition {partition.key}",
            next_step=f"Pause it (waybill connectors pause {connector.name}), and give the command again",
        )


def _moved_back(before: Position | None, after: Position | None, repeats: Repeats) -> str:
    most = "up to " if repeats.at_most else ""
    records, receipts = output.count(repeats.records, "record"), output.count(repeats.receipts, "receipt")
    amount = f"{most}{records} of {receipts} ({most}{output.count(repeats.bytes_read, 'byte')} read)"
    begin = output.cell(after.offset) if after else "the beginning"
    return f"moving back from {output.cell(before.offset if before else 0)} to {begin} delivers {amount} again"


def _deleted(after: Position | None, unseen: int) -> str:
    return (
        f"the target has deleted {output.count(unseen, 'message')} before anybody looked: what of the open range was"
        f" among them, at or behind {output.cell(after.offset if after else 0)}, is delivered again"
    )


def _built_on(undone: LastChange) -> str:
    runs = output.count(undone.built_on, "run")
    have = "has" if undone.built_on == 1 else "have"
    moment = output.cell(undone.changed_at)
    return f"{runs} {have} built on the change by {undone.who} of {moment} (the last: {undone.newest_run})"
