"""What the shell offers when somebody presses Tab: names of connectors, their partitions, their backfills and replays;
tokens.

Asked at each press, so it reads the ledger without looking at its schema, and says nothing when there is none or it
does not answer: no message may appear in the middle of a line that is typed.
"""

from __future__ import annotations

from collections.abc import Callable

import typer


def connectors(ctx: typer.Context, incomplete: str) -> list[str]:
    def known() -> list[str]:
        from connect_core.service import completions

        return completions.connectors()

    return _offered(ctx, incomplete, known)


def partitions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Of the connector before it."""

    def known() -> list[str]:
        from connect_core.service import completions

        return completions.partitions(ctx.params["name"])

    return _offered(ctx, incomplete, known)


def backfills(ctx: typer.Context, incomplete: str) -> list[str]:
    """The streams of the connector before it, the newest first."""

    def known() -> list[str]:
        from connect_core.service import completions

        return completions.backfills(ctx.params["name"])

    return _offered(ctx, incomplete, known)


def tokens(ctx: typer.Context, incomplete: str) -> list[str]:
    """Those that were not revoked."""

    def known() -> list[str]:
        from connect_core.service import completions

        return completions.tokens()

    return _offered(ctx, incomplete, known)


def _offered(ctx: typer.Context, incomplete: str, known: Callable[[], list[str]]) -> list[str]:
    """Nothing for a server: names of here are not those of there, and nobody waits for a network while typing."""
    if ctx.find_root().params.get("server"):
        return []
    try:
        return [word for word in known() if word.startswith(incomplete)]
    except Exception:  # whatever it is: the command itself will say it
        return []
