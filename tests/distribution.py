"""Which process of a parallel session runs which files: those that need the same costly server run in one process, so
that it is started once; those that need RocketMQ, of which each process has its own, run in three. And which process
compiles which files, where nobody has done so yet."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_ROOT = Path(__file__).parents[1]
_WITH_ROCKETMQ = 3
"""So many processes. What needs it is nearly half of all, by the time that it takes."""
_NEEDS_ROCKETMQ = re.compile(
    r"\b(rocketmq: RocketMQ|(sqlite_|inline_)?site: Site|site_on|across|java_reader|cluster: Cluster|SystemCase)\b"
)
"""Fixtures that a file with such tests names. One that is missed, or meant in vain, costs the start of a broker."""
_OF_ONE_PROCESS = (
    (  # one demo for all
        "tests/system/demo/test_airflow.py",
        "tests/system/demo/test_hidden_secrets.py",
        "tests/system/demo/test_readme.py",
        "tests/system/demo/test_rest.py",
    ),
    (  # the oldest RocketMQ, `rocketmq_533`, and engines that are killed, `own_engine`; the first has both
        "tests/faults/test_crashes.py",
        "tests/faults/test_minutes_of_failures.py",
        "tests/faults/test_windows.py",
        "tests/faults/test_worker_lines.py",
        "tests/faults/test_clusters.py",
        "tests/system/rocketmq/test_faults.py",
        "tests/system/rocketmq/test_messages.py",
        "tests/system/rocketmq/test_topics.py",
        "tests/system/systems/test_rocketmq_versions.py",
    ),
)
TOGETHER = {file: files[0] for files in _OF_ONE_PROCESS for file in files}
"""By file the first one of those that it goes with."""


class ByServers(LoadFileScheduling):
    """`--dist loadfile`, but for the files that go together, and for those that need RocketMQ."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)

    def _assign_work_unit(self, node: WorkerController) -> None:
        wanted = preferred(self.workqueue, with_rocketmq=node in self.nodes[:_WITH_ROCKETMQ])
        if wanted is not None:
            self.workqueue.move_to_end(wanted, last=False)
        super()._assign_work_unit(node)


def preferred(files: Iterable[str], *, with_rocketmq: bool) -> str | None:
    """The first of the files that need RocketMQ, or that do not; None where no such file is left."""
    return next((file for file in files if _needs_rocketmq(file) == with_rocketmq), None)


@cache
def _needs_rocketmq(file: str) -> bool:
    path = _ROOT / file
    return path.is_file() and _NEEDS_ROCKETMQ.search(path.read_text()) is not None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Each process imports all files. In a fresh clone none of them is compiled, which takes longer than the import: so
    each begins with a share of its own, and finds the others compiled."""
    process = getattr(session.config, "workerinput", None)
    if process is None or session.config.args_source != pytest.Config.ArgsSource.TESTPATHS:
        return
    files = sorted(_ROOT.glob("tests/**/test_*.py"))
    for file in files[int(process["workerid"].removeprefix("gw")) :: process["workercount"]]:
        # What is wrong with a file, its collection says.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(_ROOT).with_suffix("").parts))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServers | None:
    return ByServers(config, log) if config.getvalue("dist") == "loadfile" else None
