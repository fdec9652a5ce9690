"""Connectors of another product, taken over: their configurations, what they were doing, and where they were.

A connector is made stopped, its offsets are set, and only then it may run: killed in between, the next call goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from connect_core import systems
from connect_core.config import ConnectorDocument, revealed
from connect_core.config.flat import CLASS, class_named
from connect_core.config.resolving import resolve_source
from connect_core.errors import ConfigError, WaybillError
from connect_core.ledger import Connector
from connect_core.replication.driver.offset_checks import checked_position
from connect_core.sdk.flat import ReachedOffset
from connect_core.sdk.values import LIVE, Json
from connect_core.service import connectors, documents, offsets
from connect_core.service.flat_connectors import in_its_own_words
from connect_core.service.group_standing import told_of
from connect_core.service.opened import AtWork, Opened, Say, reading, surroundings, working
from connect_core.service.stored_connectors import StoredConnector
from connect_core.work import Side


def would_import(found: Sequence[StoredConnector], product: str) -> list[Json]:
    """Of each of these what `imported` would make of it: its `state`, its `offsets`, `notes` that a person should read,
    and the `problems` for which it is left out. Changes nothing."""
    there = connectors.by_name()
    return [_judged(one, there.get(one.name), _why(product)) for one in found]


def imported(found: Sequence[StoredConnector], product: str, say: Say) -> list[Json]:
    """Those that have problems are left out, with these; the others are there when it returns."""
    there = connectors.by_name()
    return [_imported(one, there.get(one.name), _why(product), say) for one in found]


def _why(product: str) -> str:
    return f"taken over from {product}"


def _imported(one: StoredConnector, before: Connector | None, why: str, say: Say) -> Json:
    told = _judged(one, before, why)
    if told["problems"] or told["done"]:
        return told
    documents.apply_one(one.name, dict(one.config), why=why, say=say, begins="stopped")
    with working() as opened:
        wanted = {place["partition"]: place["offset"] for place in told["offsets"]}
        if told["group"]:
            _keep_beginnings(opened, one.name)
        if wanted and not _is_placed(opened, one.name, why):
            offsets.set_offsets(opened, one.name, wanted, why=why, still=lambda connector: None, say=say)
    with reading() as opened:
        connectors.set_state(opened, one.name, told["state"])
    return told


def _keep_beginnings(opened: AtWork, name: str) -> None:
    """Where a source begins by a consumer group, in all of its partitions at once: when offsets of some are set, the
    others would be new ones, that begin at their first record and tell no gap."""
    source_side = opened.resolved(opened.ledger.connector(name)).source
    with ExitStack() as resources:
        source = systems.source(revealed(source_side), resources)
        source.available_offsets(dict.fromkeys(source.partitions([])))


def _judged(one: StoredConnector, before: Connector | None, why: str) -> Json:
    told: Json = {"connector": one.name, "class": one.config.get(CLASS, ""), "state": one.state, "offsets": []}
    told |= {"done": False, "group": "", "notes": list(one.notes), "problems": list(one.problems)}
    if before is not None and not _is_begun(before, why):
        if not _is_ours(before, why):
            told["problems"] = ["there is a connector of this name already"]
            return told
        return told | {"done": True, "problems": [], "notes": ["it was taken over before, and stays as it is"]}
    if told["problems"]:
        return told
    try:
        with in_its_own_words(one.name, dict(one.config)):
            checked = documents.check_one(one.name, dict(one.config))
    except ConfigError as error:
        told["problems"] = [f"{fault.path}: {fault.message}" for fault in error.faults] or [str(error)]
        return told
    try:
        told["offsets"] = [place._asdict() for place in _places(one, checked.document, told["notes"])]
        if not told["offsets"]:
            told |= told_of(checked.document, told["notes"])
    except ValueError as why_not:
        told["problems"] = [str(why_not)]
    except WaybillError as error:
        told["problems"] = [f"its offsets are not known: {error}"]
    return told


def _places(one: StoredConnector, document: ConnectorDocument, notes: list[str]) -> Iterator[ReachedOffset]:
    kind = class_named(one.config[CLASS])
    for partition, position in one.positions:
        if kind and (found := kind.reached(document.source.options, partition, position)):
            yield found
        else:
            notes.append(
                f"its position in {', '.join(map(str, partition.values()))} is left out: it reads that no more"
            )
    if one.offsets:
        home, settings = surroundings()
        yield from _checked_places(one, resolve_source(document, home, settings))


def _checked_places(one: StoredConnector, source_side: Side) -> Iterator[ReachedOffset]:
    """Raises ConfigError for one that the source does not have."""
    with ExitStack() as resources:
        source = systems.source(revealed(source_side), resources)
        there = {partition.key: partition for partition in source.partitions([])}
        for key, offset in one.offsets.items():
            if key not in there:
                raise ConfigError(f'There is no partition "{key}" here', where=f"connector {one.name}")
            checked_position(source, there[key], None, offset, f"connector {one.name}")
            yield ReachedOffset(key, offset)


def _is_ours(connector: Connector, why: str) -> bool:
    """Whether it was made by such an import."""
    with reading() as opened:
        return opened.ledger.revisions(connector.uid)[0].why == why


def _is_placed(opened: Opened, name: str, why: str) -> bool:
    """Whether its offsets were set already: what somebody moved since stays where it is."""
    connector = opened.ledger.connector(name)
    return any(step.why == why for step in opened.ledger.offset_history(connector.uid, None, 1_000, LIVE))


def _is_begun(connector: Connector, why: str) -> bool:
    """By an import that was killed: it is stopped, and nobody else has changed it."""
    with reading() as opened:
        revisions = opened.ledger.revisions(connector.uid)
        ran = bool(opened.ledger.runs(connector.uid, limit=1))
    return connector.target_state == "stopped" and not ran and [one.why for one in revisions] == [why]
