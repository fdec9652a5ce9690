"""What spark-submit is given for a run of a connector, and what it hands back.

Turns a run into arguments, settings, an environment and a command; the command line `waybill` and Airflow's operator
start the process. Nothing here starts anything, imports pyspark or holds a secret: addresses and passwords reach the
driver through its environment, and lanes through a column.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import connect_core
from connect_core.engine.driver import Driver
from connect_core.errors import EngineFailed, Failure
from connect_core.sdk.values import LIVE, Json

_PACKAGE = Path(connect_core.__file__).resolve().parent

_JVM = "-XX:+UseSerialGC -XX:-UsePerfData -XX:TieredStopAtLevel=1"
"""Small and soon warm: records never pass through this JVM."""

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS")
"""One lane is one thread: more of them in each of many workers would only take memory."""

_HERE = re.compile(r"local(\[.*\])?|spark://(127\.0\.0\.1|localhost|\[::1\]):\d+")
"""Masters whose executors are on this host: nothing of it listens elsewhere."""


def application() -> Path:
    """The file that spark-submit runs; part of the package, so that a wheel has it."""
    return _PACKAGE / "jobs" / "replicate.py"


def arguments(
    connector: str,
    *,
    task: int | None = None,
    stream: str = LIVE,
    attempt_of: str | None = None,
    accept_gaps: bool = False,
    window_s: float = 0.0,
    engine: str | None = None,
    result: Path | None = None,
    quiet: bool = False,
    caller: Driver | None = None,
) -> list[str]:
    """The arguments of the application. `task` is one of the connector's, all of them when left out; `engine` is the
    name of one that is to be instead of the document's. Into the file `result` it writes what `read_result` reads;
    `quiet` leaves it to that reader to tell the end. When the process `caller` ends, so does the run."""
    given = {"--task": task, "--stream": stream, "--attempt-of": attempt_of, "--engine": engine, "--result": result}
    told = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    told += ["--accept-gaps"] if accept_gaps else []
    told += ["--window", f"{window_s:g}"] if window_s else []
    told += ["--quiet"] if quiet else []
    return [connector, *told, *(["--caller", caller.written()] if caller else [])]


def lane_settings() -> dict[str, str]:
    """Spark's settings without which lanes do not run; the driver sets them as well, whoever started it."""
    return {
        # A lane that is run again writes again; the driver refuses a Spark where this is not so.
        "spark.task.maxFailures": "1",
        "spark.speculation": "false",
        "spark.dynamicAllocation.enabled": "false",
        # Without this the driver hands the table of lanes to the JVM in a file.
        "spark.io.encryption.enabled": "true",
        # One row is one task (a local table has as many partitions as rows, up to this): no shuffle deals them out.
        "spark.sql.leafNodeDefaultParallelism": "4096",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.executorEnv.PYTHONPATH": str(_PACKAGE.parent),
        **{f"spark.executorEnv.{name}": "1" for name in _ONE_THREAD},
        "spark.python.daemon.module": "connect_core.engine.pydaemon",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.task.killTimeout": "500ms",
    }


def confs(master: str, python: str = sys.executable) -> dict[str, str]:
    """Spark's settings for spark-submit. Memory, cores and queues are the caller's."""
    return {
        **lane_settings(),
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": python,
        "spark.driver.extraJavaOptions": _JVM,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        **({"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} if _is_here(master) else {}),
    }


def environment(java: Path, home: Path, master: str, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the environment of spark-submit needs beside what it inherits. `java` is the program to start."""
    return {
        "JAVA_HOME": str(java.parent.parent),
        "WAYBILL_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_PACKAGE.parent), inherited.get("PYTHONPATH")])),
        **dict.fromkeys(_ONE_THREAD, "1"),
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if _is_here(master) else {}),
    }


def write_result(path: Path, told: Json | Failure, exit_code: int = 0) -> None:
    """What became of a run: its summary, or why it failed. Whole or not at all."""
    content = {"failure": asdict(told), "exit_code": exit_code} if isinstance(told, Failure) else {"summary": told}
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(content), encoding="utf-8")
    fresh.rename(path)


def read_result(path: Path, status: int, log: Path | None = None) -> Json:
    """The summary of a run whose spark-submit ended with `status`. Raises the error that the run told, and
    EngineFailed when it came to no end: then nothing is known of what it wrote. `log` has the output of its JVM."""
    try:
        content: Json = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EngineFailed(
            f"spark-submit {_ending(status)} before the run reported its result",
            where=str(log or path),
            next_step="Read its output; the next attempt checks the target for written records",
        ) from None
    if "failure" in content:
        raise Failure(**content["failure"]).as_error()
    summary: Json = content["summary"]
    return summary


def _is_here(master: str) -> bool:
    return _HERE.fullmatch(master) is not None


def _ending(status: int) -> str:
    signal = -status if status < 0 else status - 128
    return f"was killed by signal {signal}" if 0 < signal < 65 else f"ended with status {status}"
