"""What happens when the connection is lost at COMMIT, when the database is away, and when somebody holds a lock."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg2
import pytest

from connect_core.errors import DataError, Fenced, Retriable, Unreachable
from connect_core.ledger import Ledger
from connect_core.sdk.values import Position
from connect_core.work import Outcome
from tests.contract.ledger.cut_line import CutLine
from tests.contract.ledger.samples import Q0, Worker, planned, receipt

pytestmark = pytest.mark.server


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one: the path of a socket has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="cut-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def line(postgresql_ledger: str, folder: Path) -> Iterator[CutLine]:
    [server_folder] = parse_qs(urlsplit(postgresql_ledger).query)["host"]
    made = CutLine(folder, server_folder)
    yield made
    made.close()


@pytest.fixture
def worker(line: CutLine, postgresql_ledger: str, folder: Path) -> Iterator[Worker]:
    with Ledger.open(f"{postgresql_ledger.partition('?')[0]}?host={folder}") as ledger:
        yield Worker.started(ledger, "orders")


def test_a_settle_whose_answer_was_lost_is_read_back(worker: Worker, line: CutLine) -> None:
    [opened] = worker.plan(planned())
    line.cut("behind")
    worker.settle(Outcome(opened.id, receipt()))
    assert worker.position() == Position(0, 100, {"last": 99})
    assert len(worker.ledger.receipts(worker.uid)) == 1


def test_a_settle_that_never_arrived_is_unknown_and_can_be_asked_for_again(worker: Worker, line: CutLine) -> None:
    [opened] = worker.plan(planned())
    outcome = Outcome(opened.id, receipt())
    line.cut("before")
    with pytest.raises(Retriable, match="unknown"):
        worker.settle(outcome)
    assert worker.open_ids() == [opened.id]
    worker.settle(outcome)
    assert worker.open_ids() == []


def test_a_settle_that_stands_beside_another_receipt_is_not_taken_for_ours(worker: Worker, line: CutLine) -> None:
    """Read back means exactly this receipt: one that differs in anything is not it."""
    [opened] = worker.plan(planned())
    line.cut("behind")
    worker.settle(Outcome(opened.id, receipt()))
    with pytest.raises(DataError, match="another receipt"):
        worker.settle(Outcome(opened.id, replace(receipt(), digest_read="other")))


def test_any_other_transaction_says_that_it_is_unknown(worker: Worker, line: CutLine) -> None:
    line.cut("behind")
    with pytest.raises(Retriable, match="unknown"):
        worker.plan(planned())
    assert len(worker.open_ids()) == 1


def test_a_lease_row_that_somebody_keeps_locked_is_not_waited_for_for_ever(
    postgresql_ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connect_core.ledger.database.LOCK_LIMIT_S", 1)
    with Ledger.open(postgresql_ledger) as ledger:
        worker = Worker.started(ledger, "orders")
        stopped = psycopg2.connect(postgresql_ledger.replace("postgresql+psycopg2", "postgresql"))
        try:
            stopped.cursor().execute("SELECT * FROM leases FOR UPDATE")
            with pytest.raises(Retriable, match="busy"):
                ledger.renew(worker.lease, boot_id="b", deadline_ns=1, ttl_s=1)
        finally:
            stopped.close()
        ledger.renew(worker.lease, boot_id="b", deadline_ns=1, ttl_s=1)


def test_a_driver_that_stops_inside_a_transaction_does_not_keep_its_lease(
    postgresql_ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by SIGSTOP, say: the server ends its session, so that its challenger gets the row."""
    monkeypatch.setattr("connect_core.ledger.database.IDLE_LIMIT_S", 1)
    with Ledger.open(postgresql_ledger) as stopped, Ledger.open(postgresql_ledger) as challenger:
        worker = Worker.started(stopped, "orders")
        seen = challenger.lease(worker.lease.id)

        def stop_inside() -> None:
            with stopped._write() as connection:
                connection.exec_driver_sql("SELECT * FROM leases FOR UPDATE")
                challenger.take(worker.lease.id, seen, "challenger", uid=worker.uid, version=1)
                connection.exec_driver_sql("SELECT 1")

        with pytest.raises(Unreachable):
            stop_inside()
        with pytest.raises(Fenced):
            worker.plan(planned())


def test_a_database_that_is_away_is_unreachable_and_its_password_is_not_told(tmp_path: Path) -> None:
    with pytest.raises(Unreachable) as told:
        Ledger.open(f"postgresql://ann:sesame@/ledger?host={tmp_path}")
    assert "sesame" not in str(told.value)


def end_connections(url: str) -> None:
    """All of others."""
    connection = psycopg2.connect(url.replace("postgresql+psycopg2", "postgresql"))
    try:
        connection.cursor().execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    finally:
        connection.close()


def test_a_connection_that_was_ended_while_idle_is_replaced(
    worker: Worker, postgresql_ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connect_core.ledger.database.TRUSTED_S", 0.0)
    end_connections(postgresql_ledger)
    assert worker.plan(planned(Q0))


def test_one_that_was_ended_just_before_fails_once(
    worker: Worker, postgresql_ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connect_core.ledger.database.TRUSTED_S", 60.0)
    end_connections(postgresql_ledger)
    with pytest.raises(Unreachable):
        worker.plan(planned(Q0))
    assert worker.plan(planned(Q0))
