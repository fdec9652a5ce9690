"""`system` is one case after the other; those that need servers are marked so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.systems.cases import FileCase, RocketMQCase, SystemCase


@pytest.fixture(params=["file", pytest.param("rocketmq", marks=pytest.mark.server)])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SystemCase]:
    if request.param == "file":
        yield FileCase(tmp_path)
        return
    servers = request.getfixturevalue("rocketmq")
    with ExitStack() as resources:
        yield RocketMQCase(servers.name_servers, resources)
