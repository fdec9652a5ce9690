"""Apicurio Registry: a real schema registry with the REST API of Confluent's, of which no package has the server."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from connect_core.stack import jars, java, ports, processes
from connect_core.stack.processes import Launch

VERSION = "apicurio-2.6.13.Final"
_READY_S = 60.0
_JVM = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Apicurio:
    """One that keeps its schemas in memory."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/subjects", trust_env=False, timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False

    def compare(self, subject: str, rule: str) -> None:
        """Has it compare new schemas of a subject, by `rule`: `BACKWARD` and others."""
        body = {"compatibility": rule}
        httpx.put(f"{self.url}/config/{subject}", json=body, trust_env=False).raise_for_status()

    def newest(self, subject: str) -> int:
        """The number of its newest schema."""
        answer = httpx.get(f"{self.url}/subjects/{subject}/versions/latest", trust_env=False).raise_for_status()
        return int(answer.json()["id"])

    def add(self, subject: str, schema: str) -> int:
        """Registers a schema of Avro; its number."""
        body = {"schema": schema}
        answer = httpx.post(f"{self.url}/subjects/{subject}/versions", json=body, trust_env=False).raise_for_status()
        return int(answer.json()["id"])


@pytest.fixture(scope="module")
def apicurio(worker_folder: Path) -> Iterator[Apicurio]:
    folder = worker_folder / f"apicurio-{uuid4().hex[:8]}"
    [archive] = jars.fetch(VERSION).iterdir()
    with tarfile.open(archive) as packed:
        packed.extractall(folder)  # of these bytes the digest is recorded
    [runner] = folder.glob("*-runner.jar")
    registry = Apicurio(ports.free())
    of_quarkus = {"HOST": "127.0.0.1", "PORT": str(registry.port)}
    environment = os.environ | {f"QUARKUS_HTTP_{name}": value for name, value in of_quarkus.items()}
    command = (str(java.find(jars.cache_folder())), *_JVM, "-jar", str(runner))
    process = processes.start(Launch(command, environment, folder / "registry.log"))
    try:
        if not processes.wait_until(registry.answers, _READY_S):
            raise AssertionError(f"no registry:\n{(folder / 'registry.log').read_text(errors='replace')[-3000:]}")
        yield registry
    finally:
        processes.stop(process, sign=processes.signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
