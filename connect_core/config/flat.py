"""Flat documents of RocketMQ Connect (`connector.class`, `max.tasks`, …) to native ones, once, at the edge. Pure.

What has no meaning here is told in a notice; what cannot be kept, or is not known, is a fault at its flat key. The Java
class names stand for our systems; a class that has none is answered with those that do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from connect_core.config import option_models
from connect_core.config.document import MAX_NAME_LENGTH
from connect_core.config.faults import nearest
from connect_core.config.peers.reading import NotKept
from connect_core.config.peers.translating import FIELDS_KEY, PeerValue, translated
from connect_core.config.written import Place, Written
from connect_core.errors import Fault
from connect_core.rows.envelope_schemas import USUAL_FLAVOR
from connect_core.sdk.flat import FlatClass, FlatEnd, FlatHandler
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json

CLASS = "connector.class"
_BYTES_THROUGH = ("StringConverter", "ByteArrayConverter")
_JSON = (
    "org.apache.rocketmq.connect.runtime.converter.record.json.JsonConverter",
    "org.apache.kafka.connect.json.JsonConverter",
)
"""Of RocketMQ Connect and Kafka Connect."""
_VALUE_CONVERTER = "value.converter"
_TRANSFORMS = "transforms"
_AVRO = ("org.apache.rocketmq.schema.avro.AvroConverter", "io.confluent.connect.avro.AvroConverter")
_SCHEMAS = {**dict.fromkeys(_AVRO, "Avro"), "io.confluent.connect.protobuf.ProtobufConverter": "Protobuf"}
"""Converters whose values have a schema in a registry, and what they write."""
_NATIVE = "a native document (waybill init SOURCE SINK)"


@dataclass
class TranslatedDocument:
    """`origins` says from which flat key a native place came. Faults carry the flat key as their path. `given` are the
    flat keys, `role` is which end the system of their class is."""

    name: str
    data: Json = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    origins: dict[Place, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    role: Role | None = None

    def put(self, key: str, place: tuple[str, ...], value: Any) -> None:
        *outer, last = place
        holder = self.data
        for part in outer:
            holder = holder.setdefault(part, {})
        holder[last] = value
        self.origins[place] = key

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def ignore(self, key: str, why: str) -> None:
        self.notices.append(f"{key}: accepted without effect: {why}")

    def refuse(self, key: str, why: str) -> None:
        self.faults.append(Fault(key, why))


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
    into.role = kind.role
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
    if into.given.get(_TRANSFORMS) and not into.faults:
        _transform(into, ends[1])
    return into


def with_lines(translated: TranslatedDocument, written: Written) -> Written:
    """The native data, with the lines of the flat keys it came from."""
    lines = {place: line for place, key in translated.origins.items() if (line := written.lines.get((key,)))}
    return Written(translated.data, written.where, lines, written.file)


# ---------------------------------------------------------------------------------------------------------- the class


def _kind(flat: Mapping[str, Any], into: TranslatedDocument) -> tuple[str, FlatClass] | None:
    """The system, and the class of its connectors."""
    if CLASS not in flat:
        into.refuse(CLASS, "is missing: the class says what is read and written")
        return None
    known = {one.name: (plugin.name, one) for plugin in option_models.plugins() for one in plugin.flat}
    given = str(flat[CLASS]).strip()
    kind = given
    for package in dict.fromkeys(one.package for _, one in known.values()):
        kind = kind.removeprefix(package)
    kind = kind if kind.endswith("Connector") else f"{kind}Connector"
    if kind in known:
        return known[kind]
    into.refuse(
        CLASS,
        f"there is no {given!r} here; there are {' and '.join(sorted(known))} "
        "(and any two systems in a native document: waybill init SOURCE SINK)",
    )
    return None


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

Handler = Callable[[TranslatedDocument, str, Any], None]


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
        into.ignore(key, "a file connector has one task, as in RocketMQ Connect")


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


def _converter(into: TranslatedDocument, key: str, value: Any) -> None:
    if str(value).rpartition(".")[2] in _BYTES_THROUGH:
        into.ignore(key, "records pass as the bytes they are")
    elif str(value).strip() in _JSON:
        if key != _VALUE_CONVERTER or not into.given.get(_TRANSFORMS):
            _json_converter(into, key)
    elif str(value).strip() in _SCHEMAS:
        _schema_converter(into, key, str(value).strip())
    else:
        into.refuse(key, f"{value!r} is not available; records pass as bytes: {' or '.join(_BYTES_THROUGH)}")


def _json_converter(into: TranslatedDocument, key: str) -> None:
    """A sink reads what is in a topic, and it stays as it is. A source would write each line as another thing."""
    enabled = _has_schemas(into, key)
    form = "json-schema" if enabled else "json"
    if into.role == "source":
        says = f"says their fields in parse, and encode: {{format: {form}}}"
        into.refuse(key, f"lines do not become JSON here; {_NATIVE} {says}")
        return
    what = "envelopes with their schema" if enabled else "JSON"
    reads = f"reads their fields by parse: {{format: {form}, fields: {{id: int64}}}}"
    into.notice(f"{key}: records pass as the bytes they are, {what}; {_NATIVE} {reads}")


def _schema_converter(into: TranslatedDocument, key: str, given: str) -> None:
    """As a JSON converter. RocketMQ's registry is another one, and writes something else before a value."""
    word = _SCHEMAS[given]
    form = f"format: {word.lower()}, framing: registry, registry: {{url: …}}"
    if key == _VALUE_CONVERTER and into.given.get(_TRANSFORMS):
        into.refuse(key, f"transforms of {word} need its schema; {_NATIVE} says it: parse: {{{form}}}")
        return
    if into.role == "source":
        into.refuse(
            key, f"lines do not become {word} here; {_NATIVE} says their fields in parse, and encode: {{{form}}}"
        )
        return
    if given == _AVRO[0]:
        into.notice(
            f"{key}: records pass as the bytes they are; nothing here reads what RocketMQ's registry begins with"
        )
        return
    reads = f"reads their fields by parse: {{{form}, fields: {{id: int64}}}}"
    into.notice(f"{key}: records pass as the bytes they are, {word} with the number of a schema; {_NATIVE} {reads}")


def _of_schemas(into: TranslatedDocument, key: str, value: Any) -> None:
    """The notice of such a converter speaks of it."""
    converter = ".".join(key.split(".")[:2])
    if str(into.given.get(converter, "")).strip() not in _SCHEMAS:
        into.ignore(key, "no available converter has this option")


def _schemas_enable(into: TranslatedDocument, key: str, value: Any) -> None:
    """The notice of a JSON converter speaks of it."""
    if str(into.given.get(key.removesuffix(".schemas.enable"), "")).strip() not in _JSON:
        into.ignore(key, "no available converter has this option")


def _encoding(into: TranslatedDocument, key: str, value: Any) -> None:
    if str(value).replace("-", "").upper() != "UTF8":
        into.refuse(key, f"{value!r} is not available; records pass as the bytes they are")
    else:
        into.ignore(key, "records pass as the bytes they are")


def _by_prefix(key: str) -> Handler | None:
    if re.fullmatch(r"(key|value)\.converter\.(de)?serializer\.encoding", key):
        return _encoding
    if re.fullmatch(r"(key|value)\.converter\.schemas\.enable", key):
        return _schemas_enable
    if re.fullmatch(
        r"(key|value)\.converter\.(schema\.registry\.url|auto\.register\.schemas|use\.latest\.version)", key
    ):
        return _of_schemas
    if key.startswith(("key.converter.", "value.converter.")):
        return _ignored("no available converter has this option")
    if key in (_TRANSFORMS, "predicates", FIELDS_KEY) or key.startswith(("transforms.", "predicates.")):
        return _of_transforms
    return None


# --------------------------------------------------------------------------------------------------------- transforms


def _of_transforms(into: TranslatedDocument, key: str, value: Any) -> None:
    """All of them are translated at once, by `_transform`."""
    if not into.given.get(_TRANSFORMS) and value:
        into.refuse(key, f"has no effect without {_TRANSFORMS}: name what is to be done there")


def _transform(into: TranslatedDocument, hub: _End) -> None:
    topics = hub.options.get("topics") or [hub.options["topic"]]
    try:
        made = translated(into.given, topics, _value_of(into), is_source=into.role == "source")
    except NotKept as refused:
        into.refuse(refused.key, str(refused))
        return
    for part, value in made.parts.items():
        into.put(_TRANSFORMS, (part,), value)
    into.notices += [f"{key}: {words}" for key, words in made.notices]
    if into.role == "source" and made.topics and list(made.topics.values()) != topics:
        hub.put(_TRANSFORMS, "topic", *made.topics.values())


def _value_of(into: TranslatedDocument) -> PeerValue:
    """How values are written there."""
    converter = str(into.given.get(_VALUE_CONVERTER, "")).strip()
    if converter not in _JSON:
        return PeerValue("text")
    flavor = "kafka" if converter.startswith("org.apache.kafka.") else USUAL_FLAVOR
    return PeerValue("json-schema", flavor) if _has_schemas(into, _VALUE_CONVERTER) else PeerValue("json")


def _has_schemas(into: TranslatedDocument, key: str) -> bool:
    return str(into.given.get(f"{key}.schemas.enable", "true")).strip().lower() != "false"


_RETRIES = "a failed run is tried again as a whole, by the program that started it"
_REJECTS = "rejected records are kept in the ledger: waybill dead-letters list NAME"
_REJECTS_KEY = "errors.deadletterqueue.topic.name"
_COMMON: dict[str, Handler] = {
    CLASS: _nothing,
    "name": _nothing,
    "max.tasks": _max_tasks,
    "key.converter": _converter,
    _VALUE_CONVERTER: _converter,
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
