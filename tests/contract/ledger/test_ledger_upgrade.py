"""A ledger of any former schema version is upgraded with all that it holds: its receipts, and ranges that are open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from connect_core.ledger import Ledger, schema, upgrade
from connect_core.ledger.database import engine_for, parse_url, write
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import LIVE, Position
from connect_core.work import Outcome
from tests.contract.ledger.conftest import POSTGRESQL
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt

pytestmark = pytest.mark.usefixtures("migrations")

_NEWEST = int(schema.VERSION) - 1
REVISIONS = [
    pytest.param(f"{number:04}", marks=() if number in (1, 7, _NEWEST) else pytest.mark.fault(costly=True))
    for number in range(1, _NEWEST + 1)
]
"""Who comes from the first passes all others."""
FORMER = {"deduplicated": "already", "duplicates": "surplus", "possible_duplicates": "possible_repeats"}
COUNTS = {"deduplicated": 40, "duplicates": 2, "possible_duplicates": 1}
FOUND = ScanResult().joined({"copy:0": np.array([[0, 0, 5, 0, 1]])}, {"copy:0": 9}, True, possible_duplicates=3)


@pytest.fixture(params=["sqlite", POSTGRESQL])
def former(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        path = tmp_path / "former.sqlite"
        path.touch()
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("empty_postgresql")
    return url


@pytest.fixture
def filled(former: str, request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A ledger of today in the same kind of database, with a receipt, an open range and a run that ended."""
    kind = "sqlite" if former.startswith("sqlite") else "postgresql"
    with Ledger.open(request.getfixturevalue(f"{kind}_ledger")) as ledger:
        worker = Worker.started(ledger, "orders")
        worker.move(Q0, 0, 100, delivered=60, **COUNTS)
        ledger.renew(worker.lease, boot_id="boot", deadline_ns=77, ttl_s=60)
        [left] = worker.plan(planned(Q1))
        ledger.record_found([worker.lease], {left.id: FOUND})
        ledger.end_run(worker.run_id, state="done", failure=None, summary={"read": 100, **COUNTS})
        yield worker


def tables_of(connection: sa.Connection) -> dict[str, sa.Table]:
    known = sa.MetaData()
    known.reflect(connection)
    return {table.name: table for table in known.sorted_tables if table.name != "alembic_version"}


def make_former(url: str, revision: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """The tables of a former version, with as much of these rows as they have columns for."""
    engine, config = engine_for(parse_url(url)), Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    with write(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for name, table in tables_of(connection).items():
            connection.execute(table.delete())
            columns = {column.name for column in table.columns}
            kept = [{key: value for key, value in row.items() if key in columns} for row in rows.get(name, [])]
            if kept:
                connection.execute(table.insert(), kept)
    engine.dispose()


def rows_of(ledger: Ledger) -> dict[str, list[dict[str, Any]]]:
    with ledger._read() as connection:
        tables = tables_of(connection)
        return {name: [dict(row._mapping) for row in connection.execute(sa.select(t))] for name, t in tables.items()}


def in_former_words(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """With the names that counts had before 0008."""
    for row in rows["ranges"]:
        row |= {before: row.pop(name) for name, before in FORMER.items()}
        row["found"] = row["found"] and row["found"].replace(b"possible_duplicates", b"possible_repeats")
    for row in rows["runs"]:
        row["summary"] = row["summary"] and {FORMER.get(name, name): count for name, count in row["summary"].items()}
    return rows


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_former_ledger_goes_on_with_all_that_it_holds(revision: str, former: str, filled: Worker) -> None:
    rows = rows_of(filled.ledger)
    make_former(former, revision, rows if revision >= "0008" else in_former_words(rows))
    upgrade(former)
    with Ledger.open(former) as ledger:
        worker = Worker(ledger, filled.uid, filled.lease, filled.run_id)
        [before], [after] = filled.ledger.receipts(worker.uid), ledger.receipts(worker.uid)
        covered = 100 if revision >= "0007" else None
        assert (after.receipt.covered, after.receipt.deduplicated, after.receipt.duplicates) == (covered, 40, 2)
        assert (after.id, after.partition, after.receipt.digest_read) == (before.id, Q0, before.receipt.digest_read)
        [run] = ledger.runs(worker.uid)
        assert run.summary == {"read": 100, **COUNTS}
        [left] = ledger.open_ranges(worker.uid, LIVE)
        assert left.found is not None
        assert (left.found.possible_duplicates, left.found.hits.tolist()) == (3, FOUND.hits.tolist())
        lease = ledger.lease(worker.lease.id)
        assert lease is not None
        assert (lease.deadline_ns, lease.ttl_s) == (77, 60 if revision >= "0009" else 0)
        again = worker.taken_over()
        again.settle(Outcome(left.id, receipt()))
        assert again.position(Q1) == Position(0, 100, {"last": 99})
