"""What the figures are made of: which measures are taken, shares of the processor, percentiles, and Airflow's pages."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from connect_core import stack
from connect_core.stack import processes, record
from tests.bench import __main__ as bench
from tests.bench.airflow import Web
from tests.bench.telling import at, spread
from tests.bench.usage import Usage, shares, told_cores, told_memory, usage

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
BUSY = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_what_waits_for_schedules_is_measured_only_when_it_is_asked_for() -> None:
    usual = bench._wanted(Namespace(measures=[], long=False))
    assert not set(usual) & set(bench.LONG)
    assert set(bench._wanted(Namespace(measures=[], long=True))) == {*usual, *bench.LONG}
    assert bench._wanted(Namespace(measures=["fleet"], long=False)) == ["fleet"]


def test_a_part_s_processor_time_holds_children_that_have_ended(tmp_path: Path) -> None:
    code = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}]); print('done', flush=True); input()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as parent:  # type: ignore[call-overload]
        assert parent.stdout.readline() == "done\n"
        running = _stack(tmp_path, parent.pid)
        seen = usage(running)[stack.SCHEDULER]
        parent.communicate("\n")
    assert seen.cpu_s >= 0.3
    assert seen.memory_bytes > 1_000_000


def _stack(home: Path, pid: int) -> stack.Stack:
    process = processes.of(pid)
    assert process is not None
    return stack.Stack(
        home, stack.Options(), {stack.SCHEDULER: record.StackPart(stack.SCHEDULER, process, {}, "", {}, 0)}
    )


def test_shares_are_cores_kept_busy_the_busiest_first() -> None:
    before = {"broker": Usage(10, 0), "engine": Usage(5, 0)}
    after = {"broker": Usage(13, 0), "engine": Usage(14, 0), "new": Usage(7, 0)}
    busy = shares(before, after, 6)
    assert list(busy.items()) == [("engine", 1.5), ("broker", 0.5)]
    assert told_cores(busy) == ("200% of a core", "engine 150%, broker 50%")


def test_memory_is_told_with_the_largest_part_first() -> None:
    seen = {"broker": Usage(0, 2 << 20), "engine": Usage(0, 1_300 << 20)}
    assert told_memory(seen) == ("1,302 MiB", "PSS in MiB: engine 1300, broker 2")


def test_percentiles_of_few_values_are_the_greatest_one() -> None:
    assert [at([3.0, 1.0, 2.0], share) for share in (0, 0.5, 0.99)] == [1, 2, 3]
    assert spread([1, 2], str) == "p50 2, p99 2, max 2"


def test_the_starts_of_tasks_are_read_page_by_page() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.params["task_id"] == "task_0"
        first = int(request.url.params["offset"])
        return httpx.Response(200, json={"task_instances": [_instance(n) for n in range(first, min(first + 100, 130))]})

    with httpx.Client(base_url="http://airflow", transport=httpx.MockTransport(answer)) as client:
        found = Web(client).starts("fleet-")
    assert [one.lag_s for one in found if one.begun] == [0.25] * 129
    assert [one.run_id for one in found if not one.begun] == ["129"]


def _instance(number: int) -> dict[str, Any]:
    due = NOON + timedelta(seconds=number)
    begun = (due + timedelta(seconds=0.25)).isoformat() if number < 129 else None
    about = {"dag_id": "replicate.fleet-01", "dag_run_id": str(number), "state": "success"}
    return {**about, "run_after": due.isoformat(), "start_date": begun}
