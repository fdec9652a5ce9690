"""A task of Airflow whose engine has no address: what it would have read is known to the next one all the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from connect_core.errors import Unreachable
from connect_core.ledger import Ledger
from connect_core.replication.driver.context import RunListener
from connect_core.service.scheduled import TaskAttempt, replicate

pytestmark = pytest.mark.usefixtures("warm_lanes")

ATTEMPT = TaskAttempt("logs", 0, "replicate.logs manual__1")
LISTENER = RunListener(lambda line: None, lambda progress: None)


def away() -> NoReturn:
    raise Unreachable("The engine has no address")


def test_a_log_that_is_rotated_before_the_engine_is_there_is_read_to_its_end(
    tmp_path: Path, empty_ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, log, out = tmp_path / ".waybill", tmp_path / "app.log", tmp_path / "out.txt"
    home.mkdir()
    log.write_text("one\n")
    shutil.copy(empty_ledger, home / "ledger.db")
    monkeypatch.setenv("WAYBILL_HOME", str(home))
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    ends = {"source": {"file": {"path": str(log)}}, "sink": {"file": {"path": str(out)}}}
    with Ledger.open(f"sqlite:///{home}/ledger.db") as ledger:
        ledger.apply("logs", {"version": 1, "name": "logs", **ends}, who="ann")
    monkeypatch.setenv("WAYBILL_ENGINE", "spark")
    with pytest.raises(Unreachable, match="no address"):
        replicate(ATTEMPT, away, lambda: "", LISTENER)
    log.rename(f"{log}.1")
    log.write_text("two\n")
    os.utime(f"{log}.1", (0, 0))  # nobody has written to it for a while
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    replicate(ATTEMPT, away, lambda: "", LISTENER)
    assert out.read_text() == "one\ntwo\n"
