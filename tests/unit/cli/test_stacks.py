"""`waybill dev up` around the start of the servers: which parts it asks for, and what it tells of Airflow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from connect_core import stack
from connect_core.stack import airflow, airflow_settings, ports, processes
from connect_core.stack.record import StackPart, save, want
from tests.unit.cli.conftest import Waybill

Asked = list[tuple[str, ...]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Asked:
    """Which parts were asked for. Nothing is started: the record says that they run."""
    found: Asked = []

    def up(home: Path, *, parts: Iterable[str], report: Callable[[str], None]) -> stack.Stack:
        found.append(tuple(parts))
        this = processes.of(os.getpid())
        assert this is not None
        running = stack.Stack(home, stack.Options())
        if stack.API_SERVER in found[-1]:
            airflow_settings.password(home)
            facts = {"user": "admin", "password_file": "airflow/passwords.json"}
            running = running.having(StackPart(stack.API_SERVER, this, {"http": 8099}, "3", facts, 0.0))
            save(running)
        return running

    monkeypatch.setattr(stack, "up", up)
    return found


def test_every_part_is_started(waybill: Waybill, asked: Asked) -> None:
    waybill("dev", "up")
    assert asked == [stack.startable()]


def test_without_airflow_the_others_are_started_and_it_is_said(
    waybill: Waybill, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airflow, "is_installed", lambda: False)
    typed = waybill("dev", "up")
    assert (typed.code, asked) == (0, [stack.DATA_PARTS])
    assert "Airflow is not installed" in typed.err


def test_only_what_was_asked_for_is_started(waybill: Waybill, asked: Asked) -> None:
    typed = waybill("dev", "up", "--only", "postgresql", "--only", "engine")
    assert asked == [("postgresql", "engine")]
    assert "log in" not in typed.err


def test_the_password_is_shown_when_it_is_made_and_never_again(waybill: Waybill, asked: Asked, folder: Path) -> None:
    first = waybill("dev", "up").err
    password = airflow_settings.password(folder / ".waybill")
    assert f"http://127.0.0.1:8099, log in as admin with the password {password}" in first
    second = waybill("dev", "up")
    assert "http://127.0.0.1:8099, log in as admin\n" in second.err
    assert str(folder / ".waybill" / "airflow" / "passwords.json") in second.err
    assert password not in second.err + second.out


def test_the_doctor_does_not_miss_an_airflow_that_is_not_installed(
    waybill: Waybill, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    waybill("dev", "up")
    monkeypatch.setattr(airflow, "is_installed", lambda: False)
    subjects = {finding["subject"] for finding in waybill("doctor", "--json").json["findings"]}
    assert stack.API_SERVER in subjects  # runs, whatever is installed
    assert stack.SCHEDULER not in subjects
    assert stack.BROKER in subjects


def test_what_ran_before_is_asked_for_again(waybill: Waybill, asked: Asked, folder: Path) -> None:
    (folder / ".waybill").mkdir()
    want(folder / ".waybill", [stack.MQTT_BROKER])
    waybill("dev", "up")
    assert asked == [stack.ALL]


def test_engine_status_prints_the_address_and_where_the_token_is(waybill: Waybill, folder: Path) -> None:
    home = folder / ".waybill"
    home.mkdir()
    (home / "engine.token").write_text("very-secret\n")
    this = processes.of(os.getpid())
    assert this is not None
    port = ports.free()
    part = StackPart(stack.ENGINE, this, {"grpc": port}, "4", {"token_file": "engine.token"}, 0.0)
    save(stack.Stack(home, stack.Options()).having(part))
    address = f"sc://localhost:{port}"
    typed = waybill("engine", "status")
    assert typed.code == 3, "this process does not answer as an engine does"
    assert "not answering" in typed.out
    assert address in typed.out
    assert str(home / "engine.token") in typed.out
    assert "very-secret" not in typed.out
    assert waybill("engine", "status", "--json").json["address"] == address


def test_the_doctor_says_what_to_do_with_a_part_that_does_not_answer(waybill: Waybill, folder: Path) -> None:
    (folder / ".waybill").mkdir()
    this = processes.of(os.getpid())
    assert this is not None
    part = StackPart(stack.NAME_SERVER, this, {"remoting": ports.free()}, "5", {}, 0.0)
    save(stack.Stack(folder / ".waybill", stack.Options()).having(part))
    (finding,) = [one for one in waybill("doctor", "--json").json["findings"] if one["subject"] == stack.NAME_SERVER]
    assert (finding["state"], finding["what"]) == ("fault", "not answering")
    assert finding["next_step"].startswith("`waybill dev down --only name-server`, then `waybill dev up`")
