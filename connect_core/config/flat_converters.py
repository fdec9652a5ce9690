"""Converters of values and keys in flat documents, by their Java class names. Pure.

Records pass as the bytes that they are, unless transforms make others of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from connect_core.config import option_models
from connect_core.config.flat_document import TranslatedDocument
from connect_core.config.peers.translating import PeerForm, makes_keys
from connect_core.rows.envelope_schemas import USUAL_FLAVOR
from connect_core.sdk.templates import Kind

VALUE_CONVERTER, KEY_CONVERTER, TRANSFORMS = "value.converter", "key.converter", "transforms"
_BYTES_THROUGH = ("StringConverter", "ByteArrayConverter")
_JSON = (
    "org.apache.rocketmq.connect.runtime.converter.record.json.JsonConverter",
    "org.apache.kafka.connect.json.JsonConverter",
)
"""Of RocketMQ Connect and Kafka Connect."""
_AVRO = ("org.apache.rocketmq.schema.avro.AvroConverter", "io.confluent.connect.avro.AvroConverter")
_SCHEMAS = {**dict.fromkeys(_AVRO, "Avro"), "io.confluent.connect.protobuf.ProtobufConverter": "Protobuf"}
"""Converters whose values have a schema in a registry, and what they write."""
_NATIVE = "a native document (waybill init SOURCE SINK)"

Handler = Callable[[TranslatedDocument, str, Any], None]


def option_handler(key: str) -> Handler | None:
    """For an option of a converter; None for any other key."""
    for pattern, handler in _OPTIONS.items():
        if re.fullmatch(rf"(key|value)\.converter\.{pattern}", key):
            return handler
    return None


def converter(into: TranslatedDocument, key: str, value: Any) -> None:
    """What stands under VALUE_CONVERTER or KEY_CONVERTER."""
    if str(value).rpartition(".")[2] in _BYTES_THROUGH:
        into.ignore(key, "records pass as the bytes they are")
    elif key == KEY_CONVERTER and str(value).strip() in (*_JSON, *_SCHEMAS):
        _key_converter(into, key, str(value).strip())
    elif str(value).strip() in _JSON:
        if not into.given.get(TRANSFORMS):
            _json_converter(into, key)
    elif str(value).strip() in _SCHEMAS:
        _schema_converter(into, key, str(value).strip())
    else:
        into.refuse(key, f"{value!r} is not available; records pass as bytes: {' or '.join(_BYTES_THROUGH)}")


def _json_converter(into: TranslatedDocument, key: str) -> None:
    """A sink reads what is in a topic, and it stays as it is. A source would write each line as another thing."""
    enabled = _has_schemas(into, key)
    if into.gives_json:
        _json_of_json(into, key, enabled=enabled)
        return
    form = "json-schema" if enabled else "json"
    if into.role == "source":
        says = f"says their fields in parse, and encode: {{format: {form}}}"
        into.refuse(key, f"lines do not become JSON here; {_NATIVE} {says}")
        return
    what = "envelopes with their schema" if enabled else "JSON"
    reads = f"reads their fields by parse: {{format: {form}, fields: {{id: int64}}}}"
    into.notice(f"{key}: records pass as the bytes they are, {what}; {_NATIVE} {reads}")


def _json_of_json(into: TranslatedDocument, key: str, *, enabled: bool) -> None:
    """Of a source whose records are JSON already."""
    if into.schemas_option:
        into.put(f"{key}.schemas.enable", ("source", into.system, into.schemas_option), enabled)
    elif enabled:
        writes = "parse: {format: json, fields: …} and encode: {format: json-schema}"
        into.refuse(f"{key}.schemas.enable", f"records have no schema here: set it to false; {_NATIVE} has {writes}")
    else:
        into.ignore(key, "records are JSON without a schema")


def _key_converter(into: TranslatedDocument, key: str, given: str) -> None:
    """A sink reads keys as the text that they are. A source writes one only where a transform makes it."""
    form = form_of(into, key).format
    if into.role == "sink":
        reads = f"; {_NATIVE} reads their fields by parse: {{key_format: {form}, key_fields: {{id: int64}}}}"
        into.notice(f"{key}: keys pass as the text that they are" + (reads if given in _JSON else ""))
    elif into.gives_json:
        into.notice(f"{key}: the key of a record is the text of the primary key; of several columns an object")
    elif given in _SCHEMAS:
        into.refuse(key, f"a key is one text here, and {_SCHEMAS[given]} is none: use JsonConverter or StringConverter")
    elif makes_keys(into.given):
        return  # `translated` looks at it
    elif "key" not in _source_fields(into):
        into.ignore(key, "records have no key there, and no transform makes one")
    else:
        writes = f"encode: {{key_format: {form}, key_fields: [id]}}"
        into.refuse(key, f"keys do not become JSON here; {_NATIVE} says the fields of payloads in parse, and {writes}")


def _source_fields(into: TranslatedDocument) -> frozenset[Kind]:
    """What records of the source have, where the class is one."""
    plugin = option_models.plugin(into.system)
    return plugin.source_fields if plugin else frozenset()


def _schema_converter(into: TranslatedDocument, key: str, given: str) -> None:
    """As a JSON converter. RocketMQ's registry is another one, and writes something else before a value."""
    word = _SCHEMAS[given]
    form = f"format: {word.lower()}, framing: registry, registry: {{url: …}}"
    if into.given.get(TRANSFORMS):
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
    if str(into.given.get(".".join(key.split(".")[:2]), "")).strip() not in _SCHEMAS:
        _without_effect(into, key, value)


def _schemas_enable(into: TranslatedDocument, key: str, value: Any) -> None:
    """The notice of a JSON converter speaks of it."""
    if str(into.given.get(key.removesuffix(".schemas.enable"), "")).strip() not in _JSON:
        _without_effect(into, key, value)


def _encoding(into: TranslatedDocument, key: str, value: Any) -> None:
    if str(value).replace("-", "").upper() != "UTF8":
        into.refuse(key, f"{value!r} is not available; records pass as the bytes they are")
    else:
        into.ignore(key, "records pass as the bytes they are")


def form_of(into: TranslatedDocument, key: str) -> PeerForm:
    """How values, or keys, are written there, by the key of their converter."""
    given = str(into.given.get(key, "")).strip()
    if given not in _JSON:
        return PeerForm("text")
    flavor = "kafka" if given.startswith("org.apache.kafka.") else USUAL_FLAVOR
    return PeerForm("json-schema", flavor) if _has_schemas(into, key) else PeerForm("json")


def _has_schemas(into: TranslatedDocument, key: str) -> bool:
    return str(into.given.get(f"{key}.schemas.enable", "true")).strip().lower() != "false"


def _without_effect(into: TranslatedDocument, key: str, value: Any) -> None:
    into.ignore(key, "no available converter has this option")


_OPTIONS: dict[str, Handler] = {
    r"(de)?serializer\.encoding": _encoding,
    r"schemas\.enable": _schemas_enable,
    r"(schema\.registry\.url|auto\.register\.schemas|use\.latest\.version)": _of_schemas,
    r".*": _without_effect,
}


def is_unknown_option(key: str) -> bool:
    """Of a converter. It may be anything, a secret by any name as well, and nobody here needs it."""
    return option_handler(key) is _without_effect
