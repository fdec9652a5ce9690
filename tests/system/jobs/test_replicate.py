"""The Spark application as a program that cannot begin: what it says, and its exit code. No Spark starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from setuptools import find_packages

from connect_core.engine import submit
from connect_core.engine.driver import Driver, this_process
from connect_core.errors import ConfigError, Fenced, VersionMismatch
from connect_core.ledger import Ledger

ROOT = Path(__file__).parents[3]
PROGRAMS = [submit.application(), ROOT / "jobs" / "replicate.py"]


@pytest.fixture
def home(tmp_path: Path, empty_ledger: Path) -> Path:
    """With a ledger that has one connector."""
    home = tmp_path / ".waybill"
    home.mkdir()
    shutil.copy(empty_ledger, home / "ledger.db")
    ends = {end: {"file": {"path": str(tmp_path / end)}} for end in ("source", "sink")}
    with Ledger.open(f"sqlite:///{home}/ledger.db") as ledger:
        ledger.apply("copy", {"version": 1, "name": "copy", "engine": "mine", **ends}, who="ann")
    engines = tmp_path / "conf" / "engines"
    engines.mkdir(parents=True)
    (engines / "mine.yaml").write_text("{kind: submit, spark: 3.5.7}")
    return home


def run(home: Path, *words: str, program: Path = PROGRAMS[0]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WAYBILL_HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment.pop("WAYBILL_DATABASE_URL", None)
    return subprocess.run(
        [sys.executable, program, *words], env=environment, capture_output=True, text=True, timeout=60, cwd=home.parent
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=["in the package", "in jobs"])
def test_an_expected_error_is_one_line_and_an_exit_code(home: Path, program: Path) -> None:
    result = home / "result"
    done = run(home, "nonesuch", "--result", str(result), program=program)
    assert done.returncode == ConfigError.exit_code
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    with pytest.raises(ConfigError, match="nonesuch"):
        submit.read_result(result, done.returncode)


def test_the_end_is_left_to_the_reader_of_the_result(home: Path) -> None:
    done = run(home, "nonesuch", "--result", str(home / "result"), "--quiet")
    assert (done.stdout, done.stderr) == ("", "")


def test_another_spark_than_the_document_asks_for_moves_nothing(home: Path) -> None:
    done = run(home, "copy")
    assert done.returncode == VersionMismatch.exit_code
    assert "The engine requires Spark 3.5.7" in done.stderr


def test_another_interpreter_than_the_engine_names_moves_nothing(home: Path) -> None:
    (home.parent / "conf" / "engines" / "other.yaml").write_text("{kind: submit, python: /opt/other/bin/python}")
    done = run(home, "copy", "--engine", "other")
    assert done.returncode == VersionMismatch.exit_code
    assert "The engine requires the interpreter /opt/other/bin/python" in done.stderr


def test_nobody_runs_for_a_caller_that_has_ended(home: Path) -> None:
    here = this_process()
    gone = Driver(here.boot_id, here.namespace, here.pid, here.started - 1)
    assert run(home, "copy", "--caller", gone.written()).returncode == Fenced.exit_code


def test_a_wheel_has_the_application() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    chosen = project["tool"]["setuptools"]["packages"]["find"]["include"]
    package = ".".join(submit.application().relative_to(ROOT).parent.parts)
    assert package in find_packages(str(ROOT), include=chosen)
