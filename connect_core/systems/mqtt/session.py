"""A session at the broker: one connection of it, over paho-mqtt; whether the broker still has it; and its end.

Packets come out in the order of arrival, acknowledgements go in bursts with a PINGREQ behind them. A session is driven
from one thread, without paho's own: `receive` reads what is there. `_Client` uses private names of paho
(`_packet_queue`, `_handle_pingresp`, `_handle_publish`, `_in_packet`), so its version is pinned and tests watch them:
paho acknowledges with one write a packet, shows no answer to a ping, and refuses texts that MQTT allows (U+FEFF), and
its connection with them.

Who connects to a session that is not there makes a new one, and a process that dies before it has told of that leaves
one behind that looks like the old one. So each session has a witness: a second one without subscriptions, made before
it. A broker that has lost its sessions has lost both, and the witness says so whoever has made the first one anew.

Where a document names several addresses they may be those of brokers that share nothing, and each may have kept a
session of the same name. A loss gives the witness another name, so that a broker of before has none.

A driver looks at the witness alone. Who connects to a session is handed what waits in it, and hands it back: what has
QoS 0 would be gone, what has QoS 1 would come again as if it had been received, and of a shared subscription HiveMQ CE
may give it out twice. A worker that finds the session itself lost ends that and then its witness, and the next look
tells.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from paho.mqtt.enums import MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.subscribeoptions import SubscribeOptions

from connect_core.errors import ConfigError, Refused, WaybillError
from connect_core.systems.mqtt.connection import (
    ANSWER_S,
    GRANT_ADVICE,
    BufferedClient,
    Grants,
    MqttConnection,
    new_client,
)
from connect_core.systems.mqtt.copies import identifier_of, with_identifier
from connect_core.systems.mqtt.deduplication import Deduplication
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.packets import Packet, read_publish
from connect_core.systems.mqtt.session_state import Reception, SessionState

_PUBACK, _PINGREQ = 0x40, b"\xc0\x00"
_MOST_PACKETS, _MOST_BYTES = 1000, 16 << 20
"""Of those that wait for `receive`; a last one may go beyond."""
_READ_BYTES = 1 << 16
_ANSWER_OR_NONE_S = 4.0
"""RocketMQ-MQTT answers within a second or two, or, to what it does not know, never: a lane has to live to say so."""
_ONLY_WHEN_NEW = 1
"""Retain handling: retained messages come when the subscription is new (MQTT 5, section 3.8.3.1)."""
SESSION_NOT_KEPT = "does not keep a session without subscriptions, by which a loss is noticed"
_INSTEAD = "Take a broker that does, such as Mosquitto or HiveMQ CE"
_SILENCE_S, _LONGEST_S = 0.5, 5.0
"""A session counts as looked into when nothing has come for so long, at the latest after that."""


class _Client(BufferedClient):
    """`answers` counts the PINGRESPs. Each message goes to `arrived`."""

    answers = 0
    arrived: Callable[[Packet], None]

    def _handle_publish(self) -> MQTTErrorCode:
        command, body = self._in_packet["command"], bytes(self._in_packet["packet"])
        try:
            packet = read_publish(command, body, five=self.protocol == MQTTProtocolVersion.MQTTv5)
        except ValueError as error:
            self.unreadable = str(error)
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        self.arrived(packet)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _handle_pingresp(self) -> MQTTErrorCode:
        code: MQTTErrorCode = super()._handle_pingresp()
        self.answers += 1
        return code

    def acknowledge(self, packet_ids: Sequence[int]) -> None:
        """PUBACKs of success (the same four bytes in both versions) and a PINGREQ, in one write."""
        acks = b"".join(bytes((_PUBACK, 2, *packet_id.to_bytes(2, "big"))) for packet_id in packet_ids)
        self._packet_queue(_PUBACK, acks + _PINGREQ, 0, 0)


class Session:
    """Connected when it is made; one that is not `lasting` ends with the connection (3.1.1). `kept` says whether the
    broker knew the session, `grants` what it gives. Raises Unreachable when the broker does not answer in time, Refused
    when it does not let us in."""

    def __init__(
        self,
        options: MqttSourceOptions,
        client_id: str,
        *,
        receive_maximum: int | None = None,
        lasting: bool = True,
    ) -> None:
        self._options, self._client_id = options, client_id
        self._packets: list[Packet] = []
        self._bytes = 0
        """Of their payloads."""
        self._asked: dict[int, Callable[[Any], None]] = {}

        self._five = options.protocol == "5"
        self._receive_maximum = receive_maximum or options.receive_maximum
        self._connection = self._connected(clean=not lasting)
        self.kept, self.grants = self._connection.kept, Grants.of(self._connection.properties)
        if options.keep_alive_s:
            self.grants = self.grants._replace(keep_alive_s=options.keep_alive_s)

    # ------------------------------------------------------------------------------------------------------ connecting

    @property
    def there(self) -> MqttSourceOptions:
        """Options for whoever wants to connect to the same address, and to no other."""
        host, port = self._connection.address
        return self._options.model_copy(update={"host": host, "port": port, "failover": ()})

    def _connected(self, *, clean: bool = False) -> MqttConnection[_Client]:
        made, asks = partial(self._made, clean=clean), self._connect_properties()
        return MqttConnection(self._options, self._client_id, made, _of_a_stranger, asks)

    def _made(self, *, clean: bool) -> _Client:
        client = new_client(_Client, self._options, self._client_id, clean=clean, manual_ack=True)
        client.arrived = self._arrived
        return client

    def _connect_properties(self) -> dict[str, Any]:
        if not self._five:
            return {}
        expiry_s, most = self._options.session_expiry_s, self._receive_maximum
        asked = _properties(PacketTypes.CONNECT, SessionExpiryInterval=expiry_s, ReceiveMaximum=most)
        return {"clean_start": False, "properties": asked}

    def subscribe(self, filters: Sequence[str], qos: int) -> None:
        """Of filters that the session has the retained messages do not come again (MQTT 5). Waits for the answer, as
        far as it is not behind messages that are to be received first (`answered`). Raises Refused when the broker
        does not grant one of them, and ConfigError when it grants one of them with a lower QoS."""
        identified = with_identifier(filters) if self.grants.identifiers else []
        others = [one for one in filters if one not in identified]
        for together in (*([one] for one in identified), *([others] if others else [])):
            identifier = identifier_of(together[0]) if together[0] in identified else None
            judge = partial(self._require_granted, together, qos)
            self._ask(partial(self._subscribe, together, qos, identifier), "SUBSCRIBE", judge)

    def _subscribe(self, filters: Sequence[str], qos: int, identifier: int | None) -> Any:
        """In one packet, which has one identifier (MQTT 5, section 3.8.2.1.2)."""
        asked: Any = qos
        if self._five:
            asked = SubscribeOptions(qos=qos, retainAsPublished=True, retainHandling=_ONLY_WHEN_NEW)
        properties = _properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=identifier) if identifier else None
        return self._connection.client.subscribe([(one, asked) for one in filters], properties=properties)

    def unsubscribe(self, filters: Sequence[str], *, waits: bool = True) -> None:
        """Waits like `subscribe`, or not at all. The answer raises Refused when the broker does not do it (MQTT 5)."""
        client, judge = self._connection.client, partial(_require_left, self._connection.where, filters)
        self._ask(lambda: client.unsubscribe(list(filters)), "UNSUBSCRIBE", judge, waits=waits)

    def answered(self) -> bool:
        """Whether the broker has answered all that it was asked. A broker sends what it has for a session before it
        answers, which may be more than a quantum can take. Raises what `subscribe` does."""
        replies = self._connection.replies
        for packet_id in [*replies]:
            self._asked.pop(packet_id)(replies.pop(packet_id))
        return not self._asked

    def _ask(self, ask: Callable[[], Any], what: str, judge: Callable[[Any], None], *, waits: bool = True) -> None:
        def enough() -> bool:
            backlog = self.kept and bool(self._packets)  # which the answer may be far behind
            return self.answered() or backlog or not self._has_room()

        self._asked[self._connection.ask(ask, what)] = judge
        if waits:
            limit_s = ANSWER_S if self._options.keeps_its_word else _ANSWER_OR_NONE_S
            self._connection.until(enough, f"The broker does not answer {what}", limit_s)

    def _require_granted(self, filters: Sequence[str], qos: int, reasons: Any) -> None:
        """The answer has for each filter the QoS granted, or why there is none (MQTT 5, 3.9.3; 3.1.1, 3.9.3)."""
        answers = [*zip(filters, reasons, strict=True)]
        if refused := [f"{one} ({reason})" for one, reason in answers if reason.is_failure]:
            raise Refused(
                f"The broker does not grant {', '.join(refused)}",
                where=self._connection.where,
                next_step="Let this user subscribe to them, or leave them out",
            )
        if lower := [f"{one} with QoS {reason.value}" for one, reason in answers if reason.value < qos]:
            raise ConfigError(
                f"The broker grants {', '.join(lower)}, and qos is {qos}",
                where=self._connection.where,
                next_step=GRANT_ADVICE,
            )

    # ------------------------------------------------------------------------------------------------------- messages

    def fileno(self) -> int:
        """For `select`; below 0 when the connection has ended."""
        return self._connection.fileno()

    @property
    def open(self) -> bool:
        return self._connection.open

    def lost(self) -> WaybillError | None:
        """What has ended the connection: Refused when somebody else has the session now, or Unreachable. None while it
        stands."""
        return self._connection.lost()

    def has_some(self) -> bool:
        """Whether something is there to receive."""
        return bool(self._packets) or self._connection.readable(0.0)

    def receive(self) -> list[Packet]:
        """What has come by now, at most about a thousand packets or 16 MiB; does not wait. What was received before the
        connection ended is given too."""
        self.read()
        packets, self._packets, self._bytes = self._packets, [], 0
        return packets

    def read(self) -> None:
        """Takes in what has come by now; the messages among it wait for `receive`."""
        client = self._connection.client
        while self.open and self._has_room() and self._connection.readable(0.0):
            client.loop_read()
        if client.want_write():
            client.loop_write()

    def listen(self, limit_s: float) -> bool:
        """`read`, once something has come, or at the latest after `limit_s`. False when there is no room for more."""
        if not self._has_room():
            return False
        self._connection.readable(limit_s)
        self.read()
        return True

    def acknowledge(self, packet_ids: Sequence[int]) -> bool:
        """One burst, and a PINGREQ behind it. False when the connection has ended: nobody knows what was sent then."""
        if self.open:
            self._connection.client.acknowledge(packet_ids)
        return self.open

    @property
    def answers(self) -> int:
        """How many pings the broker has answered."""
        return self._connection.client.answers

    def close(self) -> None:
        """Leaves the session to the broker."""
        self._connection.close()

    def give_up(self) -> None:
        """Ends the session at the broker too."""
        if self._five:
            self._connection.client.disconnect(properties=_properties(PacketTypes.DISCONNECT, SessionExpiryInterval=0))
            return
        self._connection.close()
        self._connection = self._connected(clean=True)  # the only way that 3.1.1 has
        self._connection.close()

    def _has_room(self) -> bool:
        return len(self._packets) < _MOST_PACKETS and self._bytes < _MOST_BYTES

    def _arrived(self, packet: Packet) -> None:
        self._packets.append(packet)
        self._bytes += len(packet.payload)


def _properties(kind: int, **values: int) -> PahoProperties:
    """Of a packet of this kind, as paho names them."""
    made = PahoProperties(kind)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(made, name, value)
    return made


def _require_left(where: str, filters: Sequence[str], reasons: Sequence[Any]) -> None:
    """The answer has a reason for each filter (MQTT 5, 3.11.3); in 3.1.1 it has none."""
    if refused := [f"{one} ({reason})" for one, reason in zip(filters, reasons, strict=False) if reason.is_failure]:
        raise Refused(
            f"The broker does not unsubscribe from {', '.join(refused)}: what is published there still comes",
            where=where,
            next_step="Let this user unsubscribe from them, or name them in the document again",
        )


def _of_a_stranger(where: str) -> Refused:
    return Refused(
        "Another client has connected with this session's client id",
        where=where,
        next_step="Find out who it is: two clients that take turns each get a part of the messages. Nothing is lost",
    )


def wait(sessions: Sequence[Session], limit_s: float) -> None:
    """Returns when something may be there to receive, at the latest after `limit_s`."""
    if any(one.has_some() for one in sessions):
        return
    lines = [one for one in sessions if one.open]
    if lines:
        select.select(lines, [], [], limit_s)
    else:
        time.sleep(limit_s)


def is_lost(options: MqttSourceOptions, session: int, standing: SessionState) -> bool:
    """When it is not, it has a witness now. Raises ConfigError when the broker does not keep sessions for as long as it
    is asked to, or none without subscriptions: RabbitMQ makes a session with the first one."""
    witness = _witness(options, session, standing)
    lost = bool(standing.subscribed) and standing.witnessed and not witness.kept
    if not witness.kept:
        witness.close()
        witness.grants.require(options)
        witness = _witness(options, session, standing)  # it was made just now: is it kept?
    if lost:
        witness.give_up()  # it would pass for the old one
    else:
        witness.close()
    witness.grants.require(options)
    if not witness.kept:
        raise ConfigError(f"The broker {SESSION_NOT_KEPT}", where=options.where, next_step=_INSTEAD)
    return lost


def _witness(options: MqttSourceOptions, session: int, standing: SessionState) -> Session:
    return Session(options, options.witness_id(session, standing.losses), receive_maximum=1)


def is_of_another_broker(session: Session, witness_id: str) -> bool:
    """Whether a session that was kept is one of before: its broker answers at another address than the one that was
    looked at, and has no witness of the session that is gone on with."""
    witness = Session(session.there, witness_id, receive_maximum=1)
    if witness.kept:
        witness.close()
    else:
        witness.give_up()  # it was made just now
    return not witness.kept


def end_session(options: MqttSourceOptions, session: int, standing: SessionState) -> str:
    """What became of it, and of its witness with it. Nothing is moved: what it held is counted, as far as the broker
    sends it without acknowledgements."""
    ours = Session(options, options.client_id(session))
    held = _held(ours, options, session, standing) if ours.kept else None
    ours.give_up()
    Session(options, options.witness_id(session, standing.losses)).give_up()
    if held is None:
        return f"session-{session} was no longer at the broker" if standing.subscribed else ""
    return f"session-{session} is ended" + (
        f"; {held:,} messages that it held, or more, were not moved" if held else "; it held nothing that was not moved"
    )


def _held(ours: Session, options: MqttSourceOptions, session: int, standing: SessionState) -> int:
    """How many messages come that were not moved: those that were, and are sent again, are acknowledged."""
    shares = options.shares()
    if filters := standing.subscribed or (shares[session] if session < len(shares) else ()):
        with suppress(Refused):  # it ends with its subscriptions
            ours.unsubscribe(filters)
    reception = Reception(0, Deduplication(standing.entries, counts_up=options.counts_up(standing.counts_up)))
    held, silent_since = 0, time.monotonic()
    until = silent_since + _LONGEST_S
    while ours.open and time.monotonic() < min(until, silent_since + _SILENCE_S):
        wait([ours], 0.1)
        if packets := ours.receive():
            held, silent_since = held + len(reception.take(packets)), time.monotonic()
            ours.acknowledge(reception.due())
    return held
