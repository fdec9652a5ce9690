"""Devices that publish to the local MQTT broker, and a listener at the other end: what was said, what was heard.

Each payload names its device and its number, so that identity can be checked afterwards. All devices share one
connection.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Sequence
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from connect_core.errors import Retriable

COUNT = 200
QOS = 1
_HOST = "127.0.0.1"
_EVERY_S = 0.05
_UNDER_WAY = 10
"""So many publishes without an answer: what every broker takes from one client."""
_ANSWER_LIMIT_S = 60.0


class Devices:
    """`COUNT` of them publish in turn to `<prefix>/device-NNN/state`. `said` are the payloads, in order."""

    def __init__(self, port: int, prefix: str) -> None:
        self.said: list[bytes] = []
        self._prefix = prefix
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._client = _connected(port, f"{prefix}-devices")

    def start(self, per_second: int) -> None:
        """Goes on publishing until `stop`."""
        each = max(round(per_second * _EVERY_S), 1)

        def publish() -> None:
            while not self._over.wait(_EVERY_S):
                self._publish(each)

        self._thread = threading.Thread(target=publish, name="devices", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when the broker has acknowledged everything."""
        self._over.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Devices:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        _leave(self._client)

    def _publish(self, count: int) -> None:
        under_way = []
        for _ in range(count):
            number = len(self.said)
            device = f"device-{number % COUNT:03d}"
            payload = f"{device} {number // COUNT:06d} {number * 7 % 90 / 10 + 18:.1f} C".encode()
            under_way.append(self._client.publish(f"{self._prefix}/{device}/state", payload, QOS))
            self.said.append(payload)
        for one in under_way:
            one.wait_for_publish(_ANSWER_LIMIT_S)


class Listener:
    """Hears everything below a topic. `heard` are the payloads, in order of arrival."""

    def __init__(self, port: int, prefix: str) -> None:
        self.heard: list[bytes] = []
        self._client = _connected(port, f"{prefix}-listener")
        self._client.on_message = self._on_message
        subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.subscribe(f"{prefix}/#", QOS)
        if not subscribed.wait(_ANSWER_LIMIT_S):
            raise Retriable("The local MQTT broker does not answer", next_step="Start the demo again")

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exception: object) -> None:
        _leave(self._client)

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        self.heard.append(bytes(message.payload))


def difference(said: Sequence[bytes], heard: Sequence[bytes], told: int) -> list[str]:
    """What is wrong with what was heard: messages missing, unknown, or there more often than the receipts tell."""
    missing, strange = set(said) - set(heard), set(heard) - set(said)
    repeated = len(heard) - len(set(heard))
    faults = [f"{len(missing)} messages of devices are missing"] if missing else []
    faults += [f"{len(strange)} messages are of no device"] if strange else []
    faults += [f"{repeated} messages were repeated, the receipts count {told}"] if repeated > told else []
    return faults


def sha256_of(payloads: Collection[bytes]) -> str:
    """Over the payloads, sorted."""
    digest = hashlib.sha256()
    for payload in sorted(payloads):
        digest.update(payload + b"\n")
    return digest.hexdigest()


def _connected(port: int, client_id: str) -> Client:
    client = Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTProtocolVersion.MQTTv5)
    client.max_inflight_messages_set(_UNDER_WAY)
    client.max_queued_messages_set(0)
    client.connect(_HOST, port)
    client.loop_start()
    return client


def _leave(client: Client) -> None:
    client.disconnect()
    client.loop_stop()
