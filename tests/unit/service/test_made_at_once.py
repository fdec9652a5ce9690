"""A ledger that several commands make at the same moment."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from connect_core.config import create_home
from connect_core.config.ledger_url import SQLITE_FILE
from connect_core.service.opened import ledger_exists, storing

AT_ONCE = 6


def test_who_comes_while_a_ledger_is_made_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    monkeypatch.delenv("WAYBILL_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    together = Barrier(AT_ONCE)

    def opened(_: int) -> int:
        together.wait()
        with storing() as there:
            return len(there.ledger.connectors())

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert list(threads.map(opened, range(AT_ONCE))) == [0] * AT_ONCE


def test_a_ledger_in_the_making_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is there before its tables are."""
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    monkeypatch.delenv("WAYBILL_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect(create_home() / SQLITE_FILE)) as half:
        half.execute("PRAGMA journal_mode = wal")
        assert not ledger_exists()
    with storing():
        assert ledger_exists()
