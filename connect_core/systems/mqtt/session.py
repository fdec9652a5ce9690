"""One connection of a session, over paho-mqtt: packets come out in the order of arrival, acknowledgements go in bursts
with a PINGREQ behind them.

It is driven from one thread, without paho's own: `receive` reads what is there. `_Client` uses private names of paho
(`_packet_queue`, `_handle_pingresp`, `_sock_recv`, `_handle_publish`, `_in_packet`), so its version is pinned and tests
watch them: paho acknowledges with one write a packet, shows no answer to a ping, asks the socket for each byte of a
packet's head, and takes most of its time to find that a message has no properties.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.subscribeoptions import SubscribeOptions

from connect_core.errors import Refused, Unreachable
from connect_core.systems.mqtt import connecting
from connect_core.systems.mqtt.connecting import ANSWER_S, TAKEN_OVER, readable
from connect_core.systems.mqtt.grants import Grants
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.packets import NO_PROPERTIES, Packet, Properties, plain_publish

_PUBACK, _PINGREQ = 0x40, b"\xc0\x00"
_MOST_PACKETS = 1000
_READ_BYTES = 1 << 16
_ONLY_WHEN_NEW = 1
"""Retain handling: retained messages come when the subscription is new (MQTT 5, section 3.8.3.1)."""


class _Client(Client):
    """`answers` counts the PINGRESPs. What has come without properties goes into `plain`, which is the session's."""

    answers = 0
    plain: list[Packet]
    _taken, _given = b"", 0

    def _handle_publish(self) -> MQTTErrorCode:
        arrived = self._in_packet
        body = bytes(arrived["packet"])
        packet = plain_publish(arrived["command"], body, five=self.protocol == MQTTProtocolVersion.MQTTv5)
        if packet is None:
            return super()._handle_publish()
        self.plain.append(packet)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _sock_recv(self, bufsize: int) -> bytes:
        if not self.holds_unread():
            self._taken, self._given = super()._sock_recv(_READ_BYTES), 0
        begin, self._given = self._given, min(self._given + bufsize, len(self._taken))
        return self._taken[begin : self._given]

    def holds_unread(self) -> bool:
        """Whether something was taken from the socket that paho has not asked for yet."""
        return self._given < len(self._taken)

    def _handle_pingresp(self) -> MQTTErrorCode:
        code: MQTTErrorCode = super()._handle_pingresp()
        self.answers += 1
        return code

    def acknowledge(self, packet_ids: Sequence[int]) -> None:
        """PUBACKs of success (the same four bytes in both versions) and a PINGREQ, in one write."""
        acks = b"".join(bytes((_PUBACK, 2, *packet_id.to_bytes(2, "big"))) for packet_id in packet_ids)
        self._packet_queue(_PUBACK, acks + _PINGREQ, 0, 0)


class Session:
    """Connected when it is made. `kept` says whether the broker knew the session, `grants` what it gives. Raises
    Unreachable when the broker does not answer in time, Refused when it does not let us in."""

    def __init__(self, options: MqttSourceOptions, client_id: str, *, receive_maximum: int | None = None) -> None:
        self._options, self._client_id = options, client_id
        self._where = f"{options.where}, client id {client_id}"
        self._packets: list[Packet] = []
        self._asked: dict[int, Callable[[Any], None]] = {}
        self._acks: dict[int, Any] = {}
        self._connack: tuple[bool, Any] | None = None
        self._ended: str = ""
        self.taken_over = False
        self.grants = Grants()
        self._five = options.protocol == "5"
        self._receive_maximum = receive_maximum or options.receive_maximum
        self.kept = self._connected()

    # ------------------------------------------------------------------------------------------------------ connecting

    def _made(self, *, clean: bool = False) -> _Client:
        options = self._options
        client = _Client(
            CallbackAPIVersion.VERSION2,
            self._client_id,
            clean_session=None if self._five else clean,
            protocol=MQTTProtocolVersion.MQTTv5 if self._five else MQTTProtocolVersion.MQTTv311,
            transport="websockets" if options.websockets else "tcp",
            manual_ack=True,
        )
        connecting.set_up(client, options, self._client_id)
        client.plain = self._packets
        client.on_connect = self._on_connect
        client.on_message = self._on_message
        client.on_subscribe = self._on_answer
        client.on_unsubscribe = self._on_answer
        client.on_disconnect = self._on_disconnect
        return client

    def _connected(self, *, clean: bool = False) -> bool:
        return connecting.while_nobody_answers(self._options, lambda until: self._connect_once(until, clean))

    def _connect_once(self, until: float, clean: bool) -> bool:
        self._connack, self._ended = None, ""
        self._client = client = self._made(clean=clean)  # a new one each time: paho keeps what went wrong
        client.connect_timeout = max(until - time.monotonic(), 0.1)
        try:
            host, port = self._options.address
            # Without keep-alive: a quantum is short, and pings of paho's own would be taken for answers to ours.
            client.connect(host, port, keepalive=0, **self._connect_properties())
        except (OSError, ValueError) as error:
            raise self._unreachable(f"the broker cannot be reached: {error}") from None
        connecting.send_at_once(client)
        kept, reason = self._answer()
        if not reason.is_failure:
            return kept
        client.disconnect()
        raise connecting.not_let_in(reason, self._where)

    def _answer(self) -> tuple[bool, Any]:
        """What a CONNACK said."""
        self._until(lambda: self._connack is not None, "it does not answer a CONNECT")
        answer = self._connack
        return answer if answer is not None else (False, None)

    def _connect_properties(self) -> dict[str, Any]:
        if not self._five:
            return {}
        properties = PahoProperties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = self._options.session_expiry_s
        properties.ReceiveMaximum = self._receive_maximum
        return {"clean_start": False, "properties": properties}

    def subscribe(self, filters: Sequence[str], qos: int) -> None:
        """Of filters that the session has the retained messages do not come again (MQTT 5). Waits for the answer, as
        far as it is not behind messages that are to be received first (`answered`). Raises Refused when the broker
        does not grant one of them."""
        wanted: list[Any] = [
            (one, SubscribeOptions(qos=qos, retainHandling=_ONLY_WHEN_NEW) if self._five else qos) for one in filters
        ]
        self._ask(lambda: self._client.subscribe(wanted), "SUBSCRIBE", partial(self._require_granted, filters))

    def unsubscribe(self, filters: Sequence[str]) -> None:
        """Waits like `subscribe`."""
        self._ask(lambda: self._client.unsubscribe(list(filters)), "UNSUBSCRIBE", lambda reasons: None)

    def answered(self) -> bool:
        """Whether the broker has answered all that it was asked. A broker sends what it has for a session before it
        answers, which may be more than a quantum can take. Raises what `subscribe` does."""
        for packet_id in [*self._acks]:
            self._asked.pop(packet_id)(self._acks.pop(packet_id))
        return not self._asked

    def _ask(self, ask: Callable[[], Any], what: str, judge: Callable[[Any], None]) -> None:
        code, packet_id = ask()
        if code != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self._unreachable(self._ended or f"{what} could not be sent")
        self._asked[packet_id] = judge
        self._until(lambda: self.answered() or len(self._packets) >= _MOST_PACKETS, f"it does not answer a {what}")

    def _require_granted(self, filters: Sequence[str], reasons: Any) -> None:
        refused = [f"{one} ({reason})" for one, reason in zip(filters, reasons, strict=True) if reason.is_failure]
        if refused:
            raise Refused(
                f"the broker does not grant {', '.join(refused)}",
                where=self._where,
                next_step="Let this user subscribe to them, or leave them out",
            )

    # ------------------------------------------------------------------------------------------------------- messages

    def fileno(self) -> int:
        """For `select`; below 0 when the connection has ended."""
        line = self._client.socket()
        return -1 if line is None else int(line.fileno())

    @property
    def open(self) -> bool:
        return self.fileno() >= 0

    def receive(self) -> list[Packet]:
        """What has come by now, at most about a thousand packets; does not wait. What was received before the
        connection ended is given too."""
        self.read()
        packets = [*self._packets]
        self._packets.clear()
        return packets

    def read(self) -> None:
        """Takes in what has come by now; the messages among it wait for `receive`."""
        while self.open and len(self._packets) < _MOST_PACKETS and self._readable(0.0):
            self._client.loop_read()
        if self._client.want_write():
            self._client.loop_write()

    def acknowledge(self, packet_ids: Sequence[int]) -> bool:
        """One burst, and a PINGREQ behind it. False when the connection has ended: nobody knows what was sent then."""
        if self.open:
            self._client.acknowledge(packet_ids)
        return self.open

    @property
    def answers(self) -> int:
        """How many pings the broker has answered."""
        return self._client.answers

    def end_of(self) -> str:
        """Why the connection has ended."""
        return self._ended or "the connection has ended"

    def close(self) -> None:
        """Leaves the session to the broker."""
        self._client.disconnect()

    def give_up(self) -> None:
        """Ends the session at the broker too."""
        if self._five:
            properties = PahoProperties(PacketTypes.DISCONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = 0
            self._client.disconnect(properties=properties)
            return
        self._client.disconnect()
        self._connected(clean=True)  # the only way that 3.1.1 has
        self._client.disconnect()

    # ------------------------------------------------------------------------------------------------------- driving

    def _readable(self, limit_s: float) -> bool:
        return self._client.holds_unread() or readable(self._client, limit_s)

    def _until(self, condition: Any, complaint: str) -> None:
        """Raises Unreachable when the connection ends or nothing comes for too long."""
        until = time.monotonic() + min(ANSWER_S, self._options.connect_timeout_s)
        while not condition():
            if not self.open:
                raise self._unreachable(self.end_of())
            if time.monotonic() > until:
                raise self._unreachable(complaint)
            if self._readable(0.05):
                self._client.loop_read()
            if self._client.want_write():
                self._client.loop_write()

    def _unreachable(self, what: str) -> Unreachable:
        return connecting.unreachable(what, self._where)

    def _on_connect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._connack = (bool(flags.session_present), reason)
        self.grants = Grants.of(properties)

    def _on_answer(self, client: Client, data: Any, packet_id: int, reasons: Any, properties: Any) -> None:
        self._acks[packet_id] = reasons

    def _on_disconnect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.taken_over = self.taken_over or reason.value == TAKEN_OVER
        self._ended = self._ended or f"the connection has ended: {reason}"  # the first one is the reason

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        self._packets.append(
            Packet(
                bytes(message._topic),
                bytes(message.payload),
                message.qos,
                message.mid if message.qos else 0,
                bool(message.dup),
                bool(message.retain),
                _properties(message.properties),
            )
        )


def _properties(given: Any) -> Properties:
    """Of MQTT 5; `isEmpty` is what most messages have."""
    if given is None or given.isEmpty():
        return NO_PROPERTIES
    return Properties(
        getattr(given, "ContentType", None),
        getattr(given, "ResponseTopic", None),
        getattr(given, "CorrelationData", None),
        getattr(given, "PayloadFormatIndicator", None),
        getattr(given, "MessageExpiryInterval", None),
        tuple((str(name), str(value)) for name, value in getattr(given, "UserProperty", ())),
    )


def wait(sessions: Sequence[Session], limit_s: float) -> None:
    """Returns when something may be there to receive, at the latest after `limit_s`."""
    if any(one._packets or one._readable(0.0) for one in sessions):
        return
    lines = [one for one in sessions if one.open]
    if lines:
        select.select(lines, [], [], limit_s)
    else:
        time.sleep(limit_s)
