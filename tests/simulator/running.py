"""Runs histories by their seeds: for the command, its processes and the tests."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from tests.simulator.focus import focused
from tests.simulator.history import History
from tests.simulator.invariants import faults_of
from tests.simulator.journey import Journey
from tests.simulator.ledger import Database
from tests.simulator.plans import Plan
from tests.simulator.scenario import Scenario

_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Result:
    """What one history came to. `counts` say how often something happened in it."""

    seed: int
    problems: tuple[str, ...]
    attempts: int
    virtual_s: float
    counts: Counter[str]


def simulated(seed: int, scenario: Scenario | None = None) -> Result:
    """The history of a seed, with its own scenario unless told."""
    return _result(History(seed, _home(os.getpid()), _database(), scenario=scenario))


def replayed(seed: int) -> tuple[list[str], Result]:
    """The same history again, and each step of it."""
    history = History(seed, _home(os.getpid()), _database(), tracing=True)
    result = _result(history)
    return history.scheduler.trace, result


def history_of(seed: int, focus: str | None = None) -> Result:
    """Every other seed is a journey; with a focus each is one."""
    if focus is None and seed % 2 == 0:
        return simulated(seed)
    return travelled(seed, focused(focus, seed) if focus else None)


def told_again(seed: int, focus: str | None = None) -> tuple[list[str], Result]:
    if focus is None and seed % 2 == 0:
        return replayed(seed)
    return travelled_again(seed, focused(focus, seed) if focus else None)


def travelled(seed: int, plan: Plan | None = None) -> Result:
    """The journey of a seed, with its own plan unless told."""
    return _arrived(Journey(seed, _home(os.getpid()), _database(), plan=plan))


def travelled_again(seed: int, plan: Plan | None = None) -> tuple[list[str], Result]:
    """The same journey again, and each step of it."""
    journey = Journey(seed, _home(os.getpid()), _database(), tracing=True, plan=plan)
    result = _arrived(journey)
    return journey.scheduler.trace, result


def _arrived(journey: Journey) -> Result:
    journey.run()
    verdict = journey.verdict()
    plan = journey.is_planned
    counts = journey.counts + journey.faults.counts
    counts[f"from {plan.source} to {plan.sink}"] = 1
    counts["records arrived"] = verdict.arrived
    problems = (*journey.problems, *verdict.faults)
    return Result(journey.seed, problems, journey.attempts, journey.scheduler.now_ns / 1e9, counts)


def _result(history: History) -> Result:
    history.run()
    problems = tuple(faults_of(history))
    counts = history.counts + history.faults.counts
    return Result(history.seed, problems, history.attempts, history.scheduler.now_ns / 1e9, counts)


@cache
def _home(process: int) -> Path:
    """In memory where that can be; taken away when the process ends."""
    home = Path(mkdtemp(prefix="waybill-simulator-", dir=_MEMORY if _MEMORY.is_dir() else None))
    Finalize(None, rmtree, args=(home,), exitpriority=1)
    return home


@cache
def _database() -> Database:
    return Database()
