"""Publishes over one connection, many at a time, and who has acknowledged or refused them; retained messages read back.

The only module of the sink that knows paho's client. It is driven from one thread. paho takes a refusal in a PUBREC for
an acceptance; of a code in a PUBACK that the protocol does not have there it breaks the connection (Mosquitto says 0x95
of a message that is too large). `_Client` looks at both with private names of it (`_handle_pubrec`,
`_handle_pubackcomp`, `_in_packet`, `_out_messages`, `_do_on_publish`), so its version is pinned, and tests with real
brokers watch them.

What a broker says against a publish or a subscription becomes an error of our tree (MQTT 5, sections 3.4.2.1, 3.5.2.1,
3.9.3). 0x10, that nobody has subscribed, is no refusal. None of this is said in 3.1.1: such a broker acknowledges what
it drops, or closes the connection.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.reasoncodes import ReasonCode

from connect_core.errors import DataError, Fenced, Refused, Retriable, WaybillError
from connect_core.systems.mqtt.connection import BufferedClient, Grants, MqttConnection, new_client
from connect_core.systems.mqtt.packets import NO_PROPERTIES, Properties
from connect_core.systems.mqtt.publications import Publication
from connect_core.systems.mqtt.sink_options import MqttSinkOptions

_MOST_BYTES = 4 * 1024 * 1024
"""So much is at most under way: what a small broker has to hold, and what is repeated when it is gone."""
_NOT_AUTHORISED = 0x87
_OF_ONE_RECORD = frozenset({0x90, 0x95, 0x99})
"""Codes that concern this message alone, and for good: its topic, its size, its payload's format."""
_OF_ONE_TOPIC = _OF_ONE_RECORD | {_NOT_AUTHORISED}
"""The same where a document says that a topic to which nobody lets us publish concerns its records alone."""
_FAILURE = 0x80


class RefusedPublish(Exception):
    """The record at `offset` was refused; `error` is for whoever runs the connector. `row` is the record where the
    refusal concerns it alone."""

    def __init__(self, offset: int, error: WaybillError, row: pa.RecordBatch | None) -> None:
        super().__init__(offset, error)
        self.offset, self.error, self.row = offset, error, row


_KINDS: dict[int, tuple[type[WaybillError], str]] = {
    0x83: (Retriable, "Look at the broker's log"),
    _NOT_AUTHORISED: (
        Refused,
        "Let this user publish and subscribe to it, or change the sink's topic. With on_refused: reject such records "
        "become dead letters, and the others are delivered",
    ),
    0x90: (Refused, "The broker does not take this topic: change the sink's topic, or filter such records out"),
    0x91: (Retriable, "Try again; if it stays, look at the broker's log"),
    0x95: (DataError, "Set max_packet_bytes to what the broker takes: larger records are rejected then"),
    0x97: (Retriable, "Wait, raise the broker's quota, or move less: limits.records_per_second"),
    0x99: (
        DataError,
        "The payload does not match its format indicator: correct the source, or filter such records out",
    ),
    0x9A: (Refused, "Let the broker keep retained messages, or set retain: false"),
    0x9B: (Refused, "Lower qos"),
}


class _UnderWay(NamedTuple):
    """A publish that is not acknowledged. `row` is the record that it was made of, None: of none."""

    offset: int
    topic: str
    size: int
    row: pa.RecordBatch | None = None


_NOTHING = _UnderWay(0, "", 0)


class _Client(BufferedClient):
    """A PUBACK or PUBREC that refuses ends the exchange, whatever its code (MQTT 5, section 4.3.3): no PUBREL follows
    it."""

    def _handle_pubrec(self) -> MQTTErrorCode:
        refused = self._refused()
        return super()._handle_pubrec() if refused is None else refused

    def _handle_pubackcomp(self, cmd: Literal["PUBACK", "PUBCOMP"]) -> MQTTErrorCode:
        refused = self._refused() if cmd == "PUBACK" else None
        return super()._handle_pubackcomp(cmd) if refused is None else refused

    def _refused(self) -> MQTTErrorCode | None:
        """None of a packet that refuses nothing which is under way: that is paho's."""
        packet = self._in_packet["packet"]
        packet_id = int.from_bytes(packet[:2], "big")
        if len(packet) <= 2 or packet[2] < _FAILURE or packet_id not in self._out_messages:
            return None
        return self._do_on_publish(packet_id, _reason(packet[2]), PahoProperties(PacketTypes.PUBACK))  # type: ignore[no-untyped-call]


def _reason(code: int) -> ReasonCode:
    """By the name that it has in any packet."""
    for kind in (PacketTypes.PUBACK, PacketTypes.DISCONNECT):
        with suppress(KeyError, AssertionError, ValueError):
            return ReasonCode(kind, identifier=code)
    return ReasonCode(PacketTypes.PUBACK, identifier=_FAILURE)


class Publisher:
    """Connected when it is made. Raises what `MqttConnection` raises."""

    def __init__(self, options: MqttSinkOptions, client_id: str) -> None:
        self._options, self._client_id = options, client_id
        self._five = options.protocol == "5"
        self._under_way: dict[int, _UnderWay] = {}
        self._bytes = 0
        self._refused: deque[tuple[_UnderWay, ReasonCode]] = deque()

        self._retained: dict[str, bytes] = {}
        self._connection = MqttConnection(options, client_id, self._made, _fenced)
        self._connection.drop_unsent_bytes()
        self.grants = Grants.of(self._connection.properties)
        self._window = min(options.in_flight, self.grants.receive_maximum or options.in_flight)

    def _made(self) -> _Client:
        client = new_client(_Client, self._options, self._client_id)
        client.max_inflight_messages_set(0)  # counted here
        client.max_queued_messages_set(0)
        client.on_publish = self._on_publish

        client.on_message = self._on_message
        return client

    @property
    def where(self) -> str:
        return self._connection.where

    @property
    def advice(self) -> str:
        """What to check when the broker does not answer."""
        return self._options.advice

    @property
    def most_bytes(self) -> int:
        """Of a packet."""
        return min(int(self._options.max_packet_bytes), self.grants.most_packet_bytes or self._options.max_packet_bytes)

    def close(self) -> None:
        self._connection.close()

    # ------------------------------------------------------------------------------------------------------- publishing

    def has_room(self, size: int, most: int) -> bool:
        """Whether one more of this size may be sent now, with at most so many under way."""
        if self._connection.client.want_write():
            return False
        return len(self._under_way) < min(self._window, most) and (
            not self._under_way or self._bytes + size <= _MOST_BYTES
        )

    @property
    def under_way(self) -> int:
        """How many publishes are not acknowledged; one more while something waits to be sent."""
        return len(self._under_way) + self._connection.client.want_write()

    def publish(self, one: Publication, offset: int, row: pa.RecordBatch | None = None) -> None:
        """Hands it over; `offset` is for messages, `row` for whoever is told that it was refused. Raises what has ended
        the connection."""
        qos = min(one.qos, self.grants.most_qos)
        told = self._connection.client.publish(
            one.topic, one.payload, qos, one.retain, properties=_packed(one.properties) if self._five else None
        )
        if told.rc not in (MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_AGAIN):
            raise self._connection.lost() or self._connection.unreachable("A PUBLISH could not be sent")
        if qos:
            self._under_way[told.mid] = _UnderWay(offset, one.topic, one.packet_bytes, row)
            self._bytes += one.packet_bytes

    def turn(self, limit_s: float) -> None:
        """Takes in acknowledgements; waits at most `limit_s` for one. Raises RefusedPublish for the next one that
        was refused, or what has ended the connection."""
        self._connection.turn(0.0 if self._refused else limit_s)
        self.require_accepted()

    @property
    def refused(self) -> list[int]:
        """The offsets of what was refused and has not been told yet: many answers may come at once."""
        return [one.offset for one, _ in self._refused]

    def require_accepted(self) -> None:
        """Raises RefusedPublish for the next publish that was refused, once."""
        if self._refused:
            one, reason = self._refused.popleft()
            alone = _OF_ONE_TOPIC if self._options.on_refused == "reject" else _OF_ONE_RECORD
            kind, advice = _KINDS.get(reason.value, (Retriable, "Look at the broker's log"))
            what = f"The broker refuses a message for topic {one.topic}: {reason}"
            error = kind(what, where=f"{self.where}, offset {one.offset}", next_step=advice)
            raise RefusedPublish(one.offset, error, one.row if reason.value in alone else None)

    def finish(self, limit_s: float) -> None:
        """Waits until nothing is under way, accepted or refused. Raises Unreachable when that takes longer, and what
        has ended the connection."""
        self._connection.until(lambda: self.under_way == 0, "The broker does not acknowledge", limit_s)

    def _on_publish(self, client: Client, data: Any, packet_id: int, reason: ReasonCode, properties: Any) -> None:
        """PUBACK, PUBCOMP, or a PUBREC that refuses; of QoS 0 that it was sent."""
        one = self._under_way.pop(packet_id, _NOTHING)
        self._bytes -= one.size
        if reason.is_failure:
            self._refused.append((one, reason))

    # --------------------------------------------------------------------------------------------------------- retained

    def retained(self, topic: str, limit_s: float) -> bytes | None:
        """The retained message of a topic; None when the broker, which has granted the subscription, sends none in so
        long."""
        return self._retained_of(topic, limit_s, one=True).get(topic)

    def all_retained(self, topic_filter: str, limit_s: float) -> Mapping[str, bytes]:
        """By topic, those that come in so long."""
        return self._retained_of(topic_filter, limit_s, one=False)

    def _retained_of(self, topic_filter: str, limit_s: float, *, one: bool) -> Mapping[str, bytes]:
        self._retained.clear()
        client = self._connection.client
        [reason] = self._asked(lambda: client.subscribe(topic_filter, 1), "SUBSCRIBE")
        if reason.is_failure:
            raise Refused(
                f"The broker does not grant a subscription to {topic_filter}: {reason}",
                where=self.where,
                next_step="Let this user publish and subscribe to it, or change progress_topic",
            )
        until = time.monotonic() + limit_s
        while time.monotonic() < until and not (one and self._retained):
            self._connection.turn(0.05)
        self._asked(lambda: client.unsubscribe(topic_filter), "UNSUBSCRIBE")
        return dict(self._retained)

    def _asked(self, ask: Callable[[], Any], what: str) -> Any:
        packet_id = self._connection.ask(ask, what)
        replies = self._connection.replies
        self._connection.until(lambda: packet_id in replies, f"The broker does not answer {what}")
        return replies.pop(packet_id)

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        if message.retain:
            self._retained[message.topic] = bytes(message.payload)


def _fenced(where: str) -> Fenced:
    return Fenced(
        "Another client has connected with this client id: a newer attempt has taken over the partition",
        where=where,
        next_step="Nothing is lost. If it comes again and again, find out who else uses this id",
    )


def _packed(given: Properties) -> PahoProperties | None:
    if given == NO_PROPERTIES:
        return None
    made = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    names = ("ContentType", "ResponseTopic", "CorrelationData", "PayloadFormatIndicator", "MessageExpiryInterval")
    for name, value in zip(names, given, strict=False):
        if value is not None:
            setattr(made, name, value)
    if given.user:
        made.UserProperty = list(given.user)
    return made
