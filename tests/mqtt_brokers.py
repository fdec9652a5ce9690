"""Real MQTT brokers for tests: Mosquitto, which gives out packet ids counting up, and HiveMQ CE, which gives out the
lowest that is free.

Both keep their sessions on disk, so that a test may kill one and start it again on the same port. `kind` is what the
pages call them.
"""

from __future__ import annotations

import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client
from paho.mqtt.enums import MQTTProtocolVersion

from connect_core.stack import jars, ports, processes
from connect_core.stack import mqtt_broker as kinds
from connect_core.stack.processes import Launch, Process

EACH_CHANGE_SAVED = {"autosave_on_changes": "true", "autosave_interval": "1"}
"""Mosquitto as tests of its crashes need it: what it has acknowledged is on disk."""
FOR_THROUGHPUT = {"autosave_on_changes": "false", "autosave_interval": "1800"}
"""Mosquitto's own default: with each change it would write everything that waits."""

_READY_S = 60.0
_WEBSOCKETS = """<websocket-listener><port>{port}</port><bind-address>127.0.0.1</bind-address><path>/mqtt</path>
<subprotocols><subprotocol>mqtt</subprotocol></subprotocols></websocket-listener>"""


@dataclass
class MqttBroker(ABC):
    """One broker on the loopback interface, its files in `folder`."""

    folder: Path
    port: int = field(default_factory=ports.free)
    process: Process | None = None
    kind: ClassVar[str]
    client_limit: ClassVar[int]
    """How many publishes of a client may be under way."""

    @property
    def host(self) -> str:
        return "127.0.0.1"

    def start(self) -> None:
        """Returns when it answers a client."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = processes.start(self._launch())
        if not processes.wait_until(self._answers, _READY_S):
            self.kill()
            raise AssertionError(f"{self.kind} does not answer:\n{self._log().read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        assert self.process is not None
        processes.stop(self.process, sign=processes.signal.SIGKILL)

    def stop(self) -> None:
        """By its own shutdown."""
        assert self.process is not None
        processes.stop(self.process, grace_s=30)

    def restart(self) -> None:
        self.kill()
        self.start()

    def _log(self) -> Path:
        return self.folder / "broker.log"

    def _answers(self) -> bool:
        """A connection is accepted as soon as the port is open, a CONNECT only when the broker is ready."""
        client = Client(CallbackAPIVersion.VERSION2, f"ready-{uuid4().hex[:8]}", protocol=MQTTProtocolVersion.MQTTv5)
        client.connect_timeout = 1.0
        try:
            client.connect(self.host, self._ready_port())
        except OSError:
            return False
        until = time.monotonic() + 2
        while not client.is_connected() and time.monotonic() < until and client.loop(0.1) == 0:
            pass
        answered = client.is_connected()
        client.disconnect()
        return answered

    def _ready_port(self) -> int:
        return self.port

    @abstractmethod
    def _launch(self) -> Launch: ...


@dataclass
class Mosquitto(MqttBroker):
    """`settings` replace or extend those that the stack ships; `listeners` stand beside an open one on `port`."""

    settings: Mapping[str, str] = field(default_factory=EACH_CHANGE_SAVED.copy)
    listeners: str = ""
    kind = "Mosquitto"
    client_limit = 1000

    def _launch(self) -> Launch:
        file = self.folder / "mosquitto.conf"
        file.write_text(kinds.mosquitto_document(self.folder, self.port, self.settings, self.listeners))
        program = kinds.program()
        assert program is not None
        return Launch((program, "-c", str(file)), dict(os.environ), self._log())


@dataclass
class HiveMQ(MqttBroker):
    """It listens for websockets too, at `/mqtt`."""

    websocket_port: int = field(default_factory=ports.free)
    kind = "HiveMQ CE"
    client_limit = 10

    def _launch(self) -> Launch:
        jars.fetch(kinds.HIVEMQ)
        kinds.prepare_hivemq(self.folder, self.port, _WEBSOCKETS.format(port=self.websocket_port))
        return Launch(kinds.hivemq_command(self.folder), dict(os.environ), self._log())


@pytest.fixture(scope="module")
def mosquitto(worker_folder: Path) -> Iterator[Mosquitto]:
    """One that saves every change. A test that stops it starts it again."""
    if kinds.program() is None:
        pytest.skip("mosquitto is not installed")
    yield from running(Mosquitto(worker_folder / f"mosquitto-{uuid4().hex[:8]}"))


@pytest.fixture
def fast_mosquitto(worker_folder: Path) -> Iterator[Mosquitto]:
    """One for many messages, of which some may wait. It is not killed."""
    yield from running(Mosquitto(worker_folder / f"mosquitto-{uuid4().hex[:8]}", settings=FOR_THROUGHPUT))


@pytest.fixture(scope="module")
def hivemq(worker_folder: Path) -> Iterator[HiveMQ]:
    yield from running(HiveMQ(worker_folder / f"hivemq-{uuid4().hex[:8]}"))


@pytest.fixture(params=["mosquitto", "hivemq"])
def mqtt_broker(request: pytest.FixtureRequest) -> MqttBroker:
    """One kind after the other."""
    broker: MqttBroker = request.getfixturevalue(request.param)
    return broker


def running(broker: MqttBroker) -> Iterator[MqttBroker]:
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
        shutil.rmtree(broker.folder, ignore_errors=True)
