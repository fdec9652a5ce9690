"""Sessions of a broker that is none, for those who read them in a worker."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from connect_core.errors import Refused
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Pins, Range
from connect_core.systems.mqtt.connection import Grants
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.packets import Packet
from connect_core.systems.mqtt.session_reader import SessionReader
from connect_core.systems.mqtt.session_state import SessionState


@dataclass
class Broker:
    """Keeps the sessions of these client ids, and says what happened."""

    kept: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    refuses: bool = False
    answers_at_once: bool = True
    packets: dict[str, deque[Packet]] = field(default_factory=dict)
    at_once: int = 1
    """How many of them come together."""
    asked: int = 0
    """What is not answered yet."""
    acknowledged: list[int] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def session(self, options: MqttSourceOptions, client_id: str) -> Session:
        known = client_id in self.kept
        self.kept.add(client_id)
        self.said.append(f"connect {client_id}")
        self.sessions.append(Session(self, client_id, known))
        return self.sessions[-1]


@dataclass
class Session:
    """One of them, connected."""

    broker: Broker
    client_id: str
    kept: bool
    open: bool = True
    answers: int = 0
    grants: Grants = field(default_factory=Grants)

    @property
    def there(self) -> MqttSourceOptions:
        return options()

    def subscribe(self, filters: tuple[str, ...], qos: int) -> None:
        self._ask("subscribe", filters)

    def unsubscribe(self, filters: tuple[str, ...], *, waits: bool = True) -> None:
        self._ask("unsubscribe", filters)

    def _ask(self, what: str, filters: tuple[str, ...]) -> None:
        self.broker.said.append(f"{what} {' '.join(filters)}")
        self.broker.asked += not self.broker.answers_at_once

    def answered(self) -> bool:
        if self.broker.refuses and not self.broker.asked:
            raise Refused("it does not grant that")
        return not self.broker.asked

    def receive(self) -> list[Packet]:
        waiting = self.broker.packets.get(self.client_id, deque())
        return [waiting.popleft() for _ in range(min(self.broker.at_once, len(waiting)))]

    def acknowledge(self, packet_ids: list[int]) -> bool:
        self.broker.acknowledged += packet_ids
        return True

    def give_up(self) -> None:
        self.broker.kept.discard(self.client_id)
        self.broker.said.append(f"give up {self.client_id}")

    def close(self) -> None:
        self.open = False

    def read(self) -> None:
        """What there is waits at the broker."""

    def listen(self, limit_s: float) -> bool:
        time.sleep(min(limit_s, 0.01))
        return True

    def lost(self) -> None:
        return None


def options(**more: Any) -> MqttSourceOptions:
    return MqttSourceOptions.model_validate({"host": "h", "filters": ["a"], "uid": "u", **more})


def member(standing: SessionState, *filters: str, **more: Any) -> SessionReader:
    return SessionReader(options(**more), planned(0, standing), ("s", "w"), filters)


def planned(number: int, standing: SessionState) -> Range:
    pins = Pins(1, "p", {}, "code")
    return Range("live", Partition(f"session-{number}"), number, 0, 5, 1 << 62, 10, 10, standing.evidence(), pins)
