"""What a broker grants when it lets a client in: the properties of its CONNACK (MQTT 5, section 3.2.2.3). Values only.

In 3.1.1 a broker says nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from connect_core.errors import ConfigError
from connect_core.systems.mqtt.filters import is_shared, plain_of
from connect_core.systems.mqtt.options import MqttSourceOptions


class Grants(NamedTuple):
    """`session_expiry_s` and `keep_alive_s` are None where the broker takes what it was asked for."""

    session_expiry_s: int | None = None
    keep_alive_s: int | None = None
    most_qos: int = 2
    wildcards: bool = True
    shared: bool = True

    @classmethod
    def of(cls, properties: Any) -> Grants:
        """Of paho's properties; None in 3.1.1."""
        return cls(
            getattr(properties, "SessionExpiryInterval", None),
            getattr(properties, "ServerKeepAlive", None),
            getattr(properties, "MaximumQoS", 2),
            bool(getattr(properties, "WildcardSubscriptionAvailable", 1)),
            bool(getattr(properties, "SharedSubscriptionAvailable", 1)),
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
                f"the broker {' and '.join(lacking)}",
                where=options.where,
                next_step="Say in the document what it gives, and run the connector often enough; or change the broker",
            )
