"""The folder and the commands that tests of a server have."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from connect_core.ledger import Ledger
from tests.unit.api.native import server
from tests.unit.cli.conftest import Waybill, applied, folder, waybill
from tests.unit.cli.moves import moved
from tests.unit.cli.test_dead_letters import reject

__all__ = ["applied", "folder", "server", "waybill"]


@pytest.fixture
def remote(waybill: Waybill, server: httpx.URL, monkeypatch: pytest.MonkeyPatch, warm_operations: None) -> Waybill:
    """The command with the address of the server before it."""
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    monkeypatch.setattr("connect_core.remote.operations._LOOK_EVERY_S", 0.05)
    return lambda *words, **more: waybill("--server", str(server), *words, **more)


@pytest.fixture
def rejected(waybill: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`copy` has three dead letters."""
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    letters = (reject(0, b"one"), reject(4, b"two", "encode"), reject(8, b"thr", "read", whole=False))
    moved(Ledger.open(f"sqlite:///{applied}/.waybill/ledger.db"), "copy", applied, records=0, rejects=letters)
    return applied
