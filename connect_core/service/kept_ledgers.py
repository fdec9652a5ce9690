"""Ledgers that stay open from one use to the next: for a server, to which opening one costs more than asking it.

The server sets them for a request, as it does the caller, and `opened.reading` takes them. Commands open their own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from connect_core.config import Settings
    from connect_core.ledger import Ledger


ASKED_AGAIN_S = 0.05
"""For so long a schema is taken for what it was, and so are home and settings. A change may as well come between the
question and the reading."""


class LedgerPlace(NamedTuple):
    """What says which ledger is read, and how; `url` is the ledger's."""

    home: Path | None
    settings: Settings
    url: str


_Named = tuple[str, str | None]


def _named() -> _Named:
    """What a process may change that says which ledger is meant."""
    return os.environ.get("WAYBILL_HOME") or os.getcwd(), os.environ.get("WAYBILL_DATABASE_URL")


class KeptLedgers:
    """Threads may share it. A file that was replaced, as by a backup, is opened again; a schema that was upgraded
    meanwhile is noticed at the next use, or `ASKED_AGAIN_S` later."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[str, tuple[object, Ledger]] = {}
        self._asked: dict[str, float] = {}
        self._place: tuple[_Named, float, LedgerPlace] | None = None

    def place(self, find: Callable[[], LedgerPlace]) -> LedgerPlace:
        """Raises what `find` raises."""
        kept = self._fresh()
        if kept is None:
            named, begun, kept = _named(), time.monotonic(), find()
            self._place = named, begun, kept
        return kept

    def read_just_now(self) -> bool:
        """Whether the ledger of that place is open."""
        kept = self._fresh()
        return kept is not None and self.knows(kept.url)

    def _fresh(self) -> LedgerPlace | None:
        if self._place is None:
            return None
        named, begun, kept = self._place
        return kept if named == _named() and time.monotonic() - begun < ASKED_AGAIN_S else None

    def knows(self, url: str) -> bool:
        """Whether this very ledger is open."""
        from connect_core.ledger import file_identity

        before = self._kept.get(url)
        return before is not None and before[0] == file_identity(url)

    def at(self, url: str) -> Ledger:
        """Raises what `Ledger.open` raises."""
        from connect_core.ledger import Ledger, file_identity

        with self._lock:
            if not self.knows(url):
                self._forget(url)
                # Asked before: one that is replaced while it is opened is another one at the next use.
                identity = file_identity(url)
                self._kept[url] = identity, Ledger.open(url)
                return self._kept[url][1]
            ledger = self._kept[url][1]
        begun = time.monotonic()
        if begun - self._asked.get(url, -ASKED_AGAIN_S) >= ASKED_AGAIN_S:
            ledger.require_current()
            self._asked[url] = begun
        return ledger

    def close(self) -> None:
        with self._lock:
            for url in [*self._kept]:
                self._forget(url)

    def _forget(self, url: str) -> None:
        """Who is at work with it ends that first."""
        self._asked.pop(url, None)
        if before := self._kept.pop(url, None):
            before[1].close()


_keeping: ContextVar[KeptLedgers | None] = ContextVar("kept ledgers", default=None)


@contextmanager
def keeping(kept: KeptLedgers) -> Iterator[None]:
    """What is read inside the block is read from these."""
    before = _keeping.set(kept)
    try:
        yield
    finally:
        _keeping.reset(before)


def kept_ledgers() -> KeptLedgers | None:
    """None for who opens what it needs."""
    return _keeping.get()
