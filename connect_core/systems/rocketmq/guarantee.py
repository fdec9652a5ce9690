"""What RocketMQ promises as either end (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json

_SOURCE = Guarantee("exactly once")
_SINK = Guarantee(
    "exactly once",
    (
        "The target broker keeps what it has acknowledged.",
        "A broker that is up stores or drops a crashed sender's request within its send-queue timeout.",
        "Waybill may use the topic `WAYBILL_BARRIER` of the target broker.",
    ),
)


def guarantee(role: Role, options: Json) -> Guarantee:
    return _SOURCE if role == "source" else _SINK
