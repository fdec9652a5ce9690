"""The resident engine: one Spark Connect server on loopback, with a token of its home and one session for all clients.

The token reaches the server through its environment, never through a command line, and stands in a file that only its
owner can read. Ready means that a small Python job has gone through with that token and session, so the first real one
finds warm classes and a running fork server.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import uuid
from collections.abc import Container, Mapping
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from connect_core.errors import Unreachable
from connect_core.stack import jars, java, ports
from connect_core.stack.parts import ENGINE, Site
from connect_core.stack.processes import Launch
from connect_core.stack.rocketmq import SETTINGS

_MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_USER = "waybill"
_TOKEN_FILE = "engine.token"
_WARM_UP_LIMIT_S = 90
# Settings of other installations that would win over ours.
_FOREIGN = ("SPARK_REMOTE", "SPARK_MASTER", "SPARK_CONNECT_MODE", "PYSPARK_SUBMIT_ARGS", "SPARK_TESTING")


@dataclass(frozen=True)
class SparkConnect:
    name: ClassVar[str] = ENGINE
    well_known: ClassVar[Mapping[str, int]] = {"grpc": 15002}
    ready_limit_s: ClassVar[float] = 120
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_grace_s: ClassVar[float] = 15

    def choose_ports(self, wanted: Mapping[str, int], taken: Container[int]) -> Mapping[str, int]:
        return {"grpc": ports.choose(wanted.get("grpc", 0), taken)}

    def prepare(self, site: Site, report: jars.Report) -> None:
        _token(site.home)
        folder = _folder(site)
        for name in ("local", "warehouse"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        own = {
            "spark.master": f"local[{site.options.engine_slots}]",
            "spark.connect.grpc.binding.port": str(site.ports["grpc"]),
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        added = "".join(f"{key} {value}\n" for key, value in own.items())
        (folder / "spark.conf").write_text((SETTINGS / "spark.conf").read_text() + added, encoding="utf-8")

    def launch(self, site: Site) -> Launch:
        folder = _folder(site)
        # The server makes folders where it stands, so it stands in its own.
        submit = str(_spark_home() / "bin" / "spark-submit")
        arguments = ("--class", _MAIN_CLASS, "--name", "waybill", "--properties-file", str(folder / "spark.conf"))
        command = ("/usr/bin/env", f"--chdir={folder}", submit, *arguments, "spark-internal")
        return Launch(command, _environment(site), site.log(self.name))

    def is_ready(self, site: Site, output: str) -> bool:
        return ports.accepts(site.ports["grpc"])

    def welcome(self, site: Site) -> None:
        """The first job, in a process of its own: this one stays free of pyspark and of the session."""
        environment = {**_environment(site), "WAYBILL_ENGINE_REMOTE": _remote(site)}
        command = [sys.executable, "-m", "connect_core.engine.warm_up"]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_WARM_UP_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise Unreachable(f"the engine did not finish its first job in {_WARM_UP_LIMIT_S} s") from error
        if done.returncode != 0:
            raise Unreachable(
                f"the engine could not run its first job: {done.stderr.strip()[-2000:]}",
                where=str(site.log(self.name)),
                next_step="read that log",
            )

    def version(self, site: Site) -> str:
        return installed_version("pyspark")

    def facts(self, site: Site) -> Mapping[str, str]:
        return {"token_file": _TOKEN_FILE, "user_id": _USER, "session_id": _session_id(site.home)}


def _remote(site: Site) -> str:
    port = site.ports["grpc"]
    return f"sc://localhost:{port}/;token={_token(site.home)};user_id={_USER};session_id={_session_id(site.home)}"


def _token(home: Path) -> str:
    """The home's token, made when there is none; only its owner can read the file."""
    path = home / _TOKEN_FILE
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))
    return path.read_text().strip()


def _session_id(home: Path) -> str:
    """One for all clients of this home's server; anybody may know it."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, home.as_uri()))


def _folder(site: Site) -> Path:
    return site.home / "spark"


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    for place in (spec.submodule_search_locations or []) if spec else []:
        return Path(place)
    raise Unreachable("pyspark is not installed", next_step=f"{sys.executable} -m pip install pyspark")


def _environment(site: Site) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return environment | {
        "JAVA_HOME": str(java.find(jars.cache_folder()).resolve().parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "SPARK_CONF_DIR": str(_folder(site)),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": _token(site.home),
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
