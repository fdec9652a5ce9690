"""Where the figures are taken: a temporary home with a stack of its own, and Waybill's command in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from connect_core import ledger, stack
from connect_core.stack import postgresql
from tests.bench.usage import workers

_WAYBILL = Path(sys.executable).parent / "waybill"
_SAMPLE_S = 0.02
_LOOK_S = 0.1

Found = TypeVar("Found")


@dataclass(frozen=True)
class Timed:
    """One `waybill run`: seconds from exec to exit, of these in each part of the run, and the most memory (bytes) that
    any of its workers had resident, 0 when no worker was seen."""

    wall_s: float
    parts: dict[str, float]
    worker_bytes: int

    @property
    def run_s(self) -> float:
        """Above the process: from the first part to the last."""
        return sum(self.parts.values())

    @property
    def process_s(self) -> float:
        """Start of Python, imports, opening the ledger, and the exit."""
        return self.wall_s - self.run_s


@dataclass(frozen=True)
class Place:
    folder: Path
    name_servers: str

    @property
    def home(self) -> Path:
        return self.folder / ".waybill"

    @property
    def running(self) -> stack.Stack:
        found = stack.load(self.home)
        if found is None:
            raise SystemExit(f"the stack in {self.home} is gone")
        return found

    def apply(self, name: str, source: dict[str, Any], sink: dict[str, Any], tasks: int = 1, **more: Any) -> None:
        self.apply_all({name: {"source": source, "sink": sink, "tasks": tasks, **more}})

    def apply_all(self, documents: Mapping[str, dict[str, Any]]) -> None:
        """Documents by name, with one command."""
        paths = [self.folder / f"{name}.yaml" for name in documents]
        for path, (name, document) in zip(paths, documents.items(), strict=True):
            path.write_text(yaml.safe_dump({"version": 1, "name": name, **document}))
        self.waybill("apply", *map(str, paths))

    def delete(self, name: str) -> None:
        self.waybill("connectors", "delete", name, "--yes")

    def waybill(self, *arguments: str) -> Any:
        """The answer of a command. A failing one ends the benchmark with its words."""
        command = [str(_WAYBILL), *arguments, "--json"]
        done = subprocess.run(command, cwd=self.folder, env=self._environment(), check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def run(self, name: str, *, watched: bool = False) -> Timed:
        """One run. `watched` looks for its workers' memory all the while, which costs some of a core."""
        command = [str(_WAYBILL), "run", name, "--json"]
        begun = time.monotonic()
        with subprocess.Popen(command, cwd=self.folder, env=self._environment(), stdout=subprocess.PIPE) as run:
            most = 0
            while watched and run.poll() is None:
                most = max([most, *map(_most_resident_bytes, workers(self.home / "locks", run.pid))])
                time.sleep(_SAMPLE_S)
            told, _ = run.communicate()
        wall = time.monotonic() - begun
        if run.returncode:
            raise SystemExit(f"`waybill run {name}` ended with exit code {run.returncode}")
        return Timed(wall, json.loads(told)["tasks"][0]["seconds"], most)

    def run_killed(self, name: str, step: str, settings: Mapping[str, str]) -> None:
        """One run whose driver is killed (SIGKILL) when it gets to a step (`observe.Step`)."""
        fault = self.home / "faults" / step
        fault.parent.mkdir(exist_ok=True)
        fault.with_name(f"{step}.taken").unlink(missing_ok=True)
        fault.write_text("kill")
        command = [str(_WAYBILL), "run", name, "--json"]
        environment = self._environment() | settings
        done = subprocess.run(command, cwd=self.folder, env=environment, check=False, stdout=subprocess.DEVNULL)
        if done.returncode != -signal.SIGKILL:
            raise SystemExit(f"`waybill run {name}` was not killed at {step}, it ended with {done.returncode}")

    @contextmanager
    def staying(self, name: str) -> Iterator[None]:
        """A run in a long window while the block lasts; paused at its end, so that it ends at a range boundary."""
        command = [str(_WAYBILL), "run", name, "--window", "10m", "--json"]
        with subprocess.Popen(command, cwd=self.folder, env=self._environment(), stdout=subprocess.PIPE) as run:
            yield
            self.waybill("connectors", "pause", name)
            run.communicate()
        if run.returncode:
            raise SystemExit(f"`{' '.join(command)}` ended with exit code {run.returncode}")

    def bare(self, direction: str, topic: str, *paths: Path | str) -> float:
        """Seconds of the bare loop, without the start of its process."""
        command = [sys.executable, "-m", "tests.bench.bare", direction, self.name_servers, topic, *map(str, paths)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return float(done.stdout.split()[1])

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "WAYBILL_HOME": str(self.home)}


@contextmanager
def own_place(parts: Collection[str] = stack.DATA_PARTS) -> Iterator[Place]:
    """A home with these parts of a stack running, all of it gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="waybill-bench-"))
    folder.chmod(0o711)  # PostgreSQL runs as another account when this one is root
    home = folder / ".waybill"
    try:
        running = stack.up(home, parts=parts, options=stack.Options(well_known_ports=False), report=_say)
        place = Place(folder, running.name_servers if stack.NAME_SERVER in parts else "")
        ledger.upgrade(running.database_url)
        yield place
    finally:
        stack.down(home)
        postgresql.forget(home)
        shutil.rmtree(folder, ignore_errors=True)


def until(look: Callable[[], Found], what: str, limit_s: float) -> Found:
    """The first answer that is not empty. None in time ends the benchmark."""
    end = time.monotonic() + limit_s
    while not (found := look()):
        if time.monotonic() > end:
            raise SystemExit(f"not within {limit_s:.0f} s: {what}")
        time.sleep(_LOOK_S)
    return found


def _most_resident_bytes(pid: int) -> int:
    """The peak of the process so far (VmHWM), 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
