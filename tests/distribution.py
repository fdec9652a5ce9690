"""Which process of a parallel session runs which files: those that need the same costly server run in one process, so
that it is started once."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_OF_ONE_PROCESS = (
    (  # the oldest RocketMQ: `rocketmq_533`
        "tests/faults/test_clusters.py",
        "tests/faults/test_crashes.py",
        "tests/system/rocketmq/test_faults.py",
        "tests/system/rocketmq/test_messages.py",
        "tests/system/rocketmq/test_topics.py",
        "tests/system/systems/test_rocketmq_versions.py",
    ),
)
TOGETHER = {file: files[0] for files in _OF_ONE_PROCESS for file in files}
"""By file the first one of those that it goes with."""


class ByServers(LoadFileScheduling):
    """`--dist loadfile`, but for the files that go together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServers | None:
    return ByServers(config, log) if config.getvalue("dist") == "loadfile" else None
