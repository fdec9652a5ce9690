"""tokens: made once, for a pipe; listed without anything that could be used; revoked."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connect_core.cli import completing
from connect_core.service import access
from tests.unit.cli.conftest import Waybill


def test_a_token_alone_is_on_stdout(waybill: Waybill, folder: Path) -> None:
    typed = waybill("tokens", "create", "ci", "--role", "operator", "--connectors", "a-*", "--connectors", "b")
    assert (typed.code, bool(re.fullmatch(r"wb_[\w-]{43}\n", typed.out, re.ASCII))) == (0, True), typed.err
    assert "waybill tokens revoke ci" in typed.err
    caller = access.caller_of(typed.out.strip(), "127.0.0.1")
    assert caller is not None
    assert (caller.name, caller.role, caller.connectors) == ("ci", "operator", ("a-*", "b"))


def test_they_are_listed_and_revoked(waybill: Waybill) -> None:
    token = waybill("tokens", "create", "ci", "--role", "admin", "--expires", "90d").out.strip()
    made = waybill("tokens", "create", "prometheus", "--role", "viewer", "--json").json
    [first, second] = waybill("tokens", "list", "--json").json["tokens"]
    assert list(first) == ["name", "role", "connectors", "made_at", "made_by", "expires_at", "revoked_at"]
    assert {**second, "token": made["token"]} == made
    assert (second["connectors"], second["made_by"], second["expires_at"]) == (["*"], "ann", None)
    shown = waybill("tokens", "list", "--wide").out
    assert [line.split()[:3] for line in shown.splitlines()[1:]] == [
        ["ci", "admin", "*"],
        ["prometheus", "viewer", "*"],
    ]
    revoked = waybill("tokens", "revoke", "ci")
    assert (revoked.code, revoked.out.startswith("ci is revoked since ")) == (0, True)
    assert (
        waybill("tokens", "list", "--json").json["tokens"][0]["revoked_at"]
        == waybill("tokens", "revoke", "ci", "--json").json["revoked_at"]
    )
    assert access.caller_of(token, "127.0.0.1") is None
    said = shown + revoked.out + waybill("tokens", "list", "--json").out
    assert token not in said
    assert access._digest(token) not in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "ci", "--role", "root"), 2, "role: 'root' is none of viewer, operator, admin"),
        (("create", "ci"), 2, "--role"),
        (("create", "c i", "--role", "viewer"), 2, "cannot name a token"),
        (("create", "ci", "--role", "viewer", "--connectors", "a b"), 2, "is no pattern of names"),
        (("create", "ci", "--role", "viewer", "--expires", "soon"), 2, "is not a duration"),
        (("create", "ci", "--role", "viewer", "--expires", "0"), 2, "expires: is above nothing"),
        (("revoke", "ci"), 2, "There is no token ci"),
    ],
)
def test_what_is_refused(waybill: Waybill, applied: Path, words: tuple[str, ...], code: int, said: str) -> None:
    typed = waybill("tokens", *words)
    assert (typed.code, said in typed.err, typed.out) == (code, True, ""), typed.err
    assert waybill("tokens", "list", "--json").json["tokens"] == []


def test_reading_makes_no_ledger(waybill: Waybill, folder: Path) -> None:
    assert waybill("tokens", "list").code == 3
    assert waybill("tokens", "revoke", "ci").code == 3
    assert not (folder / ".waybill").exists()


def test_names_are_offered_to_revoke(waybill: Waybill) -> None:
    typing_here: Any = SimpleNamespace(find_root=lambda: SimpleNamespace(params={"server": ""}))
    assert completing.tokens(typing_here, "") == []
    for name in ("ci", "cd", "other"):
        waybill("tokens", "create", name, "--role", "viewer")
    waybill("tokens", "revoke", "cd")
    assert completing.tokens(typing_here, "c") == ["ci"]
