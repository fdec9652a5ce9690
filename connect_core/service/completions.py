"""Names that somebody may mean, for whoever types them: connectors, their partitions, their backfills and replays;
tokens.

Asked at each press of a key, so the ledger's schema is not looked at. Raises whatever keeps the ledger from answering.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.config import database_url, find_home
from connect_core.ledger import Ledger


def connectors() -> list[str]:
    with _glance() as ledger:
        return [one.name for one in ledger.connectors()]


def partitions(connector: str) -> list[str]:
    with _glance() as ledger:
        return sorted(one.key for one in ledger.partitions(ledger.connector(connector).uid))


def backfills(connector: str) -> list[str]:
    """The streams of backfills and replays, the newest first."""
    with _glance() as ledger:
        return [one.stream for one in ledger.backfills(ledger.connector(connector).uid)]


def tokens() -> list[str]:
    """Those that were not revoked."""
    with _glance() as ledger:
        return [one.name for one in ledger.access_tokens() if one.revoked_at is None]


@contextmanager
def _glance() -> Iterator[Ledger]:
    with Ledger.glance(database_url(find_home())) as ledger:
        yield ledger
