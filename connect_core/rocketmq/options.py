"""What a client needs to know before it connects: addresses, time limits, credentials, TLS. Values only."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from connect_core.errors import ConfigError
from connect_core.rocketmq.wire.frame import DEFAULT_MAX_FRAME_BYTES
from connect_core.rocketmq.wire.signing import Credentials

TlsFactory = Callable[[], ssl.SSLContext]


@dataclass(frozen=True)
class ClientOptions:
    """`name_servers` are "host:port", asked in turn. Every request has a deadline; these are the longest ones.

    `tls` builds the context for every connection, name servers and brokers alike (the servers take TLS on the same
    port); None means plain text, and there is no fallback from one to the other.
    """

    name_servers: tuple[str, ...]
    connect_timeout_s: float = 3.0
    request_timeout_s: float = 5.0
    send_timeout_s: float = 3.0
    route_lifetime_s: float = 30.0
    credentials: Credentials | None = None
    tls: TlsFactory | None = None
    tls_server_name: str | None = None
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES

    def __post_init__(self) -> None:
        if not self.name_servers:
            raise ConfigError("No name server given", next_step='Name at least one as "host:port"')
        for address in self.name_servers:
            split_address(address)


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[v6]:port"."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError("Not an address", where=address, next_step='Write it as "host:port"')
    return host.strip("[]"), int(port)
