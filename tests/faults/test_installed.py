"""The wheel in a clean environment, with one DAG file: what the page "Install in your Airflow" says is enough."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.fault(costly=True), pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
DOCUMENT = """\
version: 1
name: copy
source: {file: {path: in.log}}
sink: {file: {path: out.log}}
engine: inline
"""


def test_the_wheel_the_dag_file_and_three_settings_are_enough(tmp_path: Path) -> None:
    environment = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
    environment |= {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "WAYBILL_HOME": str(tmp_path / ".waybill"),
        "WAYBILL_DATABASE_URL": f"sqlite:///{tmp_path}/ledger.db",
    }
    programs = tmp_path / "clean" / "bin"

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".git", ".venv", ".waybill", "*.egg-info", "build"))
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    run(programs / "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, checkout)
    shutil.rmtree(checkout)
    (wheel,) = tmp_path.glob("waybill-*.whl")
    constraints = tmp_path / "constraints.txt"
    shutil.copy(ROOT / "requirements.lock", constraints)
    run(programs / "pip", "install", "-q", "-c", constraints, f"{wheel}[airflow]")
    run(programs / "pip", "check")

    (tmp_path / ".waybill").mkdir()
    (tmp_path / "airflow" / "dags").mkdir(parents=True)
    shutil.copy(ROOT / "dags" / "replication.py", tmp_path / "airflow" / "dags")
    (tmp_path / "in.log").write_text("one\ntwo\nthree\n")
    (tmp_path / "copy.yaml").write_text(DOCUMENT)
    run(programs / "waybill", "db", "upgrade")
    run(programs / "waybill", "apply", "copy.yaml")
    run(programs / "airflow", "db", "migrate")
    assert "waybill" in run(programs / "airflow", "plugins", "--output", "plain")
    run(programs / "airflow", "dags", "test", "replicate.copy")
    assert (tmp_path / "out.log").read_text() == "one\ntwo\nthree\n"
    assert '"delivered": 3' in run(programs / "waybill", "receipts", "copy", "--json")
