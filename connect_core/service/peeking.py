"""The newest messages of a topic, or what stands last in the target of a connector. Reads only."""

from __future__ import annotations

from connect_core.config import reveal
from connect_core.config.connections import find, folders_for
from connect_core.config.references import resolve_stack
from connect_core.config.resolving import stack_field
from connect_core.errors import ConfigError
from connect_core.sdk.plugin import Plugin
from connect_core.sdk.values import Json
from connect_core.service.opened import Opened, ledger_exists, reading, surroundings
from connect_core.systems import SYSTEMS
from connect_core.work import Side


def newest(name: str, last: int, *, is_topic: bool = False, connection: str = "main") -> Json:
    """The newest `last` in the target of the connector of that name; where there is none, or the name `is_topic`, those
    of that topic, which is where the `connection` leads. Raises ConfigError for a system that cannot be looked into."""
    sink = None if is_topic else _target_of(name)
    messages = _in_topic(_connected(connection), name, last) if sink is None else _in_target(sink, last)
    return {"name": name, "messages": messages}


def of_connector(opened: Opened, name: str, last: int) -> Json:
    """The newest `last` in the target of a connector. Raises ConfigError as `newest` does."""
    sink = opened.resolved(opened.ledger.connector(name)).sink
    return {"name": name, "messages": _in_target(sink, last)}


def _target_of(name: str) -> Side | None:
    """The sink of the connector of that name; None when there is no such connector."""
    if not ledger_exists():
        return None
    with reading() as opened:
        known = {connector.name: connector for connector in opened.ledger.connectors()}
        return opened.resolved(known[name]).sink if name in known else None


def _connected(connection: str) -> Side:
    """What a connection of this home says."""
    home, _ = surroundings()
    found = find(connection, folders_for(None, home))
    return Side(found.system, resolve_stack(found.options, lambda field: stack_field(home, field)))


def _in_target(side: Side, last: int) -> list[Json]:
    look = SYSTEMS[side.system].peek_target
    if look is None:
        raise _cannot_look(side, [one for one in SYSTEMS.values() if one.peek_target])
    return look(reveal(side.options), last)


def _in_topic(side: Side, topic: str, last: int) -> list[Json]:
    plugin = SYSTEMS.get(side.system)
    if plugin is None or plugin.peek_topic is None:
        raise _cannot_look(side, [one for one in SYSTEMS.values() if one.peek_topic])
    return plugin.peek_topic(reveal(side.options), topic, last)


def _cannot_look(side: Side, able: list[Plugin]) -> ConfigError:
    names = " and ".join(one.name for one in sorted(able, key=lambda one: one.title))
    return ConfigError(f"`waybill peek` cannot look into {side.system}", next_step=f"It looks into {names}")
