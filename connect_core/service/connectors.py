"""What connectors there are, what they do now, and what they shall do: pause, resume, stop.

Where Airflow runs the connectors its switch is what pauses them, and the ledger only keeps whether one is stopped;
without Airflow the ledger keeps all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from connect_core.config import ConnectorDocument, load_document, masked
from connect_core.config.schema_contract import schema_contract
from connect_core.errors import ConfigError, Unreachable
from connect_core.ledger import Connector
from connect_core.orchestration import control
from connect_core.orchestration.rest import Airflow
from connect_core.replication.driver.status import Schedules, Status, StatusFacts, Switch, facts, status_of
from connect_core.sdk.values import Json
from connect_core.service import guarantees, partition_states
from connect_core.service.kept_switches import kept_switches
from connect_core.service.opened import Opened, Say, ledger_exists, reading

Wish = Literal["running", "paused", "stopped"]


def by_name() -> dict[str, Connector]:
    """All of them; none where there is no ledger yet."""
    if not ledger_exists():
        return {}
    with reading() as opened:
        return {one.name: one for one in opened.ledger.connectors()}


def named(name: str) -> Connector | None:
    """None where there is none of this name, or no ledger yet."""
    if not ledger_exists():
        return None
    with reading() as opened:
        return opened.ledger.connector_named(name)


def listed(opened: Opened, say: Say) -> list[Json]:
    """All of them. `say` is told when nobody knows what is paused. One whose document this version does not take has a
    `problem`, and does not hide the others."""
    return outlined(opened, opened.ledger.connectors(), say)


def outlined(opened: Opened, there: Sequence[Connector], say: Say) -> list[Json]:
    """The same of some of them."""
    now = states(opened, there, say)
    return [_outline(connector, now[connector.name]) for connector in there]


def shown(opened: Opened, connector: Connector, say: Say, *, revisions: bool = False) -> Json:
    """One of them with its document (secrets masked), what it promises (`guarantees.promised`), the fields of payloads
    and the contract on them (`schema_contract`), the partitions that are not simply active, the files of bytes that no
    receipt covered, and with `revisions` all of these, the oldest first.
    """
    history = opened.ledger.revisions(connector.uid) if revisions else []
    now = states(opened, [connector], say)[connector.name]
    put_aside = partition_states.of_states(opened.ledger.partition_states(connector.uid))
    document = load_document(connector.document, f"connector {connector.name}")
    told = {**_now(connector, now), **_what_it_says(document)}
    told |= {"created_at": connector.created_at, "document": masked(connector.document)}
    told |= {"aside": put_aside, "set_aside": _set_aside(connector)}
    told |= {"guarantee": guarantees.promised(document), "schema": schema_contract(document)}
    if revisions:
        told["revisions"] = [
            {"revision": r.revision, "difference": r.difference, "who": r.who, "why": r.why, "applied_at": r.applied_at}
            for r in history
        ]
    return told


def states(opened: Opened, connectors: Sequence[Connector], say: Say) -> dict[str, Status]:
    """What each of these does now, by name."""
    return {name: status_of(one) for name, one in facts_of(opened, connectors, say).items()}


def facts_of(opened: Opened, connectors: Sequence[Connector], say: Say) -> dict[str, StatusFacts]:
    """What that is judged by. `say` is told when nobody knows what is paused."""
    return facts(opened.ledger, opened.settings, opened.home, _schedules(opened, say), connectors)


def _schedules(opened: Opened, say: Say) -> Schedules:
    """An Airflow that is away is told: nobody knows then what is paused."""
    kept = kept_switches()
    try:
        return (kept.schedules if kept else control.schedules)(opened.home, opened.settings)
    except Unreachable as error:
        say(f"Airflow's switches are unknown: {error}")
        return control.schedules_of({})


def set_state(opened: Opened, name: str, state: Wish) -> Json:
    """Raises Unreachable when there is an Airflow and it does not answer."""
    (told,) = set_states(opened, [name], state)
    return told


def set_states(opened: Opened, names: Sequence[str], state: Wish) -> list[Json]:
    """The ledger's part for all of them at once, or for none; then Airflow's switches, one after the other. Who is
    stopped in the ledger begins no run, whatever its switch says.

    Raises Unreachable when there is an Airflow and it does not answer.
    """
    with control.airflow_of(opened.home, opened.settings) as airflow:
        there = [opened.ledger.connector(name) for name in names]
        switches = control.switches(airflow) if airflow else None
        kept = state if airflow is None or state == "stopped" else "running"
        if changed := [one.uid for one in there if one.target_state != kept]:
            opened.ledger.set_target_states(changed, kept, who=opened.settings.user)
        if airflow:
            for one in there:
                _turn(opened, airflow, one, _wish(one, switches), state)
    return [{"name": one.name, "uid": one.uid, "before": _wish(one, switches), "state": state} for one in there]


def _turn(opened: Opened, airflow: Airflow, connector: Connector, before: str, state: Wish) -> None:
    control.set_paused(airflow, connector.name, state != "running")
    if turned := kept_switches():
        turned.forget()
    if before != state:
        opened.ledger.note_switch(connector.uid, before, state, who=opened.settings.user)
    if state == "stopped":
        control.end_runs(airflow, connector.name)


def _set_aside(connector: Connector) -> list[Json]:
    """Beside the files that it writes, as far as they are on this machine."""
    from connect_core.systems import SYSTEMS

    ((system, options),) = connector.document["sink"].items()
    plugin = SYSTEMS.get(system)  # of another package, it may be gone
    found = plugin.set_aside({**options, "tasks": connector.document.get("tasks", 1)}) if plugin else ()
    return [{"file": file, "bytes": count} for file, count in found]


def _wish(connector: Connector, switches: Mapping[str, Switch] | None) -> str:
    """What it shall do, in the words of the verbs: running, paused or stopped."""
    if switches is None or connector.target_state == "stopped":
        return connector.target_state
    switch = switches.get(connector.name, "unknown")
    return "running" if switch == "on" else switch


def _outline(connector: Connector, now: Status) -> Json:
    """Of a document that this version does not take, a `problem` in place of what it says."""
    told = _now(connector, now)
    try:
        return told | _what_it_says(load_document(connector.document, f"connector {connector.name}"))
    except ConfigError as error:
        return told | dict.fromkeys(_SAID) | {"problem": str(error)}


def _now(connector: Connector, now: Status) -> Json:
    return {
        "name": connector.name,
        "uid": connector.uid,
        "state": now.state,
        "since": now.since,
        "why": now.why,
        "next_step": now.next_step,
        "switch": now.switch,
        "revision": connector.revision,
    }


_SAID = ("source", "sink", "tasks", "schedule", "description")


def _what_it_says(document: ConnectorDocument) -> Json:
    said = (document.source.system, document.sink.system, document.tasks, document.schedule.words())
    return dict(zip(_SAID, (*said, document.description), strict=True))
