"""Whether the broker still has a session that it was given, seen by a run's driver before it plans.

Who connects to a session that is not there makes a new one, and a process that dies before it has told of that leaves
one behind that looks like the old one. So each session has a witness: a second one without subscriptions, made before
it. A broker that has lost its sessions has lost both, and the witness says so whoever has made the first one anew.

Where a document names several addresses they may be those of brokers that share nothing, and each may have kept a
session of the same name. A loss gives the witness another name, so that a broker of before has none.

Only the witness is looked at. Who connects to a session is handed what waits in it, and hands it back: what has QoS 0
would be gone, what has QoS 1 would come again as if it had been received, and of a shared subscription HiveMQ CE may
give it out twice. A worker that finds the session itself lost ends that and then its witness, and the next look tells.
"""

from __future__ import annotations

from connect_core.errors import ConfigError
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session
from connect_core.systems.mqtt.standing import SessionStanding

NOT_KEPT = "does not keep a session without subscriptions, by which a loss is noticed"
_INSTEAD = "Take a broker that does, such as Mosquitto or HiveMQ CE"


def is_lost(options: MqttSourceOptions, session: int, standing: SessionStanding) -> bool:
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
        raise ConfigError(f"The broker {NOT_KEPT}", where=options.where, next_step=_INSTEAD)
    return lost


def _witness(options: MqttSourceOptions, session: int, standing: SessionStanding) -> Session:
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
