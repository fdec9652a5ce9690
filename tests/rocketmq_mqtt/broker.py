"""The stand-in for tests, and devices as its users know them: MQTT 3.1.1, a signed client id, `GID@@@device`."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from connect_core.stack.processes import Launch
from tests.mqtt_brokers import MqttBroker, running

USER, SECRET, GROUP = "replication", "a-secret-key", "GID_tests"
FIRST_LEVELS, WILDCARDS = ("d", "plant"), ("d/#", "d/+/state", "plant/#")
_ROOT = Path(__file__).parents[2]
_LIMIT_S = 60.0


@dataclass
class RocketMqMqtt(MqttBroker):
    """Its store outlives a kill."""

    kind = "RocketMQ-MQTT (stand-in)"
    client_limit = 1

    def _launch(self) -> Launch:
        settings = {"first_levels": FIRST_LEVELS, "wildcards": WILDCARDS, "user": USER, "secret": SECRET}
        command = (sys.executable, "-m", "tests.rocketmq_mqtt.server", str(self.folder), str(self.port))
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        return Launch((*command, json.dumps(settings)), environment, self._log())

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.host, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def options(self, **more: Any) -> dict[str, Any]:
        """Of a connector."""
        given = {"broker": "rocketmq-mqtt", "host": self.host, "port": self.port, "client_group": GROUP}
        return {**given, "user": USER, "password": "${env:MQTT_SECRET}", "signature": True, **more}


class Device:
    """Publishes one after the other, or listens: acknowledges what it gets. `heard` has every message that came."""

    def __init__(self, broker: MqttBroker, topic_filter: str = "") -> None:
        client_id = f"{GROUP}@@@device-{uuid4().hex[:8]}"
        signed = hmac.new(SECRET.encode(), client_id.encode(), hashlib.sha1).digest()
        self._client = Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=MQTTProtocolVersion.MQTTv311, clean_session=False
        )
        self._client.username_pw_set(USER, base64.b64encode(signed).decode())
        self._client.max_inflight_messages_set(1)  # else they are stored in any order
        self._client.reconnect_delay_set(1, 1)
        self._client.on_message, self._client.on_connect = self._on_message, self._on_connect
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._filter, self._subscribed = topic_filter, threading.Event()
        self.heard: list[MQTTMessage] = []
        self._client.connect(broker.host, broker.port)
        self._client.loop_start()
        assert not topic_filter or self._subscribed.wait(_LIMIT_S)

    def _on_connect(self, client: Client, *_: Any) -> None:
        """Each time: its subscriptions end with the connection."""
        if self._filter:
            client.subscribe(self._filter, 1)

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        self.heard.append(message)

    def publish(self, topic: str, payloads: Sequence[bytes], qos: int = 1) -> None:
        """Returns when the broker has them."""
        said = [self._client.publish(topic, payload, qos) for payload in payloads]
        for one in said:
            one.wait_for_publish(_LIMIT_S)

    def payloads(self, count: int, quiet_s: float = 1.0) -> list[bytes]:
        """All that came, once there are so many different ones and no more have come for a while."""
        until, before = time.monotonic() + _LIMIT_S, -1
        while len({bytes(one.payload) for one in self.heard}) < count or len(self.heard) != before:
            assert time.monotonic() < until, f"{len(self.heard)} have come, wanted are {count}"
            before = len(self.heard)
            time.sleep(quiet_s if before >= count else 0.05)
        return [bytes(one.payload) for one in self.heard]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def device(broker: MqttBroker, topic_filter: str = "") -> Iterator[Device]:
    made = Device(broker, topic_filter)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def rocketmq_mqtt(worker_folder: Path) -> Iterator[RocketMqMqtt]:
    yield from running(RocketMqMqtt(worker_folder / f"rocketmq-mqtt-{uuid4().hex[:8]}"))
