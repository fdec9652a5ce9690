"""What RocketMQ keeps for RocketMQ-MQTT: queues of messages, and how far each client has come in them. It outlives the
process that serves MQTT."""

from __future__ import annotations

import base64
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paho.mqtt.client import topic_matches_sub

EMPTY = "★\r\n\t☀".encode()
"""The body of a message without payload."""


@dataclass
class Message:
    """`tries` counts how often it was sent from a retry queue."""

    topic: str
    payload: bytes
    qos: int = 1
    tries: int = 0

    def copy(self) -> Message:
        return replace(self)


def properties(message: Message, queues: Sequence[str]) -> dict[str, str]:
    """Those of the message of RocketMQ that it is stored as, in the topic of its first level."""
    return {
        "originMqttTopic": message.topic,
        "IS_EMPTY_MSG": str(not message.payload).lower(),
        "qosLevel": str(message.qos),
        "retryTimes": str(message.tries),
        "extData": json.dumps({"qosLevel": str(message.qos)}),
        "TAGS": "MQTT_COMMON",
        "INNER_MULTI_DISPATCH": ",".join("%LMQ%" + queue.replace("/", "%") for queue in queues),
    }


def normal(topic: str) -> str:
    """The name of its queue."""
    return topic if "/" not in topic or topic.endswith("/") else f"{topic}/"


def first_level(topic: str) -> str:
    return topic.removeprefix("/").partition("/")[0]


class Store:
    """`wildcards` are the filters with + or # that are configured: each has a queue of its own."""

    def __init__(self, folder: Path, wildcards: Sequence[str]) -> None:
        self._log, self._places = folder / "messages.jsonl", folder / "places.json"
        self._wildcards = wildcards
        self._queues: defaultdict[str, list[Message]] = defaultdict(list)
        self._stored: dict[str, dict[str, int]] = json.loads(self._places.read_text()) if self._places.exists() else {}
        lines = self._log.read_bytes().splitlines() if self._log.exists() else []
        for line in lines:
            self._add(*_decoded(line))
        self._file = self._log.open("ab", buffering=0)

    def close(self) -> None:
        self._file.close()

    def queues_of(self, topic: str) -> list[str]:
        matching = [one for one in self._wildcards if topic_matches_sub(one, topic)]
        return [normal(topic), *map(normal, matching)]

    def put(self, queues: Sequence[str], message: Message) -> None:
        self._add(queues, message)
        payload = base64.b64encode(message.payload).decode()
        fields = [list(queues), message.topic, payload, message.qos, message.tries]
        self._file.write(json.dumps(fields).encode() + b"\n")

    def _add(self, queues: Sequence[str], message: Message) -> None:
        for queue in queues:
            self._queues[queue].append(message)

    def end(self, queue: str) -> int:
        return len(self._queues[queue])

    def read(self, queue: str, offset: int, count: int) -> list[Message]:
        return [one.copy() for one in self._queues[queue][offset : offset + count]]

    def place(self, client_id: str, queue: str) -> int:
        """0 for who has none, as RocketMQ answers while it has the queue from its beginning."""
        return self._stored.get(client_id, {}).get(queue, 0)

    def save(self, client_id: str, places: Mapping[str, int]) -> None:
        self._stored.setdefault(client_id, {}).update(places)
        draft = self._places.with_suffix(".draft")
        draft.write_text(json.dumps(self._stored))
        os.replace(draft, self._places)


def _decoded(line: bytes) -> tuple[list[str], Message]:
    queues, topic, payload, qos, tries = json.loads(line)
    return queues, Message(topic, base64.b64decode(payload), qos, tries)
