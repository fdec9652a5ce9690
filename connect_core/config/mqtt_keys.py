"""The address of an MQTT broker as RocketMQ Connect has it, `tcp://host:port`, as options of ours. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

MUST = {"mqttBrokerUrl": "the broker, as tcp://host:1883"}
_SCHEMES: dict[str, dict[str, Any]] = {
    "tcp": {},
    "mqtt": {},
    "ssl": {"tls": True},
    "mqtts": {"tls": True},
    "ws": {"websockets": "/mqtt"},
    "wss": {"websockets": "/mqtt", "tls": True},
}
"""Of Eclipse Paho for Java, which RocketMQ Connect uses, and what they mean here."""
_PORTS = {"ws": 80, "wss": 443}


def of_url(url: str) -> dict[str, Any]:
    """Raises ValueError for what is no such address. A port that is left out is the usual one."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise ValueError("is no address: write tcp://host:1883") from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError(f"is no address of a broker: write tcp://host:1883; there are {', '.join(_SCHEMES)}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("may have a host, a port and a path; user and password have keys of their own")
    found = {"host": parts.hostname, **_SCHEMES[parts.scheme]}
    if parts.path.strip("/") and "websockets" in found:
        found["websockets"] = parts.path
    port = port or _PORTS.get(parts.scheme)
    return found | ({"port": port} if port else {})
