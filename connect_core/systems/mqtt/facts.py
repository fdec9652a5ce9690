"""What a broker says of itself under `$SYS`, where it does."""

from __future__ import annotations

from uuid import uuid4

from connect_core.errors import WaybillError
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session, wait

_VERSION = "$SYS/broker/version"
_ANSWER_S = 0.5
_COUNTING = (b"mosquitto",)
"""How the names of brokers begin that give out packet ids one after the other."""


def counts_ids_up(options: MqttSourceOptions) -> bool:
    """Whether the broker is known to count packet ids up. One that says nothing in half a second, or lets nobody see
    it, is not."""
    looking = options.model_copy(update={"protocol": "5", "session_expiry_s": 60})
    try:
        session = Session(looking, f"{options.client_id(0)}-{uuid4().hex[:6]}")
    except WaybillError:
        return False
    try:
        session.subscribe([_VERSION], 0)
        wait([session], _ANSWER_S)
        return any(one.payload.startswith(_COUNTING) for one in session.receive())
    except WaybillError:
        return False
    finally:
        session.give_up()
