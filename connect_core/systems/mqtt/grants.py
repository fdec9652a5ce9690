"""What a broker grants when it lets a client in: the properties of its CONNACK (MQTT 5, section 3.2.2.3). Values only.

In 3.1.1 a broker says nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from connect_core.errors import ConfigError
from connect_core.systems.mqtt.filters import is_shared, plain_of
from connect_core.systems.mqtt.options import MqttSourceOptions

GRANT_ADVICE = "Set in the document what it grants, and run the connector often enough; or change the broker"
_NO_LIMIT = 65_535


class Grants(NamedTuple):
    """`session_expiry_s` and `keep_alive_s` are None where the broker takes what it was asked for, `most_packet_bytes`
    where it takes any size. `keeps_retained` and `receive_maximum` are None in 3.1.1."""

    session_expiry_s: int | None = None
    keep_alive_s: int | None = None
    most_qos: int = 2
    wildcards: bool = True
    shared: bool = True
    keeps_retained: bool | None = None
    receive_maximum: int | None = None
    most_packet_bytes: int | None = None

    @classmethod
    def of(cls, properties: Any) -> Grants:
        """Of paho's properties; None in 3.1.1."""
        if properties is None:
            return cls()
        return cls(
            getattr(properties, "SessionExpiryInterval", None),
            getattr(properties, "ServerKeepAlive", None),
            getattr(properties, "MaximumQoS", 2),
            bool(getattr(properties, "WildcardSubscriptionAvailable", 1)),
            bool(getattr(properties, "SharedSubscriptionAvailable", 1)),
            bool(getattr(properties, "RetainAvailable", 1)),
            getattr(properties, "ReceiveMaximum", _NO_LIMIT),
            getattr(properties, "MaximumPacketSize", None),
        )

    def told(self) -> str:
        """What concerns publishers, for people."""
        if self.keeps_retained is None:
            return "MQTT 3.1.1 does not tell what it grants"
        size = f"{self.most_packet_bytes:,} bytes" if self.most_packet_bytes else "any size"
        retained = "keeps" if self.keeps_retained else "does not keep"
        return (
            f"it grants QoS {self.most_qos}, takes {self.receive_maximum:,} publishes at a time and packets of {size}, "
            f"and {retained} retained messages"
        )

    def faults(self, options: MqttSourceOptions) -> Iterator[str]:
        """What of these options the broker does not give."""
        asked, granted = options.session_expiry_s, self.session_expiry_s
        if granted is not None and granted < asked:
            yield f"keeps sessions for {granted:,} s, and session_expiry_s is {asked:,}"
        if self.most_qos < options.qos:
            yield f"has QoS {self.most_qos} at most, and qos is {options.qos}"
        if not self.wildcards and any({*plain_of(one)} & {*"+#"} for one in options.filters):
            yield "takes no filters with + and #"
        if not self.shared and any(map(is_shared, options.filters)):
            yield "has no shared subscriptions"

    def require(self, options: MqttSourceOptions) -> None:
        """Raises ConfigError: a session that ends earlier than its connector believes is lost without a word."""
        if lacking := list(self.faults(options)):
            raise ConfigError(
                f"The broker {' and '.join(lacking)}",
                where=options.where,
                next_step=GRANT_ADVICE,
            )
