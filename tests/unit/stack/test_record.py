"""`stack.json`: what is written is read, what clients need is derived from it, no secret is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import make_url

from connect_core.errors import Unreachable
from connect_core.stack import API_SERVER, BROKER, ENGINE, NAME_SERVER, POSTGRESQL, Options, Stack, load
from connect_core.stack.processes import Process
from connect_core.stack.record import StackPart, save

PROCESS = Process(4711, 123456, "boot")


def part(name: str, ports: dict[str, int], facts: dict[str, str]) -> StackPart:
    return StackPart(name, PROCESS, ports, "1.0", facts, 1795267018.5, 2)


def stack_in(home: Path) -> Stack:
    parts = [
        part(NAME_SERVER, {"remoting": 9876}, {}),
        part(BROKER, {"remoting": 10911, "replication": 40000}, {"broker_name": "broker-a"}),
        part(POSTGRESQL, {}, {"socket_folder": "/tmp/with space/s", "data_folder": "/d"}),
        part(ENGINE, {"grpc": 15002}, {"token_file": "engine.token"}),
    ]
    stack = Stack(home, Options(broker={"a": "b"}), supervisor=PROCESS)
    for one in parts:
        stack = stack.having(one)
    return stack


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    stack = stack_in(tmp_path)
    save(stack)
    assert load(tmp_path) == stack


def test_nothing_to_remember_leaves_no_file(tmp_path: Path) -> None:
    save(stack_in(tmp_path))
    save(Stack(tmp_path, Options()))
    assert load(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_is_stopped_leaves_its_ports_to_its_next_start(tmp_path: Path) -> None:
    """Airflow's processes were told where the engine is, and it may be stopped and started beside them."""
    stack = Stack(tmp_path, Options()).having(part(NAME_SERVER, {"remoting": 1234}, {})).having(part(ENGINE, {}, {}))
    save(stack.without(NAME_SERVER))
    again = load(tmp_path)
    assert again is not None
    assert again.last_ports[NAME_SERVER] == {"remoting": 1234}


def test_clients_get_addresses(tmp_path: Path) -> None:
    stack = stack_in(tmp_path)
    assert stack.name_servers == "127.0.0.1:9876"
    assert stack.broker_name == "broker-a"
    url = make_url(stack.database_url)
    assert (url.drivername, url.database, url.query["host"]) == ("postgresql+psycopg2", "waybill", "/tmp/with space/s")


def test_the_token_is_in_the_address_and_not_in_the_record(tmp_path: Path) -> None:
    (tmp_path / "engine.token").write_text("very-secret\n")
    stack = stack_in(tmp_path)
    save(stack)
    assert stack.spark_remote == "sc://localhost:15002/;token=very-secret"
    assert "very-secret" not in (tmp_path / "stack.json").read_text()


def test_a_part_that_is_not_there_is_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="waybill dev up"):
        _ = Stack(tmp_path, Options()).name_servers


@pytest.mark.parametrize("text", ["", "{}", '{"format": 99}', "[1]"])
def test_a_record_that_cannot_be_read_names_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    with pytest.raises(Unreachable, match=r"stack\.json"):
        load(tmp_path)


def test_airflow_has_an_address_and_a_login_and_the_password_is_not_in_the_record(tmp_path: Path) -> None:
    (tmp_path / "passwords.json").write_text('{"admin": "very-secret"}')
    facts = {"user": "admin", "password_file": "passwords.json"}
    stack = Stack(tmp_path, Options()).having(part(API_SERVER, {"http": 8099}, facts))
    save(stack)
    assert stack.airflow_url == "http://127.0.0.1:8099"
    assert (stack.airflow_user, stack.airflow_password) == ("admin", "very-secret")
    assert "very-secret" not in (tmp_path / "stack.json").read_text()
