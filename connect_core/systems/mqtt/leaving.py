"""The end of a session whose connector is deleted: unsubscribed, looked into, and ended at the broker."""

from __future__ import annotations

import time
from contextlib import suppress

from connect_core.errors import Refused
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.reception import Reception
from connect_core.systems.mqtt.session import Session, wait
from connect_core.systems.mqtt.standing import SessionStanding
from connect_core.systems.mqtt.unconfirmed import Unconfirmed

_SILENCE_S, _LONGEST_S = 0.5, 5.0
"""A session counts as looked into when nothing has come for so long, at the latest after that."""


def end_session(options: MqttSourceOptions, session: int, standing: SessionStanding, window: int) -> str:
    """What became of it, and of its witness with it. Nothing is moved: what it held is counted, as far as the broker
    sends it without acknowledgements."""
    ours = Session(options, options.client_id(session))
    held = _held(ours, options, session, standing, window) if ours.kept else None
    ours.give_up()
    Session(options, options.witness_id(session, standing.losses)).give_up()
    if held is None:
        return f"session-{session} was no longer at the broker" if standing.subscribed else ""
    return f"session-{session} is ended" + (
        f"; {held:,} messages that it held, or more, were not moved" if held else "; it held nothing that was not moved"
    )


def _held(ours: Session, options: MqttSourceOptions, session: int, standing: SessionStanding, window: int) -> int:
    """How many messages come that were not moved: those that were, and are sent again, are acknowledged."""
    shares = options.shares()
    if filters := standing.subscribed or (shares[session] if session < len(shares) else ()):
        with suppress(Refused):  # it ends with its subscriptions
            ours.unsubscribe(filters)
    reception = Reception(0, Unconfirmed(standing.entries, counts_up=options.counts_up(standing.counts_up)), window)
    held, silent_since = 0, time.monotonic()
    until = silent_since + _LONGEST_S
    while ours.open and time.monotonic() < min(until, silent_since + _SILENCE_S):
        wait([ours], 0.1)
        if packets := ours.receive():
            held, silent_since = held + len(reception.take(packets)), time.monotonic()
            ours.acknowledge(reception.due())
    return held
