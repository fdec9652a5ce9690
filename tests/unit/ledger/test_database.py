"""Database URLs, run ids, receipt digests and times: what needs no database."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from connect_core.errors import ConfigError
from connect_core.ledger.database import parse_url, shown
from connect_core.ledger.rows import receipt_digest
from connect_core.ledger.runs import new_run_id
from connect_core.ledger.tables import UtcTime
from connect_core.sdk.values import Floor, Gap, Reject
from connect_core.work import Receipt

RECEIPT = Receipt(
    0, 9, 9, 0, 1, 1, 7, 7, 6, 1, 0, 0, 90, 80, 0.5, "r", "s", {"q": [1]}, {"e": 1}, (Floor("p", "t", 5),)
)
REJECT = Reject(1, 0, "read", "Bad", "m", b"abc", "t")


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://a@b/c", "sqlite://", "sqlite:///:memory:", "redis://localhost", ""]
)
def test_what_cannot_hold_a_ledger_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:////path/to/ledger"):
        parse_url(url)


def test_a_refused_url_does_not_tell_its_password() -> None:
    with pytest.raises(ConfigError) as told:
        parse_url("mysql://ann:sesame@host/db")
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg2"])
def test_postgresql_goes_through_psycopg2(scheme: str) -> None:
    url = parse_url(f"{scheme}://ann:sesame@host/db?sslmode=require")
    assert url.drivername == "postgresql+psycopg2"
    assert url.query == {"sslmode": "require"}
    assert "sesame" not in shown(url)


def test_run_ids_sort_by_time() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ids = [new_run_id(start + timedelta(milliseconds=n * 7919)) for n in range(200)]
    assert ids == sorted(ids)
    assert {len(one) for one in ids} == {13}
    assert len({new_run_id(start) for _ in range(50)}) > 45


@pytest.mark.parametrize(
    "change",
    [
        {field.name: getattr(RECEIPT, field.name) + 1}
        for field in fields(Receipt)
        if isinstance(getattr(RECEIPT, field.name), int)
    ]
    + [
        {"digest_read": "x"},
        {"digest_sent": "x"},
        {"where": {"q": [2]}},
        {"evidence": {}},
        {"floors": ()},
        {"floors": (Floor("p", "t", 5, ahead=True),)},
        {"gaps": (Gap(0, 1, None, "r"),)},
        {"rejects": (REJECT,)},
        {"rejects": (replace(REJECT, original=b"abd"),)},
        {"reconstructed": True},
        {"seconds": 0.25},
    ],
    ids=str,
)
def test_everything_in_a_receipt_is_in_its_digest(change: dict[str, Any]) -> None:
    changed = replace(RECEIPT, **change)
    assert receipt_digest(changed) != receipt_digest(RECEIPT)
    assert receipt_digest(changed) == receipt_digest(replace(RECEIPT, **change))


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()], ids=["sqlite", "postgresql"])  # type: ignore[no-untyped-call]
def test_times_come_back_aware_and_in_utc(dialect: Any) -> None:
    moment = datetime(2026, 3, 1, 12, 30, 0, 123456, tzinfo=timezone(timedelta(hours=5)))
    stored = UtcTime().process_bind_param(moment, dialect)
    back = UtcTime().process_result_value(stored, dialect)
    assert back == moment
    assert back.tzinfo is UTC
    with pytest.raises(ValueError, match="aware"):
        UtcTime().process_bind_param(datetime(2026, 3, 1), dialect)
