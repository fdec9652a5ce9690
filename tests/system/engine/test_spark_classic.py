"""Lanes in the classic Spark of a driver that spark-submit started."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest

from connect_core.engine import submit
from connect_core.stack import jars, java
from tests.faults.rows import FaultRow
from tests.system.engine import classic_driver
from tests.unit.engine.lanes import DRILL

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(600)]

MASTER = "local[2]"
ROOT = Path(__file__).parents[3]


def seen_by_a_driver(folder: Path) -> dict[str, Any]:
    """What `classic_driver` tells."""
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    settings = [part for name, value in submit.confs(MASTER).items() for part in ("--conf", f"{name}={value}")]
    environment = {
        **os.environ,
        **submit.environment(java.find(jars.cache_folder()), folder, MASTER),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(DRILL)]),
    }
    done = subprocess.run(
        [program, "--master", MASTER, *settings, classic_driver.__file__, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_lanes_are_tasks_of_one_attempt_whose_content_nobody_sees_and_which_can_be_given_up(
    tmp_path: Path, row: FaultRow
) -> None:
    """One driver for all of it: a JVM is slow to start."""
    row.describe("Spark application: no answer within the limit, its job is cancelled", where="a search")
    row.strikes()
    seen = seen_by_a_driver(tmp_path)
    row.moves_again()
    assert (seen["tasks"], seen["attempts"]) == ([0, 1], "1")
    assert seen["partitions"] == classic_driver.ROWS
    assert seen["encrypted"]  # else the table of lanes lies in a file for a moment
    assert "LocalTableScan" in seen["plan"]
    assert classic_driver.SECRET not in seen["plan"]
    assert "Exchange" not in seen["plan"]
    assert "gave no answer within" in seen["given_up"]
    assert seen["jobs"] == []
    with pytest.raises(ProcessLookupError):
        os.kill(seen["worker"], 0)
