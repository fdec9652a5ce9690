"""Connectors as Kafka Connect has them: a stopped one is there, and a configuration is stored as it was sent.

They are those of `flat_connectors`, by the same functions. Offsets are those of `waybill offsets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connect_core.config.flat import CLASS, class_named, hub, keys_of
from connect_core.config.flat_converters import is_unknown_option
from connect_core.config.references import MASK
from connect_core.errors import ConfigError, Fault, Retriable, Unreachable
from connect_core.ledger import Connector
from connect_core.orchestration import control
from connect_core.sdk.values import Json
from connect_core.service import callers, connectors, deletions, documents, flat_connectors, offsets
from connect_core.service.connectors import Wish
from connect_core.service.flat_connectors import FlatConnector
from connect_core.service.opened import Say, ledger_exists, reading, working
from connect_core.service.visible import NotFound, may_write, named, visible, visible_one

_WHY = "by the routes of Kafka Connect"
FAILING = ("waiting", "failed", "blocked")
"""States of a connector whose last run failed."""
_ATTEMPTS = 10
"""A change of single keys is made again from what is there, where somebody else was faster."""


class AlreadyThere(ConfigError):
    """A connector of this name is there."""


def listed(say: Say) -> list[FlatConnector]:
    """All of them, by name."""
    return flat_connectors.seen(list(visible().values()), say)


def names() -> list[str]:
    return list(visible())


def shown(name: str, say: Say) -> FlatConnector:
    """Raises NotFound."""
    [found] = flat_connectors.seen([named(name)], say)
    return found


def create(name: str, given: Json, state: Wish, say: Say) -> None:
    """Raises AlreadyThere where one of this name is there, ConfigError with every fault, and NotAllowed."""
    may_write(name)
    if visible_one(name):
        raise AlreadyThere(f"Connector {name} already exists")
    _stored(name, given, None, say, begins="running" if state == "running" else "stopped", made_from=0)
    if state == "paused":
        set_state(name, "paused")


def put(name: str, given: Json, say: Say) -> bool:
    """The whole configuration of a connector that is there, or is created by it: True. It stays paused or stopped.
    Raises NotAllowed."""
    may_write(name)
    change: str = _stored(name, given, visible_one(name), say)["change"]
    return change == "created"


def patch(name: str, changes: Json, say: Say) -> None:
    """Changes single keys, and takes out those that have no value. Raises NotFound, ConfigError with every fault,
    NotAllowed, and Retriable where others change the connector again and again."""
    callers.require("admin", name)
    for left in reversed(range(_ATTEMPTS)):
        before = named(name)
        merged = {**(before.flat or {}), **changes}
        given = {key: value for key, value in merged.items() if value is not None}
        try:
            _stored(name, given, before, say, made_from=before.revision)
            return
        except Retriable:
            if not left:
                raise


def _stored(
    name: str, given: Json, before: Connector | None, say: Say, *, begins: str = "running", made_from: int | None = None
) -> Json:
    if (said := str(given.get("name") or name)) != name:
        raise ConfigError(f"Connector name configuration ({said}) doesn't match connector name in the URL ({name})")
    _refuse_masks(given)
    flat = flat_connectors.storable(name, given, before)
    with flat_connectors.in_its_own_words(name, flat):
        return documents.apply_one(name, flat, why=_WHY, say=say, begins=begins, made_from=made_from)


def _refuse_masks(given: Json) -> None:
    """A configuration that was shown is sent again: its masks are no values."""
    if faults := tuple(
        Fault(
            key, f"{MASK} stands for a secret that is not shown: write a reference, ${{env:NAME}} or ${{file:PATH#KEY}}"
        )
        for key, value in given.items()
        if MASK in str(value) and not is_unknown_option(key)
    ):
        raise ConfigError("A mask is no value", faults=faults)


def set_state(name: str, state: Wish) -> None:
    """Raises NotFound and NotAllowed."""
    callers.require("operator", name)
    named(name)
    with reading() as opened:
        connectors.set_state(opened, name, state)


def restart(name: str, say: Say) -> bool:
    """Has the scheduler begin a run now, where the last one failed; whether one begins. What is at work goes on, and
    what is idle begins each run anew by itself. Raises NotFound, NotAllowed, and Unreachable where nothing begins
    runs."""
    callers.require("operator", name)
    if shown(name, say).state not in FAILING:
        return False
    with reading() as opened, control.airflow_of(opened.home, opened.settings) as airflow:
        if airflow is None:
            raise Unreachable(
                "No scheduler begins runs here", where=f"connector {name}", next_step=f"Run it: waybill run {name}"
            )
        control.begin_run(airflow, name)
    return True


def delete(name: str, say: Say) -> None:
    """Raises NotFound and NotAllowed; and, where a broker cannot be told, the reason: then it stays, stopped."""
    callers.require("admin", name)
    if visible_one(name) is None and not deletions.is_left(name):
        named(name)
    with working() as opened:
        deletions.delete(opened, name, force=False, agree=lambda uid: None, say=say)


def topics(name: str) -> list[str]:
    """Those of the hub that its document names; none for a connector that is not there."""
    found = visible_one(name)
    ends = [found.document[role].get(hub(), {}) for role in ("source", "sink")] if found else []
    named_there = [one for end in ends for one in (end.get("topic"), end.get("topics")) if one]
    return sorted({one for each in named_there for one in ([each] if isinstance(each, str) else each)})


def forget_topics(name: str) -> None:
    """Nothing is counted that could be forgotten: they are those of the document. Raises NotFound and NotAllowed."""
    callers.require("operator", name)
    named(name)


def faults_of(kind: str, given: Json) -> Sequence[Fault]:
    """What creating a configuration of this class would refuse. Raises NotFound for a class that is not known, and
    ConfigError for a configuration of another one; NotAllowed where the caller may not create it."""
    name = str(given.get("name") or "connector")
    may_write(name)
    said = str(given.get(CLASS) or kind)
    if class_of(said).name != class_of(kind).name:
        raise ConfigError(f"Included connector type {said} does not match request type {kind}")
    try:
        _refuse_masks(given)
    except ConfigError as error:
        return error.faults
    return flat_connectors.faults_of(name, {**given, CLASS: said})


# ------------------------------------------------------------------------------------------------------------- classes


@dataclass(frozen=True)
class FlatKey:
    """A key of a class. `must` is what it is for where it has to be there, else empty; `common` ones are the same for
    every class."""

    name: str
    must: str
    common: bool


@dataclass(frozen=True)
class KafkaClass:
    """A class by its whole name."""

    name: str
    keys: Sequence[FlatKey]


def class_of(kind: str) -> KafkaClass:
    """By its name, which may lack its package. Raises NotFound."""
    found = class_named(kind)
    if found is None:
        raise NotFound(f"Unknown plugin {kind}")
    keys = [FlatKey(key, must, common=key not in found.end.keys) for key, must in keys_of(found).items()]
    return KafkaClass(f"{found.package}{found.name}", keys)


def plugin_of(kind: str) -> KafkaClass:
    """The same, also of a class of transforms, predicates or converters. Raises NotFound."""
    for one in flat_connectors.all_plugins():
        if one.kind not in ("source", "sink") and kind in (one.name, one.name.rpartition(".")[2]):
            keys = [FlatKey(key, "the class needs it" if must else "", common=False) for key, must in one.keys.items()]
            return KafkaClass(one.name, keys)
    return class_of(kind)


def shown_config(given: Json) -> dict[str, str]:
    """The same as texts, without its secrets and without the keys that have no value."""
    return flat_connectors.texts(flat_connectors.hidden({key: it for key, it in given.items() if it is not None}))


# ------------------------------------------------------------------------------------------------------------- offsets


def offsets_of(name: str) -> dict[str, int]:
    """What is read next of each partition. Raises NotFound."""
    named(name)
    with reading() as opened:
        return {one["partition"]: one["offset"] for one in offsets.committed(opened, name)}


def alter_offsets(name: str, wanted: Mapping[str, int | None], say: Say) -> None:
    """All of them, or none where one is not possible; None stands for the oldest record. Each is one change of the
    history, which `waybill offsets undo` takes back. Raises NotFound, NotAllowed, and ConfigError unless it is
    stopped."""
    callers.require("admin", name)
    _require_stopped(named(name))
    if not wanted:
        return
    with working() as opened:
        offsets.set_offsets(opened, name, wanted, why=_WHY, still=_require_stopped, say=say)


def _require_stopped(connector: Connector) -> None:
    if connector.target_state != "stopped":
        raise ConfigError(
            "Connectors must be in the STOPPED state before their offsets can be modified",
            where=f"connector {connector.name}",
            next_step=f"PUT /connectors/{connector.name}/stop",
        )


def reset_offsets(name: str, say: Say) -> None:
    """To the oldest record of each partition that was read. Raises as `alter_offsets` does."""
    callers.require("admin", name)
    alter_offsets(name, dict.fromkeys(offsets_of(name)), say)


def ledger_id() -> str:
    """Empty where there is no ledger yet."""
    if not ledger_exists():
        return ""
    with reading() as opened:
        return opened.ledger.identity().id
