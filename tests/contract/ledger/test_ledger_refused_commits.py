"""A COMMIT that SQLite refuses (a full disk, say), and a process that is interrupted just there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event

from connect_core.errors import Retriable
from connect_core.ledger import Ledger
from tests.contract.ledger.samples import Q0, Worker, planned


@pytest.fixture
def ledger(sqlite_ledger: str) -> Iterator[Ledger]:
    with Ledger.open(sqlite_ledger) as opened:
        yield opened


def test_after_a_refused_commit_nothing_stands_and_the_next_transaction_works(worker: Worker) -> None:
    refuse_the_next_commit(worker.ledger)
    with pytest.raises(Retriable, match="unknown"):
        worker.plan(planned(Q0))
    assert worker.open_ids() == []
    worker.move(Q0)


def test_after_an_interruption_at_commit_nothing_stands_and_the_next_transaction_works(worker: Worker) -> None:
    def interrupt(_connection: object) -> None:
        raise KeyboardInterrupt

    event.listen(worker.ledger._engine, "commit", interrupt, once=True)
    with pytest.raises(KeyboardInterrupt):
        worker.plan(planned(Q0))
    assert worker.open_ids() == []
    worker.move(Q0)


def refuse_the_next_commit(ledger: Ledger) -> None:
    refused: list[str] = []

    def authorize(action: int, name: str | None, *_place: Any) -> int:
        if action == sqlite3.SQLITE_TRANSACTION and name == "COMMIT" and not refused:
            refused.append(name)
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    with ledger._engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.set_authorizer(authorize)
        connection.rollback()
        refused.clear()
