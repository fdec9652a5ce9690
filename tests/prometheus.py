"""A Prometheus of its own: what it scrapes, and what it knows by its own API. And its promtool."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from connect_core.stack import jars, ports, processes
from connect_core.stack.processes import Launch, Process

_READY_S = 30.0


@dataclass
class Prometheus:
    """On the loopback interface. It scrapes one target each half second, and looks at the rules of a file as often."""

    folder: Path
    port: int = field(default_factory=ports.free)
    process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, target: str, rules: Path) -> None:
        """Returns when it answers."""
        settings = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "waybill", "static_configs": [{"targets": [target]}]}],
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump(settings))
        promtool("check", "config", str(config))
        command = (
            *(str(_program("prometheus")), f"--config.file={config}", f"--storage.tsdb.path={self.folder / 'data'}"),
            f"--web.listen-address=127.0.0.1:{self.port}",
        )
        self.process = processes.start(Launch(command, os.environ, self.folder / "server.log"))
        if not processes.wait_until(self._answers, _READY_S):
            self.stop()
            raise AssertionError(f"no Prometheus:\n{(self.folder / 'server.log').read_text()[-3000:]}")

    def stop(self) -> None:
        if self.process is not None:
            processes.stop(self.process)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Its series now; raises for one that Prometheus does not understand."""
        found: list[dict[str, Any]] = self.asked("query", query=expression)["result"]
        return found

    def value(self, expression: str) -> float | None:
        """Of the one series that it has."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def asked(self, path: str, **words: str) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=words, trust_env=False, timeout=30)
        told = answer.json()
        assert told["status"] == "success", told
        return told["data"]

    def alerts(self) -> set[tuple[str, str]]:
        """Those that fire: name and connector."""
        fire = [one["labels"] for one in self.asked("alerts")["alerts"] if one["state"] == "firing"]
        return {(one["alertname"], one.get("connector", "")) for one in fire}

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", trust_env=False, timeout=5).status_code == 200
        except httpx.HTTPError:
            return False


@pytest.fixture
def prometheus(worker_folder: Path) -> Iterator[Prometheus]:
    """Not started: a test says what it scrapes."""
    if not _program("prometheus").exists():
        pytest.skip("Prometheus is not there: `make ready-for-tests` fetches it (.ci/prometheus)")
    server = Prometheus(worker_folder / "prometheus")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


def promtool(*words: str, given: str = "") -> str:
    """What it says; fails where it finds a fault, or has advice."""
    done = subprocess.run([_program("promtool"), *words], input=given, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def eventually(what: Callable[[], bool], told: Callable[[], object], limit_s: float = 30.0) -> None:
    assert processes.wait_until(what, limit_s), told()


def _program(name: str) -> Path:
    return jars.cache_folder() / "prometheus" / "usr/bin" / name
