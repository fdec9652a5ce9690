"""What a broker has dropped since it was last asked, for whatever client. Pure."""

from __future__ import annotations

from dataclasses import replace

from connect_core.systems.mqtt.standing import SessionStanding

TOPIC = "$SYS/broker/publish/messages/dropped"
"""Where a broker that counts says how many messages it has dropped since it was started: Mosquitto does."""


def noticed(standing: SessionStanding, dropped: int | None) -> tuple[SessionStanding, str]:
    """How the session stands now, and what is to be told: nothing when nobody has counted, or had before, or the
    session was not there yet. A count that went back began anew with the broker."""
    before = standing.dropped
    if dropped is None:
        return standing, ""
    more = dropped - before if before is not None and dropped >= before else dropped
    now = replace(standing, dropped=dropped)
    if before is None or not more or not standing.subscribed:
        return now, ""
    return now, f"the broker has dropped {more:,} messages of some client, perhaps of this session ({TOPIC})"
