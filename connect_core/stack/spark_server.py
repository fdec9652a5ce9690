"""What the resident Spark Connect server is started with.

Turns a `Server` into a command, an environment and the settings file between them; `spark_connect` starts the process,
keeps its pid, knows when it is ready, and runs `warm_up` then. Nothing here starts anything.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import connect_core
from connect_core.errors import Fatal
from connect_core.stack import archives

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"

_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"

_JVM = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")
"""Small and soon warm: records never pass through this JVM, so that its best speed is worth less than its CPU."""

_LONGEST_SOCKET_FOLDER = 60
"""Bytes: sockets are named by 42 characters in it, and the kernel takes 107."""

NOT_INHERITED = (
    "MASTER",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONNECT_MODE",
    "SPARK_MASTER",
    "SPARK_REMOTE",
    "SPARK_SUBMIT_OPTS",
    "SPARK_TESTING",
)
"""Variables of the caller that would make Spark something else."""


@dataclass(frozen=True)
class Server:
    """One server of this machine. `folder` is its own: settings, temporary files, sockets. `slots` is how many lanes
    run at once; more than cores, since live lanes mostly wait."""

    folder: Path
    port: int
    token: str
    slots: int
    java: Path
    python: Path = Path(sys.executable)
    heap: str = "1g"
    jvm: tuple[str, ...] = ()
    """More arguments for its JVM."""

    def remote(self) -> str:
        """The address for clients. It holds the token. The host must be this word: by number the client wants TLS."""
        return f"sc://localhost:{self.port}/;token={self.token}"


def server_command(server: Server) -> tuple[str, ...]:
    """Replaces itself by the JVM, so that its pid stays. Needs the file that `write_settings` wrote."""
    submit = (str(_spark_home() / "bin" / "spark-submit"), "--class", _SERVER_CLASS)
    # The server makes folders where it stands, so it stands in its own.
    stands = ("/usr/bin/env", f"--chdir={server.folder}")
    return (*stands, *submit, "--properties-file", str(_settings_file(server)), "spark-internal")


def server_environment(server: Server, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment. Workers inherit it: what documents refer to by `${env:…}` comes from here."""
    kept = {name: value for name, value in inherited.items() if name not in NOT_INHERITED}
    root = str(Path(connect_core.__file__).resolve().parent.parent)
    return kept | {
        TOKEN_VARIABLE: server.token,
        "JAVA_HOME": str(server.java.parent.parent),
        "SPARK_HOME": str(_spark_home()),
        # No settings of the machine's own Spark are read. Nothing is there: the class path begins with this folder, and
        # a JVM takes no archive of classes where a folder of the class path has something in it.
        "SPARK_CONF_DIR": str(server.folder / "none"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(server.python),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, inherited.get("PYTHONPATH")])),
        # One lane is one thread: more of them in each of many workers would only take memory.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "ARROW_IO_THREADS": "1",
    }


def server_settings(server: Server) -> dict[str, str]:
    """Spark's settings. Loopback only; no task is tried twice; one session for ever; no page, no history."""
    folder = server.folder
    return {
        "spark.master": f"local[{server.slots}]",
        "spark.app.name": "waybill",
        # A local master with one number tries no task twice; said again for any other.
        "spark.task.maxFailures": "1",
        "spark.speculation": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": server.heap,
        "spark.driver.extraJavaOptions": " ".join(
            (*_JVM, *archives.arguments(jars()), *server.jvm, f"-Djava.io.tmpdir={folder / 'tmp'}")
        ),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        # Another port would be another server than the one that was recorded.
        "spark.port.maxRetries": "0",
        "spark.connect.session.manager.defaultSessionTimeout": "-1",
        "spark.local.dir": str(folder / "tmp"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        # One row is one task (a local table has as many partitions as rows, up to this): no shuffle deals them out.
        "spark.sql.leafNodeDefaultParallelism": "4096",
        # Lanes travel with the plan; above this size they would be stored in the session, which never ends.
        "spark.sql.session.localRelationCacheThreshold": str(2**31 - 1),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "connect_core.engine.pydaemon",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(_socket_folder(server)),
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.task.killTimeout": "500ms",
    }


def write_settings(server: Server) -> None:
    """The file named in the command, and the folders named in it. Holds no secret."""
    for name in ("conf", "tmp"):
        (server.folder / name).mkdir(parents=True, exist_ok=True)
    _socket_folder(server).mkdir(mode=0o700, exist_ok=True)
    lines = [f"{name} {value}\n" for name, value in server_settings(server).items()]
    _settings_file(server).write_text("".join(lines))


def jars() -> Path:
    """Spark's own, which make up the class path of the server."""
    return _spark_home() / "jars"


def _settings_file(server: Server) -> Path:
    return server.folder / "conf" / "spark-defaults.conf"


def _socket_folder(server: Server) -> Path:
    """In the server's folder where a socket's path is short enough for the kernel, else below the system's."""
    folder = server.folder / "tmp"
    if len(os.fsencode(folder)) <= _LONGEST_SOCKET_FOLDER:
        return folder
    name = hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"waybill-{os.getuid()}-{name}"


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None or not (home := Path(spec.origin).parent).joinpath("jars").is_dir():
        raise Fatal(
            "pyspark is not installed with its jars", next_step="Run `pip install pyspark`, not pyspark-client alone"
        )
    return home
