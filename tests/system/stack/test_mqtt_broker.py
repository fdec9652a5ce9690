"""The stack's MQTT broker: Mosquitto where it is installed, else HiveMQ CE; started only when it is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from paho.mqtt import publish, subscribe

from connect_core import stack
from connect_core.config.resolving import stack_field
from connect_core.stack import MQTT_BROKER, Options, mqtt_broker, processes

pytestmark = pytest.mark.server

OPTIONS = Options(well_known_ports=False)


@pytest.fixture
def home(worker_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    place = worker_folder / request.node.name.replace("[", "-").rstrip("]") / ".waybill"
    yield place
    stack.down(place)


def up(home: Path) -> tuple[stack.Stack, str]:
    said: list[str] = []
    running = stack.up(home, parts=[MQTT_BROKER], supervise=False, options=OPTIONS, report=said.append)
    return running, "\n".join(said)


@pytest.mark.parametrize("kind", ["mosquitto", "hivemq"])
def test_what_it_has_acknowledged_outlives_it(home: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "hivemq":
        monkeypatch.setattr(mqtt_broker, "program", lambda: None)
    elif mqtt_broker.program() is None:
        pytest.skip("mosquitto is not installed")
    running, said = up(home)
    assert running.part(MQTT_BROKER).version.startswith(kind)
    assert ("Mosquitto is not installed here" in said) == (kind == "hivemq")
    assert stack_field(home, "mqtt_port") == str(running.mqtt_port)
    publish.single("kept", "on", qos=1, retain=True, hostname="127.0.0.1", port=running.mqtt_port)
    if kind == "mosquitto":  # which saves every second or two
        saved = home / "mqtt" / "mosquitto.db"
        assert processes.wait_until(lambda: saved.exists() and b"kept" in saved.read_bytes(), 10)
    stack.kill(home, MQTT_BROKER)
    again, _ = up(home)
    assert again.mqtt_port == running.mqtt_port
    assert subscribe.simple("kept", qos=1, hostname="127.0.0.1", port=again.mqtt_port).payload == b"on"


def test_it_is_not_started_unless_it_is_named() -> None:
    assert MQTT_BROKER not in stack.startable()
