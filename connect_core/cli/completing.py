"""What the shell offers when somebody presses Tab: names of connectors, their partitions, their backfills and replays.

Asked at each press, so it reads the ledger without looking at its schema, and says nothing when there is none or it
does not answer: no message may appear in the middle of a line that is typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from connect_core.ledger import Ledger


def connectors(incomplete: str) -> list[str]:
    return _offered(incomplete, lambda ledger: [one.name for one in ledger.connectors()])


def partitions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of the connector that stands before it."""

    def known(ledger: Ledger) -> Iterable[str]:
        return sorted(one.key for one in ledger.partitions(ledger.connector(ctx.params["name"]).uid))

    return _offered(incomplete, known)


def backfills(ctx: typer.Context, incomplete: str) -> list[str]:
    """The streams of the connector that stands before it, the newest first."""

    def known(ledger: Ledger) -> Iterable[str]:
        return [one.stream for one in ledger.backfills(ledger.connector(ctx.params["name"]).uid)]

    return _offered(incomplete, known)


def _offered(incomplete: str, known: Callable[[Ledger], Iterable[str]]) -> list[str]:
    try:
        from connect_core.config import database_url, find_home
        from connect_core.ledger import Ledger

        with Ledger.glance(database_url(find_home())) as ledger:
            return [word for word in known(ledger) if word.startswith(incomplete)]
    except Exception:  # whatever it is: the command itself will say it
        return []
