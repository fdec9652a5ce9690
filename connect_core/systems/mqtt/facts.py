"""What a broker says of itself under `$SYS`, where it does."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import NamedTuple
from uuid import uuid4

from connect_core.errors import WaybillError
from connect_core.systems.mqtt.dropping import TOPIC as DROPPED
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session, wait

VERSION = "$SYS/broker/version"
_ANSWER_S = 0.5
_COUNTING = "mosquitto"
"""How the names of brokers begin that give out packet ids one after the other."""


class BrokerFacts(NamedTuple):
    version: str = ""
    dropped: int | None = None

    @property
    def counts_up(self) -> bool:
        """Whether the broker is known to count packet ids up."""
        return self.version.startswith(_COUNTING)


def ask(options: MqttSourceOptions) -> BrokerFacts:
    """Nothing of a broker that lets nobody see it, or says nothing before it answers a ping: what it has of these is
    retained, and sent with the subscription."""
    looking = options.model_copy(update={"protocol": "5", "session_expiry_s": 60})
    said: dict[bytes, bytes] = {}
    with suppress(WaybillError):
        session = Session(looking, f"{options.client_id(0)}-{uuid4().hex[:6]}")
        try:
            session.subscribe([VERSION, DROPPED], 0)
            session.acknowledge(())  # nothing, and a ping behind it
            until = time.monotonic() + _ANSWER_S
            while session.open and not session.answers and time.monotonic() < until:
                wait([session], until - time.monotonic())
                said |= {one.topic: one.payload for one in session.receive()}
        finally:
            session.give_up()
    dropped = said.get(DROPPED.encode(), b"")
    return BrokerFacts(
        said.get(VERSION.encode(), b"").decode(errors="replace"), int(dropped) if dropped.isdigit() else None
    )
