"""What only reads the ledger loads no driver: it is quick, and an edge may ask often."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = ("opened", "streams", "json_values")
DOCUMENTS = ("connectors", "documents")
POSTGRESQL = "sqlalchemy.dialects.postgresql"
FILES = "connect_core.systems.file.source"
READING = ("reports", "backfills", "dead_letters", "rules", "completions", "ledgers", "schedules")


def brought_by(names: tuple[str, ...], heavy: list[str]) -> str:
    imports = ", ".join(f"connect_core.service.{name}" for name in names)
    script = f"import sys, {imports}; print([name for name in {heavy} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("names", "heavy"),
    [
        (LIGHT, ["pyarrow", "pydantic", "sqlalchemy", "connect_core.config"]),
        (
            DOCUMENTS,
            ["pyarrow", "numpy", POSTGRESQL, "httpx", "http.client", "pyspark", FILES],
        ),
        (
            READING,
            [
                "pyarrow",
                POSTGRESQL,
                "pyspark",
                "httpx",
                "connect_core.replication.driver.run",
                "connect_core.systems.file.source",
            ],
        ),
        (("runs", "run_report"), ["pyarrow", "numpy", POSTGRESQL, "pydantic.networks", "pyspark", FILES]),
        (("local_stack",), ["pyspark", "sqlalchemy"]),
    ],
    ids=[
        "what every command loads",
        "what lists and checks documents",
        "what reads the ledger",
        "what runs",
        "the local stack",
    ],
)
def test_what_a_module_loads(names: tuple[str, ...], heavy: list[str]) -> None:
    assert brought_by(names, heavy) == "[]"


def test_the_client_of_spark_is_loaded_with_the_first_job() -> None:
    script = (
        "import sys; from connect_core.engine import engine; spark = engine('spark', remote='sc://localhost:1/');"
        " spark.described; before = 'pyspark' in sys.modules;"
        " spark.started(1); print(before, 'pyspark.sql.connect.session' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]


def test_what_asks_a_server_loads_no_ledger() -> None:
    heavy = ["pyarrow", "numpy", "sqlalchemy", "pydantic", "duckdb", "connect_core.ledger", "connect_core.systems"]
    imports = "connect_core.cli.app, connect_core.remote.installation, connect_core.remote.server"
    script = f"import sys, {imports}; print([name for name in {heavy} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
