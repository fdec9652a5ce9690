"""`system` is one case after the other; those that need servers are marked so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.systems.cases import (
    FileCase,
    FileSinkCase,
    MqttCase,
    MqttKeepingCase,
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

_FILES = {"file": FileCase, "file-sink": FileSinkCase}


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


@pytest.fixture(
    params=[
        "file-sink",
        *(pytest.param(name, marks=pytest.mark.server) for name in ("rocketmq", "mosquitto")),
        pytest.param("hivemq", marks=[pytest.mark.server, pytest.mark.fault(costly=True)]),
    ]
)
def keeping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SystemCase]:
    """Every sink once: what it keeps of a record does not depend on how it chooses queues and topics."""
    yield from _case(request, tmp_path, MqttKeepingCase)


def _case(request: pytest.FixtureRequest, tmp_path: Path, mqtt: type[MqttCase] = MqttCase) -> Iterator[SystemCase]:
    with ExitStack() as resources:
        if request.param in _FILES:
            yield _FILES[request.param](tmp_path)
        elif request.param in _CASES:
            servers = request.getfixturevalue("rocketmq")
            yield _CASES[request.param](servers.name_servers, resources)
        else:
            yield mqtt(request.getfixturevalue(request.param), resources)
