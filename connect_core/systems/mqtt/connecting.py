"""How a paho client gets to a broker, for sessions and for publishers; and the connection of one with a clean session:
what a CONNACK says becomes facts or a typed error.

Without a thread of paho's own, and without keep-alive: whoever connects drives the client, and for seconds.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from paho.mqtt.client import Client
from paho.mqtt.enums import MQTTErrorCode

from connect_core.errors import Fenced, Refused, Retriable, Unreachable, WaybillError
from connect_core.systems.mqtt.options import MqttBrokerOptions

Made = TypeVar("Made")

TAKEN_OVER = 0x8E
"""Reason of a DISCONNECT: another client has connected with this client id (MQTT 5, section 3.14.2.1)."""
ANSWER_S = 10.0
_FOR_GOOD = frozenset({0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C})
"""Reasons of a CONNACK that trying again does not change (MQTT 5, section 3.2.2.2; paho shows those of 3.1.1 so)."""
_RETRY_S = 0.2
_LINGER_OFF = struct.pack("ii", 1, 0)
_NO_LIMIT = 65_535


@dataclass(frozen=True)
class BrokerFacts:
    """What a broker says of itself in a CONNACK (MQTT 5, section 3.2.2.3). None: 3.1.1 says nothing."""

    max_qos: int = 2
    keeps_retained: bool | None = None
    receive_maximum: int | None = None
    max_packet_bytes: int | None = None

    @classmethod
    def of(cls, properties: Any) -> BrokerFacts:
        return cls(
            getattr(properties, "MaximumQoS", 2),
            bool(getattr(properties, "RetainAvailable", 1)),
            getattr(properties, "ReceiveMaximum", _NO_LIMIT),
            getattr(properties, "MaximumPacketSize", None),
        )

    def told(self) -> str:
        """For people."""
        if self.keeps_retained is None:
            return "MQTT 3.1.1 does not tell what it grants"
        size = f"{self.max_packet_bytes:,} bytes" if self.max_packet_bytes else "any size"
        retained = "keeps" if self.keeps_retained else "does not keep"
        return (
            f"it grants QoS {self.max_qos}, takes {self.receive_maximum:,} publishes at a time and packets of {size}, "
            f"and {retained} retained messages"
        )


class Connection:
    """One connection with a clean session. `made` gives a new client for each try; `client` is the one connected.
    Raises Unreachable when the broker does not answer in time, Refused when it does not let us in."""

    def __init__(self, options: MqttBrokerOptions, client_id: str, made: Callable[[], Client]) -> None:
        self._options, self._client_id, self._made = options, client_id, made
        self.where = f"{options.where}, client id {client_id}"
        self.facts = BrokerFacts()
        self._connack: Any = None
        self._ended = ""
        self._taken_over = False
        self._connect()

    # ------------------------------------------------------------------------------------------------------ connecting

    def _connect(self) -> None:
        while_nobody_answers(self._options, self._connect_once)

    def _connect_once(self, until: float) -> None:
        self._connack, self._ended = None, ""
        self.client = client = self._set_up(self._made())
        client.connect_timeout = max(until - time.monotonic(), 0.1)
        host, port = self._options.address
        try:
            client.connect(host, port, keepalive=0)  # a new client: its session is clean
        except (OSError, ValueError) as error:
            raise self.unreachable(f"the broker cannot be reached: {error}") from None
        send_at_once(client)
        self._drop_unsent_bytes()
        self.until(lambda: self._connack is not None, "it does not answer a CONNECT")
        reason = self._connack
        if reason.is_failure:
            client.disconnect()
            raise not_let_in(reason, self.where)

    def _set_up(self, client: Client) -> Client:
        set_up(client, self._options, self._client_id)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        return client

    def _drop_unsent_bytes(self) -> None:
        """What a killed process has handed to the kernel must not arrive later (delivery rule 4)."""
        line = tcp_line(self.client)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(ANSWER_S * 1000))

    def _on_connect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._connack = reason
        self.facts = BrokerFacts.of(properties) if self._options.protocol == "5" else BrokerFacts()

    def _on_disconnect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._taken_over = self._taken_over or reason.value == TAKEN_OVER
        self._ended = self._ended or f"the connection has ended: {reason}"  # the first one is the reason

    # --------------------------------------------------------------------------------------------------------- driving

    @property
    def open(self) -> bool:
        return self.client.socket() is not None

    def close(self) -> None:
        self.client.disconnect()

    def asked(self, ask: Callable[[], Any], answers: dict[int, Any], what: str) -> Any:
        """Sends something that has an answer, which a callback puts into `answers` by packet id, and waits for it."""
        code, packet_id = ask()
        if code != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self.lost() or self.unreachable(f"{what} could not be sent")
        self.until(lambda: packet_id in answers, f"it does not answer a {what}")
        return answers.pop(packet_id)

    def until(self, condition: Callable[[], bool], complaint: str, limit_s: float = ANSWER_S) -> None:
        """Raises what has ended the connection, or Unreachable when nothing comes for too long."""
        until = time.monotonic() + min(limit_s, self._options.connect_timeout_s)
        while not condition():
            if time.monotonic() > until:
                raise self.unreachable(complaint)
            self.turn(0.05)

    def turn(self, limit_s: float) -> None:
        """Takes in what has come and sends what waits; waits at most `limit_s` when there is neither. Raises what has
        ended the connection."""
        if readable(self.client, limit_s, or_writable=self.client.want_write()):
            self.client.loop_read()
        if self.client.want_write():
            self.client.loop_write()
        if (ended := self.lost()) is not None:
            raise ended

    def lost(self) -> WaybillError | None:
        """What has ended the connection; None while it stands."""
        if self.open:
            return None
        if self._taken_over:
            return Fenced(
                "another client has connected with this client id: a newer attempt goes on with the partition",
                where=self.where,
                next_step="Nothing is lost. If it comes again and again, find out who else uses this id",
            )
        return self.unreachable(self._ended or "the connection has ended")

    def unreachable(self, what: str) -> Unreachable:
        return unreachable(what, self.where)


def set_up(client: Client, options: MqttBrokerOptions, client_id: str) -> None:
    """What is the same for whoever connects."""
    if options.websockets:
        client.ws_set_options(path=options.websockets)
    if options.user:
        client.username_pw_set(options.user, options.password_for(client_id))
    if context := options.tls_context():
        client.tls_set_context(context)


def while_nobody_answers(options: MqttBrokerOptions, connect: Callable[[float], Made]) -> Made:
    """Tried again until `connect_timeout_s` is over: a broker that restarts is back in seconds. `connect` is told when
    that is, on the monotonic clock."""
    until = time.monotonic() + options.connect_timeout_s
    while True:
        try:
            return connect(until)
        except Retriable:
            if time.monotonic() + _RETRY_S >= until:
                raise
            time.sleep(_RETRY_S)


def tcp_line(client: Client) -> Any:
    """The socket of a client that is connected, under a websocket too."""
    line: Any = client.socket()
    return getattr(line, "_socket", line)


def send_at_once(client: Client) -> None:
    """No packet of ours waits for others to share a segment with."""
    tcp_line(client).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def readable(client: Client, limit_s: float, *, or_writable: bool = False) -> bool:
    """Whether something has come; waits at most `limit_s` for it, or until there is room to write."""
    line: Any = client.socket()
    if line is None:
        return False
    pending = getattr(line, "pending", None)  # of TLS and websockets: read from the socket, but not by us
    if pending is not None and pending() > 0:
        return True
    # Else a broker that joins small packets (Mosquitto does) holds each last one back for 40 ms.
    tcp_line(client).setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    return bool(select.select([line], [line] if or_writable else [], [], limit_s)[0])


def not_let_in(reason: Any, where: str) -> WaybillError:
    """For a CONNACK of failure."""
    kind = Refused if reason.value in _FOR_GOOD else Retriable
    return kind(
        f"the broker refuses the connection: {reason}",
        where=where,
        next_step="Look at user, password, protocol and what the broker lets this client id do",
    )


def unreachable(what: str, where: str) -> Unreachable:
    return Unreachable(what, where=where, next_step="Look at the broker, and at host, port and tls")
