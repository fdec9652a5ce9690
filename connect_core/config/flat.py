"""Flat documents of RocketMQ Connect (`connector.class`, `max.tasks`, …) to native ones, once, at the edge. Pure.

What has no meaning here is told in a notice; what cannot be kept, or is not known, is a fault at its flat key. The Java
class names stand for our systems; a class that has none is answered with those that do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from connect_core.config import option_models
from connect_core.config.document import MAX_NAME_LENGTH
from connect_core.config.faults import nearest
from connect_core.config.flat_converters import (
    KEY_CONVERTER,
    TRANSFORMS,
    VALUE_CONVERTER,
    Handler,
    converter,
    form_of,
    is_unknown_option,
    option_handler,
)
from connect_core.config.flat_document import TranslatedDocument
from connect_core.config.peers.connector_classes import peer_class
from connect_core.config.peers.reading import NotKept
from connect_core.config.peers.translating import FIELDS_KEY, rows_of, translated
from connect_core.config.references import MASK, masked
from connect_core.config.written import Written
from connect_core.sdk.flat import FlatClass, FlatEnd, FlatHandler

CLASS = "connector.class"


@dataclass(frozen=True)
class _End:
    """One end of a document, at its place there: a `FlatWriter`."""

    into: TranslatedDocument
    at: tuple[str, ...]
    system: str
    known: FlatEnd

    @property
    def options(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.into.data
        for part in (*self.at, self.system):
            found = found.get(part, {})
        return found

    @property
    def given(self) -> Mapping[str, Any]:
        return self.into.given

    def put(self, key: str, option: str, value: Any) -> None:
        self.into.put(key, (*self.at, self.system, option), value)

    def notice(self, text: str) -> None:
        self.into.notices.append(text)

    def ignore(self, key: str, why: str) -> None:
        self.into.ignore(key, why)

    def refuse(self, key: str, why: str) -> None:
        self.into.refuse(key, why)

    def handlers(self) -> dict[str, Handler]:
        return {key: partial(self._handle, handler) for key, handler in self.known.keys.items()}

    def _handle(self, handler: FlatHandler, into: TranslatedDocument, key: str, value: Any) -> None:
        handler(self, key, value)


def is_flat(data: Mapping[str, Any]) -> bool:
    """Whether these are the flat keys of RocketMQ Connect."""
    return "version" not in data and any(str(key).startswith(("connector.", "connect.")) for key in data)


def classes() -> list[FlatClass]:
    """Of connectors that a flat document may name, each once though several systems may have it."""
    known = {(one.package, one.name): one for plugin in option_models.plugins() for one in plugin.flat}
    return [*known.values()]


def release_of(kind: FlatClass) -> str:
    """The version of the package that brings the class."""
    name = next(plugin.name for plugin in option_models.plugins() if kind in plugin.flat)
    return option_models.release(name).rpartition(" ")[2]


def class_named(given: str) -> FlatClass | None:
    """By its name, which may lack the package, or `Connector` at its end."""
    return next((one for _, one in _named(given)), None)


def hidden(given: Mapping[str, Any]) -> dict[str, Any]:
    """As it is stored and shown: without secrets, and without the values of options that nobody here knows."""
    return {key: MASK if is_unknown_option(key) else value for key, value in masked(dict(given)).items()}


def keys_of(kind: FlatClass) -> dict[str, str]:
    """The keys that a document of the class may have, its own first, and of those that it must have what they are."""
    ends = next(plugin.flat_hub for plugin in option_models.plugins() if plugin.flat_hub)
    found: dict[str, str] = {}
    for end in (kind.end, ends.sink if kind.role == "source" else ends.source):
        found |= {key: end.must.get(key, "").format(records=kind.records) for key in end.keys}
    found |= {key: "" for key in (*_COMMON, TRANSFORMS, "predicates") if key not in found}
    return found | {CLASS: "the class says what is read and written"}


def hub() -> str:
    """The system that is the other end of every class."""
    return next(plugin.name for plugin in option_models.plugins() if plugin.flat_hub)


def name_for(written: Written) -> str:
    """A connector name from the document's file."""
    stem = written.file.stem if written.file else "connector"
    return re.sub(r"[^A-Za-z0-9._-]", "-", stem)[:MAX_NAME_LENGTH]


def translate(flat: Mapping[str, Any], name: str) -> TranslatedDocument:
    """The native document of a flat one. Values may be text, as in properties files."""
    into = TranslatedDocument(str(flat.get("name") or name))
    into.given = {**flat, "name": into.name}
    into.put("name", ("version",), 1)
    into.put("name", ("name",), into.name)
    found = _kind(flat, into)
    if found is None:
        return into
    system, kind = found
    into.system, into.role, into.gives_json = system, kind.role, kind.gives_json
    into.schemas_option = kind.schemas_option
    into.takes_rows = kind.takes_rows and kind.role == "sink"
    into.put(CLASS, ("schedule",), _always(system if kind.role == "source" else hub()))
    ends = _ends(system, kind, into)
    keys = {**_COMMON, **{key: handler for end in ends for key, handler in end.handlers().items()}}
    for key, value in flat.items():
        if handler := keys.get(key) or _by_prefix(key):
            handler(into, key, value)
        else:
            into.refuse(key, f'unknown key "{key}"' + nearest(key, keys))
    for end in ends:
        _require(end, flat, kind.records)
    for end in ends:
        end.known.complete(end)
    if into.given.get(TRANSFORMS) and not into.faults:
        _transform(into, ends[1])
    if into.takes_rows and not into.faults:
        _parse(into)
    return into


def key_of(flat: Mapping[str, Any], name: str, path: str) -> str:
    """The flat key that the native place `path` came from; the path itself where it came from none."""
    origins = {".".join(map(str, place)): key for place, key in translate(flat, name).origins.items()}
    parts = path.split(".")
    places = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((origins[place] for place in places if place in origins), path)


def with_lines(translated: TranslatedDocument, written: Written) -> Written:
    """The native data, with the lines of the flat keys it came from."""
    lines = {place: line for place, key in translated.origins.items() if (line := written.lines.get((key,)))}
    return Written(translated.data, written.where, lines, written.file)


def _always(source: str) -> dict[str, Any]:
    """A connector of RocketMQ Connect is always at work. Here a run begins when the source has something, and follows
    it; where nobody can look, one begins when another one ends."""
    plugin = option_models.plugin(source)
    way = "continuous" if plugin is None or plugin.unwatchable else "on_change"
    return {way: True, "window": "60s"}


# ---------------------------------------------------------------------------------------------------------- the class


def _kind(flat: Mapping[str, Any], into: TranslatedDocument) -> tuple[str, FlatClass] | None:
    """The system, and the class of its connectors."""
    if CLASS not in flat:
        into.refuse(CLASS, "is missing: the class says what is read and written")
        return None
    given = str(flat[CLASS]).strip()
    named = _named(given)
    if found := next(((system, one) for system, one in named if one.fits(flat)), None):
        return found
    if named:
        able = " and ".join(sorted({system for system, _ in named}))
        into.refuse(CLASS, f"{given!r} is here for {able}, and this document means none of these: see its address")
        return None
    if row := peer_class(given):
        into.refuse(CLASS, f"there is no {given!r} here: {row.row}")
        return None
    names = " and ".join(sorted({one.name for one in classes()}))
    into.refuse(
        CLASS,
        f"there is no {given!r} here; there are {names} "
        "(and any two systems in a native document: waybill init SOURCE SINK)",
    )
    return None


def _named(given: str) -> list[tuple[str, FlatClass]]:
    """Of each system that has it, by its name, which may lack its package."""
    known = [(plugin.name, one) for plugin in option_models.plugins() for one in plugin.flat]
    wanted = given if given.endswith("Connector") else f"{given}Connector"
    return [(system, one) for system, one in known if wanted in (one.name, f"{one.package}{one.name}")]


def _ends(system: str, kind: FlatClass, into: TranslatedDocument) -> list[_End]:
    """That of the class, the hub's, and where rejected records go at the hub when that is named."""
    hub, ends = next((one.name, one.flat_hub) for one in option_models.plugins() if one.flat_hub)
    found = [_End(into, (kind.role,), system, kind.end)]
    if kind.role == "source":
        found.append(_End(into, ("sink",), hub, ends.sink))
    else:
        found.append(_End(into, ("source",), hub, ends.source))
    if str(into.given.get(ends.rejects_key) or "").strip():
        found.append(_End(into, ("errors", "sink"), hub, ends.rejects))
    return found


def _require(end: _End, flat: Mapping[str, Any], records: str) -> None:
    for key, what in end.known.must.items():
        if not any(one in flat for one in key.split("|")):
            end.refuse(key.split("|")[0], f"is missing: {what.format(records=records)}")


# ------------------------------------------------------------------------------------------------------- the flat keys


def _nothing(into: TranslatedDocument, key: str, value: Any) -> None:
    """Read elsewhere."""


def _ignored(why: str) -> Handler:
    return lambda into, key, value: into.ignore(key, why)


def _only(expected: str, why: str) -> Handler:
    """The key may stand there with the one value that changes nothing."""

    def handle(into: TranslatedDocument, key: str, value: Any) -> None:
        if str(value).strip().lower() != expected:
            into.refuse(key, why)

    return handle


def _max_tasks(into: TranslatedDocument, key: str, value: Any) -> None:
    text = str(value).strip()
    if not text.isdecimal() or int(text) < 1:
        into.refuse(key, f"{value!r} is not a number of tasks, 1 or more")
    elif int(text) > 1:
        into.ignore(key, "a connector of this class has one task, as in RocketMQ Connect")


def _tolerance(into: TranslatedDocument, key: str, value: Any) -> None:
    word = str(value).strip().lower()
    if word in {"none", "all"}:
        into.put(key, ("errors", "tolerance"), word)
    else:
        into.refuse(key, f"{value!r} is neither none nor all")


def _context(into: TranslatedDocument, key: str, value: Any) -> None:
    """`properties` in RocketMQ Connect, `headers` in Kafka Connect: the names in them are the same."""
    word = str(value).strip().lower()
    if word not in {"true", "false"}:
        into.refuse(key, f"{value!r} is neither true nor false")
    elif not str(into.given.get(_REJECTS_KEY) or "").strip():
        into.ignore(key, _REJECTS)
    elif word == "true":
        into.put(key, ("errors", "headers"), "connect")


def _by_prefix(key: str) -> Handler | None:
    if key in (TRANSFORMS, "predicates", FIELDS_KEY) or key.startswith(("transforms.", "predicates.")):
        return _of_transforms
    return option_handler(key)


# --------------------------------------------------------------------------------------------------------- transforms


def _of_transforms(into: TranslatedDocument, key: str, value: Any) -> None:
    """All of them are translated at once, by `_transform`."""
    if not into.given.get(TRANSFORMS) and value and not (into.takes_rows and key == FIELDS_KEY):
        into.refuse(key, f"has no effect without {TRANSFORMS}: name what is to be done there")


def _transform(into: TranslatedDocument, hub: _End) -> None:
    topics = hub.options.get("topics") or [hub.options["topic"]]
    try:
        value, key = form_of(into, VALUE_CONVERTER), form_of(into, KEY_CONVERTER)
        made = translated(into.given, topics, value, key, is_source=into.role == "source")
    except NotKept as refused:
        into.refuse(refused.key, str(refused))
        return
    for part, value in made.parts.items():
        if part != "encode" or not into.takes_rows:
            into.put(TRANSFORMS, (part,), value)
    into.notices += [f"{key}: {words}" for key, words in made.notices]
    if into.role == "source" and made.topics and list(made.topics.values()) != topics:
        hub.put(TRANSFORMS, "topic", *made.topics.values())


def _parse(into: TranslatedDocument) -> None:
    """Rows are made of fields, which the document has to say."""
    if "parse" in into.data:
        return
    try:
        into.put(FIELDS_KEY, ("parse",), rows_of(into.given, form_of(into, VALUE_CONVERTER)))
    except NotKept as refused:
        into.refuse(refused.key, str(refused))


_RETRIES = "a failed run is tried again as a whole, by the program that started it"
_REJECTS = "rejected records are kept in the ledger: waybill dead-letters list NAME"
_REJECTS_KEY = "errors.deadletterqueue.topic.name"
_COMMON: dict[str, Handler] = {
    CLASS: _nothing,
    "name": _nothing,
    "max.tasks": _max_tasks,
    "tasks.max": _max_tasks,
    KEY_CONVERTER: converter,
    VALUE_CONVERTER: converter,
    "errors.tolerance": _tolerance,
    "errors.retry.timeout": _ignored(_RETRIES),
    "errors.retry.delay.max.ms": _ignored(_RETRIES),
    "errors.log.enable": _ignored(_REJECTS),
    "errors.log.include.messages": _ignored(_REJECTS),
    "errors.deadletterqueue.topic.name": _ignored(_REJECTS),
    "errors.deadletterqueue.topic.replication.factor": _ignored(_REJECTS),
    "errors.deadletterqueue.read.queue.nums": _ignored(_REJECTS),
    "errors.deadletterqueue.write.queue.nums": _ignored(_REJECTS),
    "errors.deadletterqueue.context.properties.enable": _context,
    "errors.deadletterqueue.context.headers.enable": _context,
    "connector.direct.enable": _only("false", "direct mode is written as a native document: waybill init SOURCE SINK"),
}
