"""Starts spark-submit for a run of a connector and waits for its end: for `waybill run`, without Airflow.

What the application says goes to whoever asked, what Spark's JVM says into a log of the home. When this process is
killed the run ends as well: the application is told who called it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connect_core.engine import submit
from connect_core.engine.driver import this_process
from connect_core.errors import ConfigError, VersionMismatch
from connect_core.sdk.values import LIVE, Json
from connect_core.stack.spark_server import NOT_INHERITED

_ASK_LIMIT_S = 30
_LARGEST_LOG_BYTES = 8 * 1024 * 1024

_ASKED = """
import importlib.metadata, importlib.util, json, pathlib
spec = importlib.util.find_spec("pyspark")
if spec and spec.origin:
    home = pathlib.Path(spec.origin).parent
    print(json.dumps({"spark_home": str(home), "version": importlib.metadata.version("pyspark")}))
"""


@dataclass(frozen=True)
class SubmitPlace:
    """Where a run is submitted. `spark` is the version asked for, None for any; `conf` more of Spark's settings."""

    home: Path
    java: Path
    master: str
    python: Path = Path(sys.executable)
    spark: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


def run(
    place: SubmitPlace,
    connector: str,
    *,
    engine: str | None,
    accept_gaps: bool,
    window_s: float = 0.0,
    stream: str = LIVE,
    say: Callable[[str], None],
) -> Json:
    """The run's summary. `engine` names the one that is to be instead of the document's; `stream` a backfill.

    Raises the error that the run failed with, and VersionMismatch before anything is started.
    """
    spark_home = _spark_home(place)
    with tempfile.TemporaryDirectory(prefix="waybill-submit-") as folder, _log(place.home).open("ab") as log:
        result = Path(folder) / "result.json"
        told = submit.arguments(
            connector,
            stream=stream,
            accept_gaps=accept_gaps,
            window_s=window_s,
            engine=engine,
            result=result,
            quiet=True,
            caller=this_process(),
        )
        status = _ended(_command(place, spark_home, told), _environment(place, spark_home), log.fileno(), say)
        return submit.read_result(result, status, Path(log.name))


def _spark_home(place: SubmitPlace) -> Path:
    """Where the interpreter has pyspark. Raises ConfigError when it has none, VersionMismatch for another release."""
    where = str(place.python)
    try:
        asked = subprocess.run([place.python, "-c", _ASKED], capture_output=True, text=True, timeout=_ASK_LIMIT_S)
        answer = json.loads(asked.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        raise ConfigError(
            "The engine's interpreter does not run, or has no pyspark",
            where=where,
            next_step="Install waybill for it, or name another one in conf/engines",
        ) from None
    if place.spark is not None and answer["version"] != place.spark:
        raise VersionMismatch(
            f"The engine requires Spark {place.spark}, but its interpreter has Spark {answer['version']}",
            where=where,
            next_step="Name another interpreter in the engine's file (conf/engines), or install that release",
        )
    return Path(answer["spark_home"])


def _command(place: SubmitPlace, spark_home: Path, arguments: list[str]) -> list[str]:
    settings = {**place.conf, **submit.confs(place.master, str(place.python))}
    told = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    program = str(spark_home / "bin" / "spark-submit")
    return [program, "--master", place.master, *told, str(submit.application()), *arguments]


def _environment(place: SubmitPlace, spark_home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    return {**kept, **submit.environment(place.java, place.home, place.master), "SPARK_HOME": str(spark_home)}


def _ended(command: list[str], environment: dict[str, str], log: int, say: Callable[[str], None]) -> int:
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, errors="replace", bufsize=1
    ) as process:
        try:
            for line in process.stdout or ():
                say(line.rstrip("\n"))
            return process.wait()
        except BaseException:
            process.kill()  # the application dies with it, and its lanes with that
            raise


def _log(home: Path) -> Path:
    """Kept over runs, begun anew when it has grown large."""
    path = home / "logs" / "submit.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LARGEST_LOG_BYTES:
        path.unlink()
    return path
