"""What Airflow's processes are told: settings, places, connections, and nothing of the caller's own Airflow."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import connect_core
from connect_core.errors import Unreachable
from connect_core.stack import airflow, airflow_settings
from connect_core.stack.parts import API_SERVER, ENGINE, SCHEDULER, Options, Site
from connect_core.stack.rocketmq import SETTINGS, settings_of

ROOT = Path(connect_core.__file__).parents[1]
SECRETS = ("AIRFLOW__API__SECRET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__CORE__FERNET_KEY")


def site(home: Path, **airflow_options: str) -> Site:
    neighbours = {API_SERVER: {"http": 8099}, ENGINE: {"grpc": 15099}, SCHEDULER: {}}
    return Site(home, {}, neighbours, Options(airflow=airflow_options))


def test_every_process_gets_the_shipped_settings(tmp_path: Path) -> None:
    told = airflow_settings.environment(site(tmp_path))
    shipped = settings_of("airflow.env") | settings_of("airflow-local.env")
    assert shipped.items() <= told.items()
    assert len(shipped) > 25


def test_the_settings_of_an_own_airflow_are_the_shipped_ones() -> None:
    assert (ROOT / "conf" / "airflow.env").resolve() == SETTINGS / "airflow.env"


def test_the_dag_file_is_the_one_for_an_own_airflow() -> None:
    assert (ROOT / "dags" / "replication.py").read_text() == airflow_settings.DAG_FILE


def test_airflow_looks_into_the_dag_file() -> None:
    """It skips files without these two words."""
    assert "airflow" in airflow_settings.DAG_FILE
    assert "dag" in airflow_settings.DAG_FILE
    ast.parse(airflow_settings.DAG_FILE)


def test_every_setting_is_explained() -> None:
    for name in ("airflow.env", "airflow-local.env"):
        lines = (SETTINGS / name).read_text().splitlines()
        blocks = "\n".join(lines).split("\n\n")
        assert all(block.startswith("#") for block in blocks), name


def test_the_caller_s_own_airflow_stays_out_of_it(tmp_path: Path) -> None:
    inherited = {
        "AIRFLOW_HOME": "/elsewhere",
        "AIRFLOW_CONFIG": "/elsewhere/airflow.cfg",
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__SECRETS__BACKEND": "a.b.C",
        "AIRFLOW_CONN_MINE": "{}",
        "KEPT": "1",
    }
    told = airflow_settings.environment(site(tmp_path), inherited)
    assert told["AIRFLOW_HOME"] == str(tmp_path / "airflow")
    assert told["AIRFLOW__CORE__EXECUTOR"].endswith(".WarmLocalExecutor")
    assert "AIRFLOW_CONFIG" not in told
    assert told["AIRFLOW__SECRETS__BACKEND"].startswith("connect_core.")
    assert told["AIRFLOW_CONN_MINE"] == "{}"
    assert told["KEPT"] == "1"


def test_options_win(tmp_path: Path) -> None:
    told = airflow_settings.environment(site(tmp_path, AIRFLOW__CORE__PARALLELISM="3"))
    assert told["AIRFLOW__CORE__PARALLELISM"] == "3"


def test_tasks_find_the_api_server_on_its_port(tmp_path: Path) -> None:
    told = airflow_settings.environment(site(tmp_path))
    assert told["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:8099"
    assert told["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8099/execution/"


def test_secrets_are_the_same_for_every_process_and_every_start(tmp_path: Path) -> None:
    first = airflow_settings.environment(site(tmp_path))
    second = airflow_settings.environment(site(tmp_path))
    assert [first[name] for name in SECRETS] == [second[name] for name in SECRETS]
    assert len({first[name] for name in SECRETS}) == len(SECRETS)


def test_secrets_and_logins_are_for_the_owner_only(tmp_path: Path) -> None:
    airflow_settings.write_files(tmp_path)
    airflow_settings.environment(site(tmp_path))
    for name in ("passwords.json", "secrets.json"):
        assert (tmp_path / "airflow" / name).stat().st_mode & 0o777 == 0o600


def test_no_secret_is_on_a_command_line(tmp_path: Path) -> None:
    told = airflow_settings.environment(site(tmp_path))
    hidden = [*(told[name] for name in SECRETS), airflow_settings.password(tmp_path)]
    for kind in airflow.KINDS:
        command = " ".join(kind.launch(site(tmp_path)).command)
        assert not [secret for secret in hidden if secret in command]


def test_the_password_stays(tmp_path: Path) -> None:
    first = airflow_settings.password(tmp_path)
    airflow_settings.write_files(tmp_path)
    assert airflow_settings.password(tmp_path) == first
    assert json.loads((tmp_path / "airflow" / "passwords.json").read_text()) == {"admin": first}


def test_files_that_are_right_are_left_alone(tmp_path: Path) -> None:
    """A DAG file that is touched is parsed again."""
    airflow_settings.write_files(tmp_path)
    path = tmp_path / "airflow" / "dags" / "replication.py"
    before = path.stat().st_mtime_ns
    airflow_settings.write_files(tmp_path)
    assert path.stat().st_mtime_ns == before


def test_the_engine_s_address_is_in_nobody_s_environment(tmp_path: Path) -> None:
    """It would be the address that the engine had when Airflow was started."""
    told = airflow_settings.environment(site(tmp_path))
    assert not [name for name, value in told.items() if "15002" in value or "WAYBILL_ENGINE" in name]


def test_without_an_api_server_there_is_nothing_to_talk_to(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="need the api-server"):
        airflow_settings.environment(Site(tmp_path, {}, {}, Options()))
