"""The resident engine as a part of the stack: `spark_server` says how it is started, this says when and where.

The token of the home stands in a file that only its owner can read; it reaches server and first job through their
environments, never through a command line. Ready means that a small Python job has gone through with that token, so
the first real one finds warm classes and running workers.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import ClassVar

from connect_core.errors import Unreachable
from connect_core.stack import jars, java, ports, secret, spark_server
from connect_core.stack.parts import ENGINE, NOT_ANSWERING, RUNNING, Site, running_if
from connect_core.stack.processes import Launch

_TOKEN_FILE = "engine.token"
# Named, not imported: it brings pyspark.
_WARM_UP = "connect_core.engine.warm_up"
_REMOTE_VARIABLE = "WAYBILL_ENGINE_REMOTE"
_WARM_UP_LIMIT_S = 150
_ANSWER_LIMIT_S = 3.0
_FRAME_HEADER = 9
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How a client begins HTTP/2 (RFC 9113, 3.4): the preface and empty settings. The server answers with its own."""


@dataclass(frozen=True)
class SparkConnect:
    name: ClassVar[str] = ENGINE
    after: ClassVar[tuple[str, ...]] = ()
    told: ClassVar[tuple[str, ...]] = ()
    well_known: ClassVar[Mapping[str, int]] = {"grpc": 15002}
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_grace_s: ClassVar[float] = 15

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {"grpc": ports.choose(wanted.get("grpc", 0), taken)}

    def prepare(self, site: Site, report: jars.Report) -> None:
        spark_server.write_settings(_server(site))

    def launch(self, site: Site) -> Launch:
        ours = _server(site)
        # Spark makes folders where it stands, so it stands in its own.
        command = ("/usr/bin/env", f"--chdir={ours.folder}", *spark_server.server_command(ours))
        return Launch(command, spark_server.server_environment(ours), site.log(self.name))

    def is_ready(self, site: Site, output: str) -> bool:
        return self.condition(site) == RUNNING

    def condition(self, site: Site) -> str:
        """The kernel takes connections for a server that stands still: only the server itself begins HTTP/2."""
        try:
            with socket.create_connection(("127.0.0.1", site.ports["grpc"]), timeout=_ANSWER_LIMIT_S) as connection:
                connection.sendall(_HELLO)
                return running_if(len(connection.recv(_FRAME_HEADER)) > 0)
        except OSError:
            return NOT_ANSWERING

    def welcome(self, site: Site) -> None:
        """The first job, in a process of its own: this one stays free of pyspark."""
        ours = _server(site)
        environment = {**spark_server.server_environment(ours), _REMOTE_VARIABLE: ours.remote()}
        command = [sys.executable, "-m", _WARM_UP]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_WARM_UP_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise Unreachable(f"The engine did not finish its first job in {_WARM_UP_LIMIT_S} s") from error
        if done.returncode != 0:
            log = site.log("engine-warm-up")
            log.write_text(done.stderr)
            raise Unreachable(
                "The engine could not run its first job",
                where=str(log),
                next_step=f"Read that log, and {site.log(self.name)}",
            )

    def version(self, site: Site) -> str:
        return installed_version("pyspark")

    def facts(self, site: Site) -> Mapping[str, str]:
        return {"token_file": _TOKEN_FILE}


def _server(site: Site) -> spark_server.Server:
    return spark_server.Server(
        folder=site.home / "spark",
        port=site.ports["grpc"],
        token=token(site.home),
        slots=site.options.engine_slots,
        jvm=tuple(site.options.engine_jvm),
        java=java.find(jars.cache_folder()).resolve(),
    )


def token(home: Path) -> str:
    """The home's token; made when there is none."""
    return secret.kept(home / _TOKEN_FILE)
