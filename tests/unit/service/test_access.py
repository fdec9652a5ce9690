"""Tokens of callers: made, listed, revoked and looked up; and nowhere but in the answer of the one who made it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connect_core import clock
from connect_core.errors import ConfigError, Unreachable
from connect_core.service import access
from connect_core.service.callers import Caller
from connect_core.service.opened import AtWork, Opened

HERE = "192.0.2.7"


def made(opened: Opened, name: str = "ci", role: str = "operator", **more: Any) -> str:
    return str(access.create(opened, name, role, **more)["token"])


def test_a_token_lets_in_whom_it_was_made_for(opened: AtWork) -> None:
    token = made(opened, connectors=["team-a-*"])
    assert token.startswith("wb_")
    assert len(token) == 46
    assert access.caller_of(token, HERE) == Caller("ci", "operator", ("team-a-*",), HERE)
    assert made(opened, "other") != token


def test_all_are_listed_and_none_can_be_read(opened: AtWork) -> None:
    token = made(opened, "b", "viewer", expires_s=3600)
    made(opened, "a", "admin")
    first, second = access.listed(opened)
    assert (first["name"], first["role"], first["connectors"], first["expires_at"]) == ("a", "admin", ["*"], None)
    assert (second["name"], second["made_by"], second["revoked_at"]) == ("b", "ann", None)
    assert second["expires_at"] - second["made_at"] == pytest.approx(timedelta(hours=1), abs=timedelta(minutes=1))
    assert "sha256" not in first
    assert token not in str([first, second])


@pytest.mark.parametrize(
    ("name", "role", "more", "field"),
    [
        ("", "viewer", {}, "name"),
        ("a\nb", "viewer", {}, "name"),
        ("-a", "viewer", {}, "name"),
        ("a" * 101, "viewer", {}, "name"),
        ("a", "root", {}, "role"),
        ("a", "viewer", {"connectors": []}, "connectors"),
        ("a", "viewer", {"connectors": ["*", ""]}, "connectors"),
        ("a", "viewer", {"connectors": ["a b"]}, "connectors"),
        ("a", "viewer", {"expires_s": 0.0}, "expires"),
        ("a", "viewer", {"expires_s": 1e12}, "expires"),
    ],
)
def test_what_makes_no_token(opened: AtWork, name: str, role: str, more: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        access.create(opened, name, role, **more)
    assert [fault.path for fault in refused.value.faults] == [field]
    assert access.listed(opened) == []


def test_one_that_is_revoked_is_refused_at_once(opened: AtWork, caplog: pytest.LogCaptureFixture) -> None:
    token = made(opened)
    assert access.caller_of(token, HERE) is not None
    assert access.revoke(opened, "ci")["revoked_at"] is not None
    assert access.caller_of(token, HERE) is None
    assert caplog.messages == [f"Refused a caller from {HERE}: token ci is revoked"]


def test_one_that_has_expired_is_refused(
    opened: AtWork, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = made(opened, expires_s=60)
    [told] = access.listed(opened)
    monkeypatch.setattr(clock, "utc", lambda: told["expires_at"] - timedelta(seconds=1))
    assert access.caller_of(token, HERE) is not None
    monkeypatch.setattr(clock, "utc", lambda: told["expires_at"])
    assert access.caller_of(token, HERE) is None
    assert caplog.messages == [f"Refused a caller from {HERE}: token ci has expired"]


@pytest.mark.parametrize("token", ["wb_" + "a" * 43, "wb_", "nothing", "ä" * 46, "wb_" + "a" * 100_000])
def test_one_that_is_unknown_is_one_line_without_it(
    opened: AtWork, caplog: pytest.LogCaptureFixture, token: str
) -> None:
    made(opened)
    with caplog.at_level(logging.DEBUG):
        assert access.caller_of(token, HERE) is None
    assert caplog.messages == [f"Refused a caller from {HERE}: the token is unknown"]


def test_without_a_ledger_nobody_is_let_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WAYBILL_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/ledger")
    token = "wb_" + "a" * 43
    with pytest.raises(Unreachable) as away:
        access.caller_of(token, HERE)
    assert token not in f"{away.value}{away.value.__cause__}{caplog.text}"


def test_a_role_of_another_version_is_none(opened: AtWork) -> None:
    until = datetime.now(UTC) + timedelta(days=1)
    token = "wb_" + "b" * 43
    digest = access._digest(token)
    opened.ledger.add_token("ci", digest, role="owner", connectors=["*"], expires_at=until, who="ann")
    assert access.caller_of(token, HERE) is None


def test_the_ledger_does_not_have_it(opened: AtWork, folder: Path) -> None:
    token = made(opened)
    access.caller_of(token, HERE)
    access.revoke(opened, "ci")
    files = [path for path in (folder / ".waybill").rglob("*") if path.is_file()]
    assert any(path.name == "ledger.db" for path in files)
    assert not any(token.encode() in path.read_bytes() for path in files)
