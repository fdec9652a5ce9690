"""What a broker says when it is asked, beside a connector's work, by a client that has nothing there: for runs and for
`check --probe`. It is left as it was."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple
from uuid import uuid4

from connect_core.errors import ConfigError, Refused, WaybillError
from connect_core.sdk.plugin import ProbeResult, Role
from connect_core.sdk.values import Json
from connect_core.systems.mqtt.connection import Grants
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.publisher import Publisher
from connect_core.systems.mqtt.session import SESSION_NOT_KEPT, Session, wait
from connect_core.systems.mqtt.session_state import DROPPED
from connect_core.systems.mqtt.sink_options import RECORD, MqttSinkOptions
from connect_core.systems.topic_filters import is_shared

RETAINED_NOT_KEPT = "The broker keeps no retained messages, and the sink keeps its progress as one"
_OF_ITSELF = "; what the broker repeats by itself, as HiveMQ CE does when members come and go, is not counted"
VERSION = "$SYS/broker/version"
_ANSWER_S = 0.5
_COUNTING = "mosquitto"
"""How the names of brokers begin that give out packet ids one after the other."""


def probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    """Raises Unreachable, and Refused for who is not let in."""
    if role == "source":
        yield from probe_source(MqttSourceOptions.model_validate(options))
        return
    given = MqttSinkOptions.model_validate(options)
    with closing(Publisher(given, looking_id(given))) as publisher:
        grants = publisher.grants
    yield ProbeResult(True, f"the broker {given.where} answers; {grants.told()}")
    yield from (ProbeResult(False, what) for what in missing(given, grants))


def looking_id(options: MqttSinkOptions) -> str:
    """The client id of somebody who only looks, and throws nobody out."""
    return options.named(f"waybill-{options.uid}-look-{uuid4().hex[:8]}")


def missing(options: MqttSinkOptions, seen: Grants) -> Iterator[str]:
    """What the sink needs and the broker does not grant, a sentence each."""
    needed = 1 if options.qos == RECORD else max(options.qos, 1)
    if seen.most_qos < needed:
        yield f"The broker grants at most QoS {seen.most_qos}, and the sink needs {needed}"
    if seen.keeps_retained is False:
        yield f"{RETAINED_NOT_KEPT}: the broker says that they are not available"


def probe_source(options: MqttSourceOptions) -> Iterator[ProbeResult]:
    client_id = f"{options.client_id(0)}-{uuid4().hex[:6]}"
    if not options.keeps_its_word:
        yield from _of_rocketmq_mqtt(options, client_id)
        return
    Session(options, client_id).close()
    session = Session(options, client_id)
    try:
        yield ProbeResult(True, f"the broker answers ({options.where}, MQTT {options.protocol})")
        lacking = [*session.grants.faults(options), *(() if session.kept else (SESSION_NOT_KEPT,))]
        yield from (ProbeResult(False, f"the broker {one}") for one in lacking)
        if options.protocol == "5" and not lacking:
            yield ProbeResult(True, f"it keeps sessions for session_expiry_s ({options.session_expiry_s:,} s)")
        yield _subscription(session, options)
    finally:
        session.give_up()
    yield from _facts(options)


def _of_rocketmq_mqtt(options: MqttSourceOptions, client_id: str) -> Iterator[ProbeResult]:
    session = Session(options, client_id, lasting=False)
    try:
        yield ProbeResult(True, f"the broker answers ({options.where}, MQTT {options.protocol})")
        yield _subscription(session, options)
    finally:
        session.close()
    yield ProbeResult(
        True, "at least once: RocketMQ-MQTT does not say what it has kept of a session, nor what it sends again"
    )
    if any({*one} & {*"+#"} for one in options.filters):
        yield ProbeResult(
            True, "filters with + and # bring what is published while they are configured at its name server"
        )


def _subscription(session: Session, options: MqttSourceOptions) -> ProbeResult:
    """Not to shared ones: that would take messages from their members."""
    plain = [one for one in options.filters if not is_shared(one)]
    try:
        if plain:
            session.subscribe(plain, options.qos)
    except (Refused, ConfigError) as error:
        return ProbeResult(False, error.what)
    return ProbeResult(True, f"it grants {', '.join(plain) or 'what it was not asked: shared subscriptions'}")


def _facts(options: MqttSourceOptions) -> Iterator[ProbeResult]:
    facts = broker_facts(options)
    counts_up = options.counts_up(facts.counts_up)
    if options.qos == 0:
        promised = "at most once: qos is 0"
    elif options.shared:
        promised = f"at least once: shared subscriptions{'' if counts_up else _OF_ITSELF}"
    elif counts_up:
        version = f" ({facts.version})" if facts.version else ""
        promised = f"it assigns increasing packet ids{version}: as exactly once as the sink"
    else:
        promised = "how it assigns packet ids is not known: at least once, possible duplicates are counted"
    yield ProbeResult(True, promised)
    dropped = "it does not say what it drops: whether its queues are too small cannot be known"
    if facts.dropped is not None:
        dropped = f"it has dropped {facts.dropped:,} messages so far; max_queued_messages 0 is without a limit"
    yield ProbeResult(True, dropped)


class BrokerFacts(NamedTuple):
    version: str = ""
    dropped: int | None = None

    @property
    def counts_up(self) -> bool:
        """Whether the broker is known to count packet ids up."""
        return self.version.startswith(_COUNTING)


def broker_facts(options: MqttSourceOptions) -> BrokerFacts:
    """Nothing of a broker that lets nobody see it, or says nothing before it answers a ping: what it has of these is
    retained, and sent with the subscription."""
    looking = options.model_copy(update={"protocol": "5", "session_expiry_s": 60})
    said: dict[bytes, bytes] = {}
    with suppress(WaybillError):
        session = Session(looking, f"{options.client_id(0)}-{uuid4().hex[:6]}")
        try:
            session.subscribe([VERSION, DROPPED], 0)
            session.acknowledge(())  # nothing, and a ping behind it
            until = time.monotonic() + _ANSWER_S
            while session.open and not session.answers and time.monotonic() < until:
                wait([session], until - time.monotonic())
                said |= {one.topic: one.payload for one in session.receive()}
        finally:
            session.give_up()
    dropped = said.get(DROPPED.encode(), b"")
    return BrokerFacts(
        said.get(VERSION.encode(), b"").decode(errors="replace"), int(dropped) if dropped.isdigit() else None
    )
