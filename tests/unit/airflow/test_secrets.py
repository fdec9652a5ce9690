"""The connection to the engine: what the record of the stack says at the moment it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect_core import stack
from connect_core.airflow.secrets import EngineOfTheStack
from connect_core.stack.processes import Process
from connect_core.stack.record import StackPart, save

PROCESS = Process(4711, 123456, "boot")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAYBILL_HOME", str(tmp_path))
    (tmp_path / "engine.token").write_text("very-secret\n")
    return tmp_path


def engine_on(home: Path, port: int) -> None:
    part = StackPart(stack.ENGINE, PROCESS, {"grpc": port}, "4", {"token_file": "engine.token"}, 0.0)
    save(stack.Stack(home, stack.Options()).having(part))


def test_the_address_is_that_of_now(home: Path) -> None:
    backend = EngineOfTheStack()
    for port in (15002, 24711):
        engine_on(home, port)
        found = json.loads(backend.get_conn_value("waybill_engine") or "")
        assert found == {
            "conn_type": "spark_connect",
            "host": "sc://localhost",
            "port": port,
            "password": "very-secret",
        }


def test_other_connections_are_airflow_s(home: Path) -> None:
    engine_on(home, 15002)
    assert EngineOfTheStack().get_conn_value("waybill_submit") is None


def test_without_an_engine_there_is_none(home: Path) -> None:
    assert EngineOfTheStack().get_conn_value("waybill_engine") is None


def test_airflow_makes_its_connection_of_it(home: Path) -> None:
    engine_on(home, 15002)
    connection = EngineOfTheStack().get_connection("waybill_engine")
    assert (connection.conn_type, connection.host, connection.port) == ("spark_connect", "sc://localhost", 15002)
