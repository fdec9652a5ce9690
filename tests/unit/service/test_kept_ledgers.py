"""Ledgers that a server keeps open are those that are there."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connect_core.errors import ConfigError, Unreachable
from connect_core.ledger import Ledger
from connect_core.service import callers, connectors
from connect_core.service.kept_ledgers import ASKED_AGAIN_S, KeptLedgers, keeping
from connect_core.service.opened import AtWork, ledger_exists, reading


@pytest.fixture
def kept() -> Iterator[KeptLedgers]:
    found = KeptLedgers()
    with keeping(found):
        yield found
    found.close()


def opened_now() -> Ledger:
    with reading() as opened:
        return opened.ledger


def test_a_ledger_is_opened_once(opened: AtWork, kept: KeptLedgers) -> None:
    assert opened_now() is opened_now() is not opened.ledger
    assert [*connectors.by_name()] == ["copy"]
    opened.ledger.set_target_state(opened.ledger.connector("copy").uid, "paused", who="ann")
    assert connectors.by_name()["copy"].target_state == "paused"


def test_another_one_in_its_place_is_read(opened: AtWork, kept: KeptLedgers, empty_ledger: Path) -> None:
    ledger = opened.home / "ledger.db"
    before = opened_now()
    assert [*connectors.by_name()] == ["copy"]
    for suffix in ("-wal", "-shm"):
        Path(f"{ledger}{suffix}").unlink(missing_ok=True)
    restored = shutil.copy(empty_ledger, opened.home / "restored.db")
    Path(restored).replace(ledger)
    assert connectors.by_name() == {}
    assert opened_now() is not before
    ledger.unlink()
    assert not ledger_exists()
    with pytest.raises(ConfigError, match="There is no ledger here"):
        opened_now()


def test_one_that_was_upgraded_meanwhile_is_refused(opened: AtWork, kept: KeptLedgers) -> None:
    assert opened_now() is opened_now()
    with closing(sqlite3.connect(opened.home / "ledger.db")) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        newer.commit()
    time.sleep(ASKED_AGAIN_S)
    with pytest.raises(ConfigError, match="ahead of this code"):
        opened_now()


def test_a_damaged_one_is_told_as_one_that_does_not_answer(opened: AtWork, kept: KeptLedgers) -> None:
    """And not as a defect of ours."""
    for suffix in ("-wal", "-shm"):
        Path(f"{opened.home / 'ledger.db'}{suffix}").unlink(missing_ok=True)
    damaged = opened.home / "damaged"
    damaged.write_bytes(b"no database" * 1000)
    damaged.replace(opened.home / "ledger.db")
    with pytest.raises(Unreachable, match=r"The ledger is damaged: .*Bring it back from a backup"):
        opened_now()


def test_other_settings_are_seen(opened: AtWork, kept: KeptLedgers, monkeypatch: pytest.MonkeyPatch) -> None:
    def lease_ttl_s() -> float:
        with reading() as found:
            return found.settings.lease_ttl_s

    assert lease_ttl_s() != 77
    monkeypatch.setenv("WAYBILL_LEASE_TTL_S", "77")
    time.sleep(ASKED_AGAIN_S)
    assert lease_ttl_s() == 77


def test_each_reads_in_its_own_name(opened: AtWork, kept: KeptLedgers) -> None:
    names = []
    for name in ("ann", "bob"):
        with callers.calling(callers.Caller(name, "admin", ("*",), "192.0.2.7")), reading() as found:
            names.append(found.settings.user)
    assert names == ["token ann from 192.0.2.7", "token bob from 192.0.2.7"]


def test_who_keeps_none_opens_its_own(opened: AtWork) -> None:
    assert opened_now() is not opened_now()
