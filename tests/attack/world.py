"""The stack under attack, with four connectors that Airflow runs: what is in it, its processes, and its command.

What is asked of the product goes through the command `waybill`, as a person would; processes are found in the kernel's
table, below the pids that `waybill dev status` gives.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from connect_core import stack
from connect_core.stack import postgresql

FILES_IN, OUT, ACROSS, DEVICES = "files-in", "lines-out", "lines-across", "devices-in"
LINES, COPY, TELEGRAMS = "attack-lines", "attack-copy", "attack-telegrams"
_COMMAND_LIMIT_S = 90
_OPTIONS = stack.Options(well_known_ports=False, airflow={"AIRFLOW__CORE__PARALLELISM": "8"})


def documents() -> dict[str, dict[str, Any]]:
    """Every direction, with different schedules; `lines-out` has two tasks, each with a file of its own."""
    here = "${stack:name_servers}"
    lines = {"rocketmq": {"name_servers": here, "topics": [LINES]}}
    telegrams = {"host": "127.0.0.1", "port": "${stack:mqtt_port}", "filters": ["plant/#"]}
    return {
        FILES_IN: {
            "source": {"file": {"path": "logs/*.log"}},
            "sink": {"rocketmq": {"name_servers": here, "topic": LINES, "queues": 4}},
            "schedule": {"every": "2s"},
            "limits": {"range_records": 3_000},
        },
        OUT: {
            "source": lines,
            "sink": {"file": {"path": "out/lines.txt"}},
            "tasks": 2,
            "schedule": {"every": "3s"},
            "limits": {"range_records": 2_000},
        },
        ACROSS: {
            "source": lines,
            "sink": {"rocketmq": {"name_servers": here, "topic": COPY, "queues": 0, "order": "queue"}},
            "schedule": {"every": "15s", "window": "12s"},
        },
        DEVICES: {
            "source": {"mqtt": telegrams},
            "sink": {"rocketmq": {"name_servers": here, "topic": TELEGRAMS, "queues": 1}},
            "schedule": {"every": "12s", "window": "10s"},
        },
    }


@dataclass
class World:
    """One stack in a folder of its own, until `end`. `log` prints what was done, with its time."""

    folder: Path
    begun: float = field(default_factory=time.monotonic)
    applied: dict[str, dict[str, Any]] = field(default_factory=documents)
    _saying: threading.Lock = field(default_factory=threading.Lock)

    @property
    def home(self) -> Path:
        return self.folder / ".waybill"

    def log(self, line: str) -> None:
        with self._saying:
            print(f"{time.monotonic() - self.begun:7.1f} s  {line}", flush=True)

    def start(self) -> None:
        """The whole stack, MQTT broker included."""
        for name in ("logs", "releases", "out"):
            (self.folder / name).mkdir()
        stack.up(self.home, parts=stack.ALL, options=_OPTIONS)
        self.command("db", "upgrade")

    def revive(self) -> None:
        """As a person does who finds something dead."""
        code, out = self.command("dev", "up")
        if code:
            self.log(f"dev up: {code} {out.strip()[-300:]}")

    def end(self) -> None:
        stack.down(self.home)
        postgresql.forget(self.home)

    def command(self, *words: str) -> tuple[int, str]:
        """Exit code and output; -1 when it did not end in time."""
        program = str(Path(sys.executable).with_name("waybill"))
        environment = {**os.environ, "WAYBILL_HOME": str(self.home)}
        try:
            done = subprocess.run(
                [program, *words],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if "--json" not in words else subprocess.DEVNULL,
                text=True,
                timeout=_COMMAND_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return -1, ""
        return done.returncode, done.stdout

    def json(self, *words: str) -> dict[str, Any]:
        """What a command tells; empty when it fails, as it may while a server is away."""
        code, out = self.command(*words, "--json")
        try:
            found: dict[str, Any] = json.loads(out) if code in (0, 3) else {}
        except ValueError:
            return {}
        return found

    def apply(self, name: str, **changed: Any) -> tuple[int, str]:
        self.applied[name] = {**self.applied[name], **changed}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"version": 1, "name": name, **self.applied[name]}))
        return self.command("apply", str(path))

    def port(self, part: str, purpose: str) -> int:
        running = stack.load(self.home)
        assert running is not None
        return running.part(part).ports[purpose]

    def pid(self, part: str) -> int | None:
        running = stack.load(self.home)
        found = running.parts.get(part) if running else None
        return found.process.pid if found and found.process.is_alive else None

    def below(self, part: str, words: str, *, but: str = "\0") -> list[psutil.Process]:
        """Processes that this part has started whose command lines hold `words`."""
        pid = self.pid(part)
        found = []
        for process in _family(pid) if pid else ():
            try:
                line = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if words in line and but not in line:
                found.append(process)
        return found


def _family(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


class Stopped:
    """Processes that stand still for a while, each with a timer that lets it go on."""

    def __init__(self) -> None:
        self.timers: dict[int, threading.Timer] = {}

    def stop(self, pid: int, seconds: float) -> None:
        os.kill(pid, signal.SIGSTOP)
        self.timers[pid] = threading.Timer(seconds, self._go_on, (pid,))
        self.timers[pid].start()

    def go_on(self) -> None:
        """All of them, now."""
        for pid, timer in [*self.timers.items()]:
            timer.cancel()
            self._go_on(pid)

    def _go_on(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        self.timers.pop(pid, None)


def chosen(rng: random.Random, found: list[psutil.Process]) -> int | None:
    return rng.choice(sorted(found, key=lambda one: one.pid)).pid if found else None
