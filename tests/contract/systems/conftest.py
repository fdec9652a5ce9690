"""`system` is one case after the other; those that need servers are marked so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.systems.cases import (
    FileCase,
    MqttCase,
    RocketMQByKeyCase,
    RocketMQByRulesCase,
    RocketMQCase,
    SystemCase,
)

_CASES = {
    "rocketmq": RocketMQCase,
    "rocketmq-by-key": RocketMQByKeyCase,
    "rocketmq-by-rules": RocketMQByRulesCase,
}


@pytest.fixture(params=["file", *(pytest.param(name, marks=pytest.mark.server) for name in _CASES)])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SystemCase]:
    yield from _case(request, tmp_path)


@pytest.fixture(
    params=[
        "file",
        *(pytest.param(name, marks=pytest.mark.server) for name in (*_CASES, "mosquitto")),
        pytest.param("hivemq", marks=[pytest.mark.server, pytest.mark.fault(costly=True)]),
    ]
)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SystemCase]:
    """Every sink, those whose source pushes too."""
    yield from _case(request, tmp_path)


def _case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SystemCase]:
    with ExitStack() as resources:
        if request.param == "file":
            yield FileCase(tmp_path)
        elif request.param in _CASES:
            servers = request.getfixturevalue("rocketmq")
            yield _CASES[request.param](servers.name_servers, resources)
        else:
            yield MqttCase(request.getfixturevalue(request.param), resources)
