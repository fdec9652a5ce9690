"""A pytest plugin: writes down how each test ended, so that a failure can be told from an error around the test.

python -m pytest -p tests.guards.verdicts …          with WAYBILL_VERDICTS=FILE in the environment
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

FILE = "WAYBILL_VERDICTS"
_BROKEN = (ImportError, SyntaxError, NameError)
"""What a patch that does not fit the code any more raises: no test noticed anything then."""

_ended: dict[str, Ending] = {}


@dataclass(frozen=True)
class Ending:
    """How one test ended: `passed`, `failed` (by itself), or `broken` (by what is around it, or at its time limit)."""

    how: str
    why: str = ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        _ended[item.nodeid] = _failure(report.when or "", call.excinfo)
    elif report.when == "call" and report.passed:
        _ended.setdefault(item.nodeid, Ending("passed"))
    elif report.skipped:
        _ended[item.nodeid] = Ending("broken", "skipped")
    return report


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _ended[report.nodeid] = Ending("broken", "cannot be collected")


def pytest_sessionfinish() -> None:
    if path := os.environ.get(FILE):
        Path(path).write_text(json.dumps({name: asdict(ending) for name, ending in _ended.items()}))


def _failure(when: str, error: Any) -> Ending:
    told = "" if error is None else error.exconly().strip().partition("\n")[0][:200]
    timed_out = "Timeout (>" in told
    if when == "setup" or timed_out or (error is not None and issubclass(error.type, _BROKEN)):
        return Ending("broken", told or when)
    return Ending("failed", told)


def read(path: Path) -> dict[str, Ending]:
    """What a session wrote; nothing when it did not come to its end."""
    return {name: Ending(**told) for name, told in json.loads(path.read_text()).items()} if path.exists() else {}


def of(test: str, endings: Mapping[str, Ending]) -> Iterable[Ending]:
    """How the choices of a named test ended."""
    return [ending for name, ending in endings.items() if name == test or name.startswith(f"{test}[")]
