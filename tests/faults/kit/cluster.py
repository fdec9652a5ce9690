"""A standalone Spark cluster of this test process: one master, two workers with two slots each, loopback only.

Its processes are Spark's own programs, started in own sessions and stopped by their pids; executors and their Python
workers are children of the workers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from connect_core.stack import jars, java, ports
from connect_core.stack.processes import Launch, Process, start, stop
from tests.faults.kit.processes import wait_for

WORKERS = 2
_READY_LIMIT_S = 120.0
_DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    """`folder` is its own. A master that was killed is started again on the same port."""

    folder: Path
    port: int = field(default_factory=lambda: ports.choose(0, set()))
    master: Process | None = None
    workers: list[Process] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when every worker has told the master of itself. No effect on what runs."""
        if self.master is None or not self.master.is_alive:
            here = ("--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")
            self.master = self._start("master", f"{_DEPLOY}.master.Master", *here)
            wait_for(lambda: "I have been elected leader" in self._log("master"), "a Spark master", _READY_LIMIT_S)
        for number in range(len(self.workers), WORKERS):
            self.workers.append(self._start_worker(f"worker-{number}"))
        # Its log is begun anew with each master, and workers come to a new one by themselves.
        wait_for(lambda: self._log("master").count("Registering worker") >= WORKERS, "Spark workers", _READY_LIMIT_S)

    def stop(self) -> None:
        for process in (*self.workers, *([self.master] if self.master else [])):
            stop(process, sign=signal.SIGKILL)

    def _start_worker(self, name: str) -> Process:
        here = ("--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(self.folder / name))
        return self._start(name, f"{_DEPLOY}.worker.Worker", *here, "--cores", "2", "--memory", "1g", self.address)

    def _start(self, name: str, program: str, *arguments: str) -> Process:
        command = (str(Path(pyspark.__file__).parent / "bin" / "spark-class"), program, *arguments)
        return start(Launch(command, self._environment(), self.folder / f"{name}.log"))

    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "JAVA_HOME": str(java.find(jars.cache_folder()).parent.parent),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_CONF_DIR": str(self.folder),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.worker.timeout=10",
        }

    def _log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""
