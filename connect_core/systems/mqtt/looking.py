"""Whether the broker still has a session that it was given, seen by a run's driver before it plans.

Who connects to a session that is not there makes a new one, and a process that dies before it has told of that leaves
one behind that looks like the old one. So each session has a witness: a second one, without subscriptions, that only
this look connects to, and only when the first was there. A broker that has lost its sessions has lost both, and the
witness says so whoever has made the first one anew. A witness is made before its session is begun.

Who connects as a member of a shared subscription is given messages for the others, and HiveMQ CE may give twice what it
is handed back. So of such a session only the witness is looked at; a worker that finds the session itself lost ends its
witness, and the next look tells.
"""

from __future__ import annotations

from connect_core.systems.mqtt.filters import is_shared
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session
from connect_core.systems.mqtt.standing import SessionStanding


def is_lost(options: MqttSourceOptions, session: int, standing: SessionStanding) -> bool:
    """When it is not, it has a witness now. What comes over these connections is not acknowledged, and comes again.
    Raises ConfigError when the broker does not keep sessions for as long as it is asked to."""
    begun = bool(standing.subscribed)
    member = any(map(is_shared, standing.subscribed))
    if begun and not member and not _is_kept(options, options.client_id(session)):
        return True
    return not _is_kept(options, options.witness_id(session), make=not (begun and standing.witnessed))


def _is_kept(options: MqttSourceOptions, client_id: str, *, make: bool = False) -> bool:
    """One that was not there is there now. Unless it was to be made it is ended, or the next look would take it for the
    lost one."""
    session = Session(options, client_id, receive_maximum=1)
    is_kept = session.kept or make
    if is_kept:
        session.close()
    else:
        session.give_up()
    session.grants.require(options)
    return is_kept
