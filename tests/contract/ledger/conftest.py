"""Each test of the ledger runs on a fresh SQLite file and on an emptied PostgreSQL database."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from connect_core.ledger import Ledger, upgrade
from connect_core.ledger.tables import LEDGER, METADATA
from tests.contract.ledger.samples import Worker

POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.server)


@pytest.fixture(params=["sqlite", POSTGRESQL])
def url(request: pytest.FixtureRequest) -> str:
    """Of a ledger with current tables and nothing in them."""
    made: str = request.getfixturevalue(f"{request.param}_ledger")
    return made


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as opened:
        yield opened


@pytest.fixture
def worker(ledger: Ledger) -> Worker:
    """A connector with two partitions, and a run that holds the lease of its one task."""
    return Worker.started(ledger, "orders")


@pytest.fixture
def sqlite_ledger(empty_ledger: Path, tmp_path: Path) -> str:
    shutil.copy(empty_ledger, tmp_path / "ledger.sqlite")
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def postgresql_ledger(postgresql_database: str) -> str:
    """One database for the whole session, emptied: to make one takes longer than most tests. Dead letters are numbered
    from 1, as in a new one."""
    tables = [table.name for table in reversed(METADATA.sorted_tables) if table is not LEDGER]
    administer(postgresql_database, "; ".join(f"DELETE FROM {name}" for name in tables))
    administer(postgresql_database, "ALTER SEQUENCE dead_letters_id_seq RESTART")
    return postgresql_database


@pytest.fixture(scope="session")
def postgresql_database(postgres_url: str) -> str:
    name = f"ledger_{secrets.token_hex(4)}"
    administer(postgres_url, f"CREATE DATABASE {name}")
    upgrade(named(postgres_url, name))
    return named(postgres_url, name)


@pytest.fixture
def empty_postgresql(postgres_url: str) -> Iterator[str]:
    """Of a database without any table."""
    name = f"empty_{secrets.token_hex(4)}"
    administer(postgres_url, f"CREATE DATABASE {name}")
    yield named(postgres_url, name)
    administer(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


def named(url: str, database: str) -> str:
    """The same server, another database."""
    head, _, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{database}?{query}"


def administer(url: str, statement: str) -> None:
    connection = psycopg2.connect(url.replace("postgresql+psycopg2", "postgresql"))
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()
