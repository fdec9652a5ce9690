"""Connectors of RocketMQ Connect, taken over: their configurations, what they were doing, and where their sources were.

A connector is made stopped, its offsets are set, and only then it may run: killed in between, the next call goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from connect_core.config.flat import CLASS, class_named
from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.sdk.flat import ReachedOffset
from connect_core.sdk.values import Json
from connect_core.service import connectors, documents, offsets
from connect_core.service.flat_connectors import in_its_own_words
from connect_core.service.opened import Say, reading, working
from connect_core.service.peer_store import StoredConnector, connectors_in

_WHY = "taken over from RocketMQ Connect"


def would_import(folder: Path) -> list[Json]:
    """Of each connector in the folder what `imported` would make of it: its `state`, the `offsets` of its source, and
    the `problems` for which it is left out. Changes nothing."""
    there = connectors.by_name()
    return [_judged(one, there.get(one.name)) for one in connectors_in(folder)]


def imported(folder: Path, say: Say) -> list[Json]:
    """Those that have problems are left out, with these; the others are there when it returns."""
    there = connectors.by_name()
    return [_imported(one, there.get(one.name), say) for one in connectors_in(folder)]


def _imported(one: StoredConnector, before: Connector | None, say: Say) -> Json:
    told = _judged(one, before)
    if told["problems"]:
        return told
    documents.apply_one(one.name, dict(one.config), why=_WHY, say=say, begins="stopped")
    with working() as opened:
        wanted = {place["partition"]: place["offset"] for place in told["offsets"]}
        if wanted:
            offsets.set_offsets(opened, one.name, wanted, why=_WHY, still=lambda connector: None, say=say)
    with reading() as opened:
        connectors.set_state(opened, one.name, told["state"])
    return told


def _judged(one: StoredConnector, before: Connector | None) -> Json:
    told: Json = {"connector": one.name, "class": one.config.get(CLASS, ""), "offsets": [], "problems": []}
    told["state"] = "paused" if one.paused else "running"
    if before is not None and not _is_begun(before):
        told["problems"] = ["there is a connector of this name already"]
        return told
    try:
        with in_its_own_words(one.name, dict(one.config)):
            checked = documents.check_one(one.name, dict(one.config))
    except ConfigError as error:
        told["problems"] = [f"{fault.path}: {fault.message}" for fault in error.faults] or [str(error)]
        return told
    try:
        told["offsets"] = [place._asdict() for place in _reached(one, checked.document.source.options)]
    except ValueError as why:
        told["problems"] = [str(why)]
    return told


def _reached(one: StoredConnector, options: Json) -> Iterator[ReachedOffset]:
    kind = class_named(one.config[CLASS])
    if kind is not None:
        yield from (kind.reached(options, partition, position) for partition, position in one.positions)


def _is_begun(connector: Connector) -> bool:
    """By an import that was killed: it is stopped, and nobody else has changed it."""
    with reading() as opened:
        revisions = opened.ledger.revisions(connector.uid)
        ran = bool(opened.ledger.runs(connector.uid, limit=1))
    return connector.target_state == "stopped" and not ran and [one.why for one in revisions] == [_WHY]
