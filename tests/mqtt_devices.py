"""Devices: publish with QoS 0, 1 or 2, and know what the broker has acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.mqtt_brokers import MqttBroker

_LIMIT_S = 60.0


class Devices:
    """One connection for all of them. `acknowledged` counts the publishes that the broker has taken over."""

    def __init__(self, broker: MqttBroker) -> None:
        self._client = Client(
            CallbackAPIVersion.VERSION2, f"devices-{uuid4().hex[:8]}", protocol=MQTTProtocolVersion.MQTTv5
        )
        self._client.max_inflight_messages_set(broker.client_limit)
        self._client.max_queued_messages_set(0)
        self._client.on_publish = self._on_publish
        self._client.connect(broker.host, broker.port)
        self.acknowledged = self.published = 0
        self._client.loop_start()

    def publish(self, topic: str, payloads: Sequence[bytes], qos: int = 1, **more: Any) -> None:
        """Returns at once; `wait` for the broker."""
        for payload in payloads:
            self._client.publish(topic, payload, qos, **more)
        self.published += len(payloads)

    def wait(self) -> None:
        """Until the broker has all of them."""
        until = time.monotonic() + _LIMIT_S
        while self.acknowledged < self.published:
            assert time.monotonic() < until, f"the broker took {self.acknowledged} of {self.published}"
            time.sleep(0.005)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_publish(self, client: Client, data: Any, packet_id: int, reason: Any, properties: Any) -> None:
        self.acknowledged += 1


@contextmanager
def devices(broker: MqttBroker) -> Iterator[Devices]:
    made = Devices(broker)
    try:
        yield made
    finally:
        made.close()
