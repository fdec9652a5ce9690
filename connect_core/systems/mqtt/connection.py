"""How a paho client gets to a broker, for sessions and for publishers; what the broker grants it; and what ends its
connection: a typed error.

Without a thread of paho's own: whoever connects drives the client, and for seconds. So without keep-alive too, but for
brokers that demand one.
`BufferedClient` uses a private name of paho (`_sock_recv`), so its version is pinned and tests watch it: paho asks the
socket for each byte of a packet's head.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion

from connect_core.errors import ConfigError, Refused, Retriable, Unreachable, WaybillError
from connect_core.systems.mqtt.options import MqttBrokerOptions, MqttSourceOptions
from connect_core.systems.topic_filters import is_shared, plain_of

ANSWER_S = 10.0
GRANT_ADVICE = "Set in the document what it grants, and run the connector often enough; or change the broker"
_NO_LIMIT = 65_535
_PROTOCOL_ERROR, TAKEN_OVER = 0x82, 0x8E
"""Reasons of a DISCONNECT (MQTT 5, section 3.14.2.1). paho gives the first one for what it cannot read; the second says
that another client has connected with this client id."""
_FOR_GOOD = frozenset({0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C})
"""Reasons of a CONNACK that trying again does not change (MQTT 5, section 3.2.2.2; paho shows those of 3.1.1 so)."""
_PATIENCE_S = 1.0
"""For the first answer of an address behind which there are others; twice as much each time that they are tried."""
_RETRY_S = 0.2
_READ_BYTES = 1 << 16
_LINGER_OFF = struct.pack("ii", 1, 0)


class Unreadable(Unreachable):
    """The broker has sent what nobody can read, and sends it again over the next connection."""


class BufferedClient(Client):
    """Takes from the socket what is there, not byte by byte."""

    unreadable = ""
    """What is wrong with a message that has ended the connection."""
    _taken, _given = b"", 0

    def _sock_recv(self, bufsize: int) -> bytes:
        if not self.holds_unread():
            self._taken, self._given = super()._sock_recv(_READ_BYTES), 0
        begin, self._given = self._given, min(self._given + bufsize, len(self._taken))
        return self._taken[begin : self._given]

    def holds_unread(self) -> bool:
        """Whether something was taken from the socket that paho has not asked for yet."""
        return self._given < len(self._taken)


Kind = TypeVar("Kind", bound=BufferedClient)
AnyClient = TypeVar("AnyClient", bound=Client)


def set_up(client: AnyClient, options: MqttBrokerOptions, client_id: str) -> AnyClient:
    """With what the broker asks of it."""
    if options.websockets:
        client.ws_set_options(path=options.websockets, headers=dict(options.websocket_headers))
    if options.user:
        client.username_pw_set(options.user, options.password_for(client_id))
    if context := options.tls_context():
        client.tls_set_context(context)
    return client


def new_client(
    kind: type[AnyClient], options: MqttBrokerOptions, client_id: str, *, clean: bool = True, **more: Any
) -> AnyClient:
    """`clean`: the broker keeps nothing of it behind the connection (3.1.1; in 5 CONNECT says so)."""
    five = options.protocol == "5"
    return kind(
        CallbackAPIVersion.VERSION2,
        client_id,
        clean_session=None if five else clean,
        protocol=MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311,
        transport="websockets" if options.websockets else "tcp",
        **more,
    )


class MqttConnection(Generic[Kind]):
    """One connection. `made` gives a new client for each try, `client` is the one connected, at `address`; `asks` goes
    with its CONNECT, in paho's words. `kept` says whether the broker knew the session, `properties` are those of the
    CONNACK (None: 3.1.1). `replies` has by packet id what the broker answers to who subscribes or unsubscribes.
    `of_takeover` makes the error for a connection that another client has ended, from where it was.

    Made when connected, after some tries if need be: a broker that restarts is back in seconds. Raises Unreachable when
    the broker does not answer in time, Refused when it does not let us in."""

    kept: bool
    properties: Any
    address: tuple[str, int]

    def __init__(
        self,
        options: MqttBrokerOptions,
        client_id: str,
        made: Callable[[], Kind],
        of_takeover: Callable[[str], WaybillError],
        asks: Mapping[str, Any] | None = None,
    ) -> None:
        self._options, self._client_id, self._made, self._asks = options, client_id, made, asks or {}
        self.where = f"{options.where}, client id {client_id}"
        self.replies: dict[int, Any] = {}
        self._connack: Any = None
        self._ended = ""
        self._taken_over, self._of_takeover = False, of_takeover
        self._connect()

    # ------------------------------------------------------------------------------------------------------ connecting

    def _connect(self) -> None:
        """To the first of its addresses that answers. Each has its share of the time that is left, so that one which is
        silent does not take it from the others, and at first a short one: a quantum is not long."""
        until, patience_s = time.monotonic() + self._options.connect_timeout_s, _PATIENCE_S
        errors: list[Retriable] = []
        try:
            while True:
                errors.clear()
                for address, more in self._tries:
                    share_s = (until - time.monotonic()) / (1 + more)
                    try:
                        return self._connect_once(address, min(share_s, patience_s) if more else share_s)
                    except Retriable as error:
                        errors.append(error)
                if time.monotonic() + _RETRY_S >= until:
                    raise _of_all(errors)
                patience_s *= 2
                time.sleep(_RETRY_S)
        finally:
            errors.clear()  # they hold this frame, and what paho has left open in theirs: that is closed with the last

    @property
    def _tries(self) -> Iterator[tuple[tuple[str, int], int]]:
        """Each address, and how many come behind it."""
        addresses = self._options.addresses
        yield from zip(addresses, reversed(range(len(addresses))), strict=True)

    def _connect_once(self, address: tuple[str, int], limit_s: float) -> None:
        self._connack, self._ended = None, ""
        made = self._made()  # a new one each time: paho keeps what went wrong
        self.client = client = set_up(made, self._options, self._client_id)
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_subscribe = client.on_unsubscribe = self._on_reply
        client.connect_timeout = limit_s = max(limit_s, 0.1)
        (host, port), self.address = address, address
        self.where = f"{host}:{port}, client id {self._client_id}"
        began = time.monotonic()
        try:
            # Nobody drives paho's own pings (`loop_misc`): their answers would be taken for answers to ours.
            client.connect(host, port, keepalive=self._options.keep_alive_s, **self._asks)
        except (OSError, ValueError) as error:
            raise self.unreachable(f"The broker cannot be reached: {error}") from None
        self._set(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # no packet waits for others to go with it
        left_s = limit_s - (time.monotonic() - began)
        self.until(lambda: self._connack is not None, "The broker does not answer CONNECT", min(left_s, ANSWER_S))
        if self._connack.is_failure:
            client.disconnect()
            raise _not_let_in(self._connack, self.where)

    def drop_unsent_bytes(self) -> None:
        """What a killed process has handed to the kernel does not arrive later (delivery rule 4)."""
        self._set(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
        self._set(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(ANSWER_S * 1000))

    def _set(self, level: int, option: int, value: int | bytes) -> None:
        """Of the socket, under a websocket too. Nothing when the connection has ended already."""
        line: Any = self.client.socket()
        if line is not None:
            getattr(line, "_socket", line).setsockopt(level, option, value)

    def _on_connect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._connack, self.kept = reason, bool(flags.session_present)
        self.properties = properties if self._options.protocol == "5" else None

    def _on_disconnect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._taken_over = self._taken_over or reason.value == TAKEN_OVER
        if reason.value == _PROTOCOL_ERROR and not flags.is_disconnect_packet_from_server:
            self.client.unreadable = self.client.unreadable or "It is no packet of MQTT"
        self._ended = self._ended or f"The connection has ended: {reason}"  # the first one is the reason

    def _on_reply(self, client: Client, data: Any, packet_id: int, reasons: Any, properties: Any) -> None:
        self.replies[packet_id] = reasons

    # --------------------------------------------------------------------------------------------------------- driving

    def fileno(self) -> int:
        """For `select`; below 0 when the connection has ended."""
        line = self.client.socket()
        return -1 if line is None else int(line.fileno())

    @property
    def open(self) -> bool:
        return self.fileno() >= 0

    def close(self) -> None:
        self.client.disconnect()

    def ask(self, ask: Callable[[], Any], what: str) -> int:
        """Sends something that has an answer; returns the packet id by which a callback will know it."""
        code, packet_id = ask()
        if code != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self.lost() or self.unreachable(f"{what} could not be sent")
        return int(packet_id)

    def until(self, condition: Callable[[], bool], complaint: str, limit_s: float = ANSWER_S) -> None:
        """Raises what has ended the connection, or Unreachable when nothing comes for too long."""
        until = time.monotonic() + min(limit_s, self._options.connect_timeout_s)
        while not condition():
            self.require_open()
            if time.monotonic() > until:
                raise self.unreachable(complaint)
            self._drive(0.05)

    def turn(self, limit_s: float) -> None:
        """Takes in what has come and sends what waits; waits at most `limit_s` when there is neither. Raises what has
        ended the connection."""
        self._drive(limit_s)
        self.require_open()

    def _drive(self, limit_s: float) -> None:
        if self.readable(limit_s, or_writable=self.client.want_write()):
            self.client.loop_read()
        if self.client.want_write():
            self.client.loop_write()

    def readable(self, limit_s: float, *, or_writable: bool = False) -> bool:
        """Whether something has come; waits at most `limit_s` for it, or until there is room to write."""
        line: Any = self.client.socket()
        if line is None:
            return False
        pending = getattr(line, "pending", None)  # of TLS and websockets: read from the socket, but not by us
        if self.client.holds_unread() or (pending is not None and pending() > 0):
            return True
        # Else a broker that joins small packets (Mosquitto does) holds each last one back for 40 ms.
        self._set(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return bool(select.select([line], [line] if or_writable else [], [], limit_s)[0])

    def require_open(self) -> None:
        """Raises what has ended the connection."""
        if (ended := self.lost()) is not None:
            raise ended

    def lost(self) -> WaybillError | None:
        """What has ended the connection; None while it stands."""
        if self.open:
            return None
        if self._taken_over:
            return self._of_takeover(self.where)
        if self.client.unreadable:
            return Unreadable(
                f"The broker sends a message that cannot be read: {self.client.unreadable}",
                where=self.where,
                next_step="Find out in the broker's log who publishes it, and have the broker drop it: until then "
                "nothing behind it comes",
            )
        return self.unreachable(self._ended or "The connection has ended")

    def unreachable(self, what: str) -> Unreachable:
        return Unreachable(what, where=self.where, next_step=self._options.advice)


def _of_all(errors: Sequence[Retriable]) -> Retriable:
    """Why none of the addresses answers."""
    if len(errors) == 1:
        return errors[0]
    kind = Unreachable if all(isinstance(one, Unreachable) for one in errors) else Retriable
    return kind(
        f"None of the addresses answers: {'; '.join(f'{one.what} ({one.where})' for one in errors)}",
        where=errors[0].where,
        next_step="Check the broker, and host, port, failover and tls",
    )


def _not_let_in(reason: Any, where: str) -> WaybillError:
    """For a CONNACK of failure."""
    kind = Refused if reason.value in _FOR_GOOD else Retriable
    return kind(
        f"The broker refuses the connection: {reason}",
        where=where,
        next_step="Check user, password, protocol, and what the broker allows this client id",
    )


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
    identifiers: bool = False
    """Whether a subscription may have one."""

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
            bool(getattr(properties, "SubscriptionIdentifierAvailable", 1)),
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
