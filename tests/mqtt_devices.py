"""Devices: publish with QoS 0, 1 or 2, and know what the broker has acknowledged; and those who listen to topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.mqtt_brokers import MqttBroker

_LIMIT_S = 150.0
_MOST_WAITING = 30_000
"""paho refuses, without a word, what comes behind 65,535 that wait."""


class Reached(NamedTuple):
    """A broker that somebody else has started."""

    host: str
    port: int
    client_limit: int


class Devices:
    """One connection for all of them. `acknowledged` counts the publishes that the broker has taken over."""

    def __init__(self, broker: MqttBroker | Reached) -> None:
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
        """Returns at once, unless very many wait already; `wait` for the broker."""
        for payload in payloads:
            while self.published - self.acknowledged >= _MOST_WAITING:
                time.sleep(0.005)
            self._client.publish(topic, payload, qos, **more)
            self.published += 1

    def wait(self, limit_s: float = _LIMIT_S) -> None:
        """Until the broker has all of them."""
        until = time.monotonic() + limit_s
        while self.acknowledged < self.published:
            assert time.monotonic() < until, f"the broker took {self.acknowledged} of {self.published}"
            time.sleep(0.005)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_publish(self, client: Client, data: Any, packet_id: int, reason: Any, properties: Any) -> None:
        self.acknowledged += 1


@contextmanager
def devices(broker: MqttBroker | Reached) -> Iterator[Devices]:
    made = Devices(broker)
    try:
        yield made
    finally:
        made.close()


class Listener:
    """Somebody who has subscribed, and gets each message once: in a session of QoS 2 that the broker keeps."""

    def __init__(self, broker: MqttBroker, topic_filter: str) -> None:
        self._client = Client(
            CallbackAPIVersion.VERSION2, f"listener-{uuid4().hex[:8]}", protocol=MQTTProtocolVersion.MQTTv5
        )
        self._subscribed = threading.Event()
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.reconnect_delay_set(1, 1)
        self.messages: list[MQTTMessage] = []
        self._heard: set[tuple[str, bytes]] = set()
        self._mark, self._marked = f"mark-{uuid4().hex}".encode(), threading.Event()
        self._topic = topic_filter.replace("+", "mark").replace("#", "mark")
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = 3600
        self._client.connect(broker.host, broker.port, clean_start=False, properties=properties)
        self._client.subscribe(topic_filter, 2)
        self._client.loop_start()
        assert self._subscribed.wait(_LIMIT_S)

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        """A broker that was killed sends again, with DUP set, what it does not know to have arrived here."""
        if message.payload == self._mark:
            self._marked.set()
            return
        known = (message.topic, bytes(message.payload))
        if not (message.dup and known in self._heard):
            self.messages.append(message)
        self._heard.add(known)

    def everything(self) -> list[MQTTMessage]:
        """All messages that the broker had when this was asked: a last one comes behind them."""
        self._marked.clear()
        self._client.publish(self._topic, self._mark, 2)
        assert self._marked.wait(_LIMIT_S)
        return list(self.messages)

    def heard(self, count: int, quiet_s: float = 0.5) -> list[MQTTMessage]:
        """All messages, when there are `count` of them and no more have come for a while."""
        until, before = time.monotonic() + _LIMIT_S, -1
        while len(self.messages) < count or len(self.messages) != before:
            assert time.monotonic() < until, f"{len(self.messages)} of {count} have come"
            before = len(self.messages)
            time.sleep(quiet_s if before >= count else 0.01)
        return list(self.messages)

    def payloads(self, count: int, quiet_s: float = 0.5) -> list[bytes]:
        return [bytes(message.payload) for message in self.heard(count, quiet_s)]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def listening(broker: MqttBroker, topic_filter: str) -> Iterator[Listener]:
    made = Listener(broker, topic_filter)
    try:
        yield made
    finally:
        made.close()
