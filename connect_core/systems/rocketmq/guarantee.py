"""What RocketMQ promises as either end (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json

_SOURCE = Guarantee("exactly once", order="each queue")
_SINK_CONDITIONS = (
    "The target broker keeps what it has acknowledged.",
    "A broker that is up stores or drops a crashed sender's request within its send-queue timeout.",
    "Waybill may use the topic `WAYBILL_BARRIER` of the target broker.",
)
_UNLESS = (
    (
        "client",
        "own",
        "No process is killed while the native client sends its first message over a new connection.",
    ),
    (
        "on_replaced",
        "fail",
        "No target topic is created again or loses queues: `on_replaced: continue` does not redeliver what is lost.",
    ),
    (
        "on_unknown",
        "fail",
        "Retention deletes no message of a stopped run before the next run has looked: `on_unknown: redeliver` "
        "delivers its range again.",
    ),
)
"""Options, and what a sink depends on as well unless they have this value, which they have by default."""
_KEPT = {"key": "each key", "sharding_key": "each sharding key"}
"""By the option `order` what is less than a whole source partition."""


def guarantee(role: Role, options: Json) -> Guarantee:
    if role == "source":
        return _SOURCE
    more = tuple(condition for name, safe, condition in _UNLESS if options.get(name, safe) != safe)
    return Guarantee("exactly once", _SINK_CONDITIONS + more, _KEPT.get(options.get("order", ""), ""))
