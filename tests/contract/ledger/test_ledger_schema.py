"""Migrations: from nothing to the tables of this code, on both databases; and what an unfit schema says."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from connect_core.errors import ConfigError
from connect_core.ledger import Ledger, check, schema, upgrade
from connect_core.ledger.database import engine_for, parse_url
from connect_core.ledger.schema import VERSION
from connect_core.ledger.tables import METADATA
from tests.contract.ledger.conftest import POSTGRESQL
from tests.made_ledgers import migrate_or_copy

pytestmark = pytest.mark.usefixtures("migrations")


@pytest.fixture(params=["sqlite", POSTGRESQL])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'deep' / 'ledger.sqlite'}"
    url: str = request.getfixturevalue("empty_postgresql")
    return url


@pytest.fixture
def url(empty: str) -> str:
    """A ledger of its own, whose schema may be spoilt."""
    upgrade(empty)
    return empty


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    engine = engine_for(parse_url(url))
    yield engine
    engine.dispose()


def put_version(engine: sa.Engine, version: str) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def test_upgrade_makes_a_ledger_from_nothing_and_may_be_repeated(empty: str) -> None:
    assert "waybill db upgrade" in check(empty)[0]
    with pytest.raises(ConfigError, match="waybill db upgrade"):
        Ledger.open(empty)
    upgrade(empty)
    with Ledger.open(empty) as ledger:
        identity = ledger.identity()
        ledger.apply("orders", {"a": 1}, who="ann")
    upgrade(empty)
    assert check(empty) == []
    with Ledger.open(empty) as ledger:
        assert ledger.identity() == identity
        assert ledger.connector("orders").document == {"a": 1}


def test_reading_commands_make_no_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    check(url)
    with pytest.raises(ConfigError):
        Ledger.open(url)
    assert list(tmp_path.iterdir()) == []


def test_upgrades_at_once_make_one_ledger(empty: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(upgrade, [empty] * 4))
    assert check(empty) == []


def test_the_migrations_make_exactly_the_tables_that_the_code_names(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_the_code_works_with_the_newest_migration() -> None:
    scripts = ScriptDirectory("connect_core/ledger/migrations")
    known = [script.revision for script in scripts.walk_revisions()]
    assert VERSION == scripts.get_current_head() == known[0]


def test_a_schema_that_is_behind_says_how_to_upgrade(url: str, engine: sa.Engine) -> None:
    put_version(engine, "0000")
    with pytest.raises(ConfigError, match=r"behind this code .* Run `waybill db upgrade`"):
        Ledger.open(url)
    assert "behind" in check(url)[0]


def test_a_schema_that_is_ahead_asks_for_newer_code(url: str, engine: sa.Engine) -> None:
    put_version(engine, "0999")
    for attempt in (Ledger.open, upgrade):
        with pytest.raises(ConfigError, match=r"ahead of this code .* Use a newer waybill"):
            attempt(url)
    assert "ahead" in check(url)[0]


def test_two_ledgers_are_two(url: str, sqlite_ledger: str) -> None:
    with Ledger.open(url) as one, Ledger.open(sqlite_ledger) as other:
        assert one.identity().id != other.identity().id


def test_sqlite_is_for_its_owner_only_with_a_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    upgrade(f"sqlite:///{path}")
    with Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.apply("orders", {}, who="ann")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        with engine_for(parse_url(f"sqlite:///{path}")).connect() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
            connection.engine.dispose()
    assert modes == {"ledger.sqlite": 0o600, "ledger.sqlite-wal": 0o600, "ledger.sqlite-shm": 0o600}
    plain = sqlite3.connect(path)
    try:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    finally:
        plain.close()


def test_ledgers_of_tests_are_as_migrated_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade(f"sqlite:///{tmp_path / 'migrated'}")
    monkeypatch.setattr(schema, "_migrate", migrate_or_copy)
    upgrade(f"sqlite:///{tmp_path / 'copied'}")
    migrated, copied = (_whole(tmp_path / name) for name in ("migrated", "copied"))
    assert len(migrated) > 30
    assert [one for one in copied if one not in migrated] == [one for one in copied if 'INTO "ledger"' in one]
    assert len(copied) == len(migrated)
    assert copied != migrated, "each has an id of its own"


def _whole(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as opened:
        return [*opened.iterdump()]
