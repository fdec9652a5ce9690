"""Attempts that end before anything is moved leave a run, and `status` tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import DOCUMENT, Waybill


@pytest.fixture(autouse=True)
def _long_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a lane of a busy machine is not killed at its deadline."""
    monkeypatch.setenv("WAYBILL_LEASE_TTL_S", "90")


def _apply(waybill: Waybill, folder: Path, source: str) -> None:
    text = DOCUMENT.format(name="far").replace("{file: {path: logs/*.log}}", source)
    (folder / "far.yaml").write_text(text)
    assert waybill("apply", "far.yaml").code == 0


def _told(waybill: Waybill, *words: str) -> dict[str, Any]:
    (told,) = [one for one in waybill(*words, "--json").json["connectors"] if one["name"] == "far"]
    return dict(told)


@pytest.mark.parametrize(
    ("source", "engine", "code", "state", "why"),
    [
        ("{rocketmq: {connection: main, topics: [t]}}", "inline", 3, "failed", "Unreachable: The local stack is not"),
        ("{rocketmq: {name_servers: ['127.0.0.1:9'], topics: [t]}}", "inline", 3, "failed", "Unreachable"),
        ("{file: {path: logs/*.log}}", "spark", 3, "failed", "Unreachable: The engine is not running"),
        (
            "{rocketmq: {name_servers: ['127.0.0.1:9'], topics: [t], user: u, password: '${env:NOPE}'}}",
            "inline",
            2,
            "blocked",
            "ConfigError: The environment variable NOPE is not set",
        ),
    ],
    ids=["no stack", "broker away", "engine away", "secret missing"],
)
def test_what_stops_an_attempt_before_its_run_is_told(
    source: str, engine: str, code: int, state: str, why: str, waybill: Waybill, folder: Path
) -> None:
    _apply(waybill, folder, source)
    for attempts in (1, 2):
        typed = waybill("run", "far", "--engine", engine)
        assert typed.code == code, typed.err
        runs = waybill("runs", "far", "--json").json["runs"]
        assert [run["state"] for run in runs] == ["failed"] * attempts, "one for each attempt"
        told = _told(waybill, "status")
        assert (told["state"], told["exit_code"], told["attempts"]) == (state, code, attempts)
        assert told["why"].startswith(why)
        assert (told["run"], told["since"]) == (runs[0]["id"], runs[-1]["started_at"])
        listed = _told(waybill, "connectors", "list")
        assert (listed["state"], listed["why"]) == (told["state"], told["why"])
    assert why in waybill("status").out


def test_a_reference_to_a_wrong_value_names_connector_and_end_and_no_value(
    waybill: Waybill, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TLS", "wrong value")
    _apply(waybill, folder, "{rocketmq: {name_servers: ['127.0.0.1:9'], topics: [t], tls: '${env:TLS}'}}")
    typed = waybill("run", "far", "--engine", "inline")
    assert typed.code == 2
    assert "Wrong options for the source rocketmq [connector far]. Correct the document" in typed.err
    assert "tls: Input should be a valid boolean" in typed.err
    assert "wrong value" not in typed.err


def test_a_connector_that_is_paused_has_not_failed(waybill: Waybill, applied: Path) -> None:
    waybill("connectors", "pause", "copy")
    assert waybill("run", "copy", "--engine", "inline").code == 2
    waybill("connectors", "resume", "copy")
    assert waybill("runs", "copy", "--json").json["runs"] == []
    (told,) = waybill("status", "--json").json["connectors"]
    assert (told["state"], told["why"]) == ("new", "")


def test_a_run_that_fails_leaves_one_row(waybill: Waybill, applied: Path) -> None:
    (applied / "out" / "copy.txt").mkdir()
    assert waybill("run", "copy", "--engine", "inline").code == 2
    (run,) = waybill("runs", "copy", "--json").json["runs"]
    (told,) = waybill("status", "--json").json["connectors"]
    assert (told["state"], told["run"], told["attempts"]) == ("blocked", run["id"], 1)
    (applied / "out" / "copy.txt").rmdir()
    assert waybill("run", "copy", "--engine", "inline").code == 0
    (told,) = waybill("status", "--json").json["connectors"]
    assert (told["state"], told["attempts"], told["why"]) == ("idle", 0, "")


def test_a_partition_that_was_put_aside_is_told_as_long_as_it_is(waybill: Waybill, applied: Path) -> None:
    (applied / "logs" / "b.log").write_bytes(b"\x1f\x8b\x08\x00" + bytes(range(256)) * 8)
    code = waybill("run", "copy", "--engine", "inline").code
    assert code != 0
    assert (applied / "out" / "copy.txt").read_text() == "one\ntwo\nthree\n", "the other one went on"
    (told,) = waybill("status", "--json").json["connectors"]
    (aside,) = told["quarantined"]
    assert (told["exit_code"], aside["exit_code"], aside["partition"]) == (code, code, f"{applied}/logs/b.log")
    assert aside["since"] is not None
    assert "copy: put aside since " in waybill("status").out
    (applied / "logs" / "b.log").write_bytes(b"four\n")
    assert waybill("run", "copy", "--engine", "inline").code == 0
    (told,) = waybill("status", "--json").json["connectors"]
    assert (told["state"], told["quarantined"]) == ("idle", [])
