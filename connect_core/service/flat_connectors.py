"""Connectors as RocketMQ Connect shows them: by the flat configuration that they were given, a text for each key.

A connector that is stopped is not shown, as it would be gone there. It keeps its document and its offsets, and goes on
from these when it is created again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from connect_core import __version__
from connect_core.config import flat as flat_documents
from connect_core.config import masked
from connect_core.config.flat import CLASS, classes, hub, is_flat, key_of, release_of
from connect_core.config.peers.classes import converters, transforms_and_predicates
from connect_core.config.references import masked_text
from connect_core.errors import ConfigError, Fault
from connect_core.ledger import Connector, Run
from connect_core.replication.driver.status import State, StatusFacts, status_of
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json
from connect_core.service import callers, connectors, documents
from connect_core.service.connectors import Wish
from connect_core.service.opened import Say, reading
from connect_core.service.visible import may_write, visible, visible_one, without_others

_WHY = "by the routes of RocketMQ Connect"


@dataclass(frozen=True)
class FlatTask:
    """`failure` is why its last run failed; empty where that went well, or nothing ran yet."""

    number: int
    failure: str


@dataclass(frozen=True)
class FlatConnector:
    """`role` is which end the system of its class is. `engine` is where its newest run was at work; empty where there
    was none."""

    name: str
    role: Role
    config: Mapping[str, str]
    state: State
    tasks: tuple[FlatTask, ...]
    engine: str
    applied_at: datetime


def listed(say: Say) -> list[FlatConnector]:
    """All that are shown, by name."""
    return seen(list(_shown().values()), say)


def shown(name: str, say: Say) -> FlatConnector:
    """Raises ConfigError for one that is not there, or stopped."""
    [found] = seen([_named(name)], say)
    return found


def create(name: str, given: Json, say: Say) -> None:
    """Creates the connector or changes it; one that was stopped goes on. Raises ConfigError with every fault, and for
    what the connector is already; NotAllowed where the caller may not."""
    may_write(name)
    before = connectors.named(name)
    flat = storable(name, given, before)
    with in_its_own_words(name, flat):
        change = documents.apply_one(name, flat, why=_WHY, say=say)
    if before is not None and before.target_state == "stopped":
        with reading() as opened:
            connectors.set_state(opened, name, "running")
    elif (
        before is not None
        and change["change"] == "unchanged"
        and _without_name(before.flat) == _without_name(hidden(flat))
    ):
        raise ConfigError("Connector with same config already exist.")


def storable(name: str, given: Json, before: Connector | None) -> dict[str, str]:
    """The texts of a configuration that names its class. Raises ConfigError for any other, and where `before`, the
    connector of this name, has none."""
    flat = texts(given)
    if not flat.get(CLASS) or not is_flat(flat):
        raise ConfigError(f"Request config key: {CLASS}", next_step="A native document is applied with `waybill apply`")
    if before is not None and before.flat is None:
        step = "Change it with `waybill apply`, or delete it first with `waybill connectors delete`"
        raise ConfigError(f"Connector [{name}] was written as a native document", next_step=step)
    return flat


def set_state(name: str, state: Wish) -> None:
    """Raises ConfigError for one that is not there, or stopped, and NotAllowed."""
    callers.require("operator", name)
    _named(name)
    with reading() as opened:
        connectors.set_state(opened, name, state)


def set_all(state: Wish) -> list[str]:
    """Of all that are shown and that the caller may change; their names. Raises NotAllowed where the caller may change
    none."""
    there = [name for name in _shown() if callers.may("operator", name)]
    if not there:
        callers.require("operator")
    else:
        with reading() as opened:
            connectors.set_states(opened, there, state)
    return there


def faults_of(name: str, given: Json) -> Sequence[Fault]:
    """What `create` would refuse. Changes nothing, and is for who may create: it says what of this host and of other
    connectors stands in the way. Raises NotAllowed."""
    may_write(name)
    try:
        flat = texts(given)
        with in_its_own_words(name, flat):
            documents.check_one(name, flat)
    except ConfigError as error:
        return error.faults or (Fault("", str(error)),)
    return ()


@contextmanager
def in_its_own_words(name: str, flat: Json) -> Iterator[None]:
    """Faults are at a key of the configuration: there is no file whose name has to be said."""
    try:
        yield
    except ConfigError as error:
        paths = [one.path.removeprefix(f"connector {name}: ") for one in error.faults]
        own = tuple(
            Fault(key_of(flat, name, path), without_others(one.message))
            for path, one in zip(paths, error.faults, strict=True)
        )
        raise ConfigError(error.what, where=error.where, faults=own, next_step=error.next_step) from None


def hidden(given: Json) -> Json:
    """The same, without its secrets."""
    return flat_documents.hidden(given)


def hidden_text(text: str) -> str:
    """The same of an error, which may quote a value."""
    return masked_text(text)


def texts(given: Json) -> dict[str, str]:
    """Every value as a text, as RocketMQ Connect keeps them: an object by its JSON. Raises ConfigError for a null."""
    if missing := [key for key, value in given.items() if value is None]:
        raise ConfigError(f"The value of {missing[0]} is null", next_step="Leave the key out")
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}


PluginKind = Literal["source", "sink", "transform", "predicate", "converter"]


@dataclass(frozen=True)
class FlatPlugin:
    """A class that configurations may name, of connectors or of what these name. `keys` are its own, and whether each
    has to be there. `version` is that of the package that brings it."""

    name: str
    kind: PluginKind
    keys: Mapping[str, bool]
    version: str


def plugins() -> Iterator[FlatPlugin]:
    """Classes of connectors."""
    for one in classes():
        must = {key for names in one.end.must for key in names.split("|")[:1]}
        keys = {key: key in must for key in one.end.keys}
        yield FlatPlugin(f"{one.package}{one.name}", one.role, keys, release_of(one))


def all_plugins() -> Iterator[FlatPlugin]:
    """Those, and classes of transforms, predicates and converters."""
    yield from plugins()
    for one in (*transforms_and_predicates(), *converters()):
        yield FlatPlugin(one.name, one.kind, one.keys, __version__)


def _without_name(flat: Json | None) -> Json | None:
    return None if flat is None else {key: value for key, value in flat.items() if key != "name"}


def _shown() -> dict[str, Connector]:
    return {name: one for name, one in visible().items() if one.target_state != "stopped"}


def _named(name: str) -> Connector:
    found = visible_one(name)
    if found is None or found.target_state == "stopped":
        raise ConfigError(f"Connector [{name}] does not exist")
    return found


def seen(there: Sequence[Connector], say: Say) -> list[FlatConnector]:
    """Connectors by their configurations and what they do now."""
    if not there:
        return []
    with reading() as opened:
        now = connectors.facts_of(opened, there, say)
        return [_seen(one, now[one.name]) for one in there]


def _seen(connector: Connector, now: StatusFacts) -> FlatConnector:
    return FlatConnector(
        name=connector.name,
        role=role_of(connector.document),
        config=_config(connector),
        state=status_of(now).state,
        tasks=tuple(FlatTask(number, _failure(number, now.runs)) for number in range(now.tasks)),
        engine=now.runs[0].engine.partition(",")[0] if now.runs else "",
        applied_at=connector.applied_at or connector.created_at,
    )


def _config(connector: Connector) -> dict[str, str]:
    """Of one that was written as a native document: what it says, under a key of ours."""
    if (flat := _without_name(connector.flat)) is not None:
        return {key: str(value) for key, value in hidden(flat).items()}
    return {"waybill.document": json.dumps(masked(connector.document), ensure_ascii=False)}


def role_of(document: Json) -> Role:
    """The hub is the other end of every class."""
    (source,), (sink,) = document["source"], document["sink"]
    return "sink" if source == hub() != sink else "source"


def _failure(number: int, runs: Sequence[Run]) -> str:
    last: Run | None = next((run for run in runs if run.task == number and run.state != "running"), None)
    if last is None or last.failure is None:
        return ""
    return str(last.failure.as_error())
