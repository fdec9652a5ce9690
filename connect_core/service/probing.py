"""What the world says of a document: are the servers and paths of its ends there, and where have workers on other hosts
to reach this one? Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from connect_core import systems
from connect_core.config import (
    ConnectorDocument,
    Resolved,
    Settings,
    engine_named,
    load_settings,
    resolve,
    reveal,
    revealed,
)
from connect_core.engine.dialling import dial_in
from connect_core.errors import WaybillError
from connect_core.masking import mask_secrets
from connect_core.registry.opening import opened
from connect_core.sdk.plugin import Role
from connect_core.sdk.sink import ByTopic
from connect_core.sdk.values import Json
from connect_core.systems import SYSTEMS
from connect_core.work import Side


def probe(document: ConnectorDocument, home: Path | None) -> list[Json]:
    """Source first: whether it is `ok`, and in words `what` was seen. A system that does not answer is told, not
    raised."""
    try:
        settings = load_settings(home)
        resolved = resolve(document, home, settings, "0" * 12)
        other_hosts = list(_other_hosts(document.engine or settings.engine, home, settings))
    except WaybillError as error:
        return [_seen(False, str(error))]
    ends = [*probe_side("source", resolved.source), *probe_side("sink", resolved.sink)]
    if all(seen["ok"] for seen in ends):
        ends += _topics_without_target(resolved)
    second = probe_side("sink", resolved.errors_sink, "errors.sink") if resolved.errors_sink else []
    return [*ends, *second, *_registries(document), *other_hosts]


def _topics_without_target(resolved: Resolved) -> list[Json]:
    """Which of those that the source has now the sink cannot write."""
    try:
        with ExitStack() as resources:
            sink = systems.sink(revealed(resolved.sink), resources)
            if not isinstance(sink, ByTopic):
                return []
            source = systems.source(revealed(resolved.source), resources)
            topics = {source.topic(one) for one in source.partitions([])}
            return [_seen(False, f"sink: {one.as_error()}") for one in sink.unfit(topics).values()]
    except WaybillError as error:
        return [_seen(False, str(error))]


def _registries(document: ConnectorDocument) -> Iterator[Json]:
    """Whether each answers; what it has does not matter."""
    for name, said in (("parse", document.parse.registry), ("encode", document.encode.registry)):
        if said is None:
            continue
        try:
            registry = opened(reveal(said.model_dump(exclude_defaults=True)))
            registry.schema(1)
            yield _seen(True, f"{name}: the schema registry at {registry.url} answers")
        except WaybillError as error:
            yield _seen(False, f"{name}: {error}")


def _other_hosts(engine: str, home: Path | None, settings: Settings) -> Iterator[Json]:
    """Only executors know whether they reach this host: a run asks each of them before it plans anything."""
    wanted = engine_named(engine, home)
    if wanted.kind != "submit" or (wanted.master or settings.submit_master).startswith("local"):
        return
    if not settings.driver_address:
        yield _seen(True, f"engine {engine}: executors on other hosts are refused: WAYBILL_DRIVER_ADDRESS is not set")
        return
    try:
        with dial_in(1, settings.driver_address):
            where = f"{settings.driver_address}, at a port that each run chooses"
            yield _seen(True, f"engine {engine}: executors on other hosts have to reach {where}")
    except WaybillError as error:
        yield _seen(False, f"engine {engine}: {error}")


def probe_side(role: Role, side: Side, name: str = "") -> list[Json]:
    """One for each thing looked at; an end whose system has nothing to look at has none. It is told by its role, unless
    it has another name."""
    name = name or role
    told: list[Json] = []
    try:
        for ok, what in SYSTEMS[side.system].probe(role, reveal(side.options)):
            told.append(_seen(ok, f"{name}: {what}"))
    except WaybillError as error:
        told.append(_seen(False, f"{name}: {error}"))
    return told


def _seen(ok: bool, what: str) -> Json:
    return {"ok": ok, "what": mask_secrets(what)}
