"""A Spark Connect server of this folder's own, started as the stack does it, whose workers know the drill system."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_core.engine.spark_connect import SparkConnectEngine
from connect_core.stack import jars, java, ports
from connect_core.stack.spark_server import Server, server_command, server_environment, write_settings
from tests.unit.engine.lanes import DRILL

READY_LIMIT_S = 90


@dataclass
class Running:
    """The server and its process; `kill` is a crash. `packages` is where its workers find the drill, a copy."""

    server: Server
    process: subprocess.Popen[bytes]
    log: Path
    packages: Path

    @property
    def remote(self) -> str:
        return self.server.remote()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("spark")
    server = Server(folder, ports.free(), "right-token", slots=8, java=java.find(jars.cache_folder()))
    write_settings(server)
    packages = shutil.copytree(DRILL, folder / "packages")
    environment = server_environment(server, os.environ | {"PYTHONPATH": str(packages), "WAYBILL_TESTING": "1"})
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(server_command(server), env=environment, stdout=log, stderr=log)
    running = Running(server, process, folder / "log", packages)
    try:
        _wait_until_ready(running)
        SparkConnectEngine(running.remote).warm_up(lanes=2)
        yield running
    finally:
        running.kill()


@pytest.fixture(scope="module")
def spark(spark_server: Running) -> SparkConnectEngine:
    return SparkConnectEngine(spark_server.remote)


def _wait_until_ready(running: Running) -> None:
    until = time.monotonic() + READY_LIMIT_S
    while time.monotonic() < until:
        assert running.process.poll() is None, running.log.read_text()[-3000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", running.server.port)):
            return
        time.sleep(0.1)
    pytest.fail(f"the server was not ready within {READY_LIMIT_S} s: {running.log.read_text()[-3000:]}")
