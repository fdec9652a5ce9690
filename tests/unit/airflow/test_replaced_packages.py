"""A task of Airflow is forked from a process that may have loaded a package before: it takes what is installed now."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from connect_core import packages
from connect_core.ledger import Ledger
from connect_core.pipeline.transforms.python_functions import function
from connect_core.replication.driver.context import RunListener
from connect_core.service.scheduled import TaskAttempt, replicate
from connect_core.systems import SYSTEMS
from tests.installing import install

pytestmark = pytest.mark.usefixtures("warm_lanes")

ENTRIES = {"waybill.transforms": "does = waybill_does:DOES"}
CODE = """
import pyarrow as pa
from connect_core.sdk.row_functions import Changed, RowFunction

def rows(given):
    return Changed(given.set_column(0, given.schema.field(0), pa.array(["{said}"] * len(given), pa.string())))

DOES = RowFunction(lambda schema: schema, rows, deterministic=True)
"""


def test_a_task_takes_the_package_that_is_installed_now(
    tmp_path: Path, empty_ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, log, out, installed = (tmp_path / name for name in (".waybill", "in.log", "out.txt", "installed"))
    home.mkdir()
    log.write_text('{"said": "x"}\n')
    shutil.copy(empty_ledger, home / "ledger.db")
    for name, value in (("HOME", str(home)), ("ENGINE", "inline")):
        monkeypatch.setenv(f"WAYBILL_{name}", value)
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setattr(packages, "_loaded", {})
    install(installed, "waybill-does", ENTRIES, CODE.format(said="the first"))
    assert function("does")
    install(installed, "waybill-does", ENTRIES, CODE.format(said="another"), "2.0")
    document = {
        "version": 1,
        "name": "logs",
        "source": {"file": {"path": str(log)}},
        "sink": {"file": {"path": str(out)}},
        "parse": {"format": "json", "fields": {"said": "text"}},
        "transforms": [{"python": "does"}],
    }
    with Ledger.open(f"sqlite:///{home}/ledger.db") as ledger:
        ledger.apply("logs", document, who="ann")
    told: list[str] = []
    replicate(
        TaskAttempt("logs", 0, "replicate.logs manual__1"),
        lambda: "",
        lambda: "",
        RunListener(told.append, lambda _: None),
    )
    assert out.read_text() == '{"said":"another"}\n', told
    assert packages.running(packages.FUNCTIONS, "does") == "waybill-does 2.0"
    monkeypatch.undo()
    sys.modules.pop("waybill_does", None)
    SYSTEMS.reload()
