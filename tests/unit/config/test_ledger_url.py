"""Which database holds the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config.ledger_url import database_url, shown
from connect_core.errors import Unreachable


def test_the_environment_wins(home: Path) -> None:
    assert database_url(home, {"WAYBILL_DATABASE_URL": "sqlite:////x"}) == "sqlite:////x"
    assert database_url(None, {"WAYBILL_DATABASE_URL": "sqlite:////x"}) == "sqlite:////x"


def test_else_a_file_of_the_home(home: Path) -> None:
    assert database_url(home, {}) == f"sqlite:///{home}/ledger.db"
    assert not (home / "ledger.db").exists(), "asking makes nothing"


def test_without_a_home_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="There is no home"):
        database_url(None, {})


def test_a_stopped_database_is_not_replaced_by_another_ledger(home: Path) -> None:
    (home / "logs").mkdir()
    (home / "logs" / "postgresql.log").write_text("")
    with pytest.raises(Unreachable, match="The ledger is in the local stack's database, which is not running"):
        database_url(home, {})


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://ann:hunter2@db/waybill", "postgresql://ann:***@db/waybill"),
        ("postgresql://ann:hun@ter@db/waybill", "postgresql://ann:***@db/waybill"),
        ("postgresql://ann@db/w?password=hunter2&x=1", "postgresql://ann@db/w?password=***&x=1"),
        ("sqlite:////srv/ledger.db", "sqlite:////srv/ledger.db"),
    ],
)
def test_a_password_is_not_shown(url: str, text: str) -> None:
    assert shown(url) == text
