"""What a broker says when it is asked before a connector runs: `check --probe`. It is left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

from connect_core.errors import ConfigError, Refused
from connect_core.systems.mqtt.facts import ask
from connect_core.systems.mqtt.filters import is_shared
from connect_core.systems.mqtt.looking import NOT_KEPT
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session

_OF_ITSELF = "; what the broker repeats by itself, as HiveMQ CE does when members come and go, is not counted"


def seen_by(options: MqttSourceOptions) -> Iterator[tuple[bool, str]]:
    """Whether it is as it should be, and what it is. Raises Unreachable, and Refused for who is not let in."""
    client_id = f"{options.client_id(0)}-{uuid4().hex[:6]}"
    if not options.keeps_its_word:
        yield from _of_rocketmq_mqtt(options, client_id)
        return
    Session(options, client_id).close()
    session = Session(options, client_id)
    try:
        yield True, f"the broker answers ({options.where}, MQTT {options.protocol})"
        lacking = [*session.grants.faults(options), *(() if session.kept else (NOT_KEPT,))]
        yield from ((False, f"the broker {one}") for one in lacking)
        if options.protocol == "5" and not lacking:
            yield True, f"it keeps sessions for session_expiry_s ({options.session_expiry_s:,} s)"
        yield _subscribed(session, options)
    finally:
        session.give_up()
    yield from _said(options)


def _of_rocketmq_mqtt(options: MqttSourceOptions, client_id: str) -> Iterator[tuple[bool, str]]:
    session = Session(options, client_id, lasting=False)
    try:
        yield True, f"the broker answers ({options.where}, MQTT {options.protocol})"
        yield _subscribed(session, options)
    finally:
        session.close()
    yield True, "at least once: RocketMQ-MQTT does not say what it has kept of a session, nor what it sends again"
    if any({*one} & {*"+#"} for one in options.filters):
        yield True, "filters with + and # bring what is published while they are configured at its name server"


def _subscribed(session: Session, options: MqttSourceOptions) -> tuple[bool, str]:
    """Not to shared ones: that would take messages from their members."""
    plain = [one for one in options.filters if not is_shared(one)]
    try:
        if plain:
            session.subscribe(plain, options.qos)
    except (Refused, ConfigError) as error:
        return False, error.what
    return True, f"it grants {', '.join(plain) or 'what it was not asked: shared subscriptions'}"


def _said(options: MqttSourceOptions) -> Iterator[tuple[bool, str]]:
    facts = ask(options)
    counts_up = options.counts_up(facts.counts_up)
    if options.qos == 0:
        yield True, "at most once: qos is 0"
    elif options.shared:
        yield True, f"at least once: shared subscriptions{'' if counts_up else _OF_ITSELF}"
    elif counts_up:
        yield (
            True,
            f"it assigns increasing packet ids{f' ({facts.version})' if facts.version else ''}: as exactly once as the "
            "sink",
        )
    else:
        yield True, "how it assigns packet ids is not known: at least once, possible duplicates are counted"
    if facts.dropped is None:
        yield True, "it does not say what it drops: whether its queues are too small cannot be known"
    else:
        yield True, f"it has dropped {facts.dropped:,} messages so far; max_queued_messages 0 is without a limit"
