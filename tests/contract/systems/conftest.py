"""`system` is one case after the other; those that need servers are marked so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.systems.cases import FileCase, RocketMQByKeyCase, RocketMQCase, SystemCase

_CASES = {"rocketmq": RocketMQCase, "rocketmq-by-key": RocketMQByKeyCase}


@pytest.fixture(params=["file", *(pytest.param(name, marks=pytest.mark.server) for name in _CASES)])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SystemCase]:
    if request.param == "file":
        yield FileCase(tmp_path)
        return
    servers = request.getfixturevalue("rocketmq")
    with ExitStack() as resources:
        yield _CASES[request.param](servers.name_servers, resources)
