"""The transforms of a flat document as the parts of a native one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import yaml

from connect_core.config.peers import debezium, kafka, packages, rocketmq_connect
from connect_core.config.peers.predicates import condition_of
from connect_core.config.peers.reading import NotKept, PeerPart, transforms_in, unknown_options
from connect_core.config.peers.state import EXACT_TEXTS, Chain
from connect_core.pipeline.formats.patterns import TEXT_FORMAT
from connect_core.rows.types import Type, as_written, struct_of
from connect_core.sdk.values import Json

FIELDS_KEY = "waybill.fields"
"""What no peer's configuration says and transforms have to know: the fields of the JSON in a topic."""
_FILTER = f"{kafka.PACKAGE}Filter"
_CONVERTER, _KEY_CONVERTER = "value.converter", "key.converter"
_DEBEZIUM = "a native document (parse: {format: debezium}), which reads them"
_JSON_KEYS = "key.converter: org.apache.kafka.connect.json.JsonConverter"
_KEEPING = frozenset({"filter", "filter_out", "keep", "record", "set"})
"""Steps that leave the fields that stay as they are."""
_JSON_CONVERTER = "value.converter: org.apache.kafka.connect.json.JsonConverter, value.converter.schemas.enable: false"


@dataclass(frozen=True)
class PeerForm:
    """How values, or keys, stand in the topic, by the converter: `json`, `json-schema` in a `flavor`, or one `text`."""

    format: str
    flavor: str = ""


@dataclass(frozen=True)
class Translated:
    """`parts` are those of a native document. `topics` are what the topics are called by the end."""

    parts: Json
    topics: Mapping[str, str] | None
    notices: Sequence[tuple[str, str]] = field(default=())


def makes_keys(flat: Mapping[str, Any]) -> bool:
    """Whether a transform makes the key of a record."""
    return any(key.startswith("transforms.") and value == f"{kafka.PACKAGE}ValueToKey" for key, value in flat.items())


def translated(
    flat: Mapping[str, Any], topics: Sequence[str], value: PeerForm, key: PeerForm, *, is_source: bool
) -> Translated:
    """Raises NotKept for the first thing that cannot be kept."""
    chain = _begin(flat, topics, value, is_source=is_source)
    begun, was_single = chain.rows, chain.single
    for part in transforms_in(flat):
        _translate(part, chain)
        for one in (part, *((part.predicate,) if part.predicate else ())):
            if unknown := next(unknown_options(one), None):
                raise NotKept(unknown, f"unknown key of {one.cls} (known: {', '.join(sorted(one.known))})")
    parts = {} if was_single == chain.single and not chain.steps else _parts(chain, begun, value)
    if chain.key is not None:
        parts = {
            "parse": _parse(chain, begun, value),
            **parts,
            "encode": _with_key(parts.get("encode", {}), chain, key),
        }
    elif chain.single_key is not None and is_source:
        _check_single_key(chain.single_key, key)
    return Translated(parts, chain.topics, chain.notices)


def _begin(flat: Mapping[str, Any], topics: Sequence[str], value: PeerForm, *, is_source: bool) -> Chain:
    known = {topic: topic for topic in topics}
    if is_source and FIELDS_KEY in flat:
        raise NotKept(FIELDS_KEY, "is for the JSON in a topic; what a source reads is one text, until HoistField")
    if is_source or value.format == TEXT_FORMAT:
        return Chain(Type("struct", fields=((TEXT_FORMAT, Type("text")),)), True, known, is_source)
    if not flat.get(FIELDS_KEY):
        how = "waybill fields TOPIC suggests them"
        raise NotKept("transforms", f'need the fields of the JSON: {FIELDS_KEY}: {{"id": "int64"}}; {how}')
    return Chain(_fields(flat[FIELDS_KEY]), False, known, is_source)


def rows_of(flat: Mapping[str, Any], value: PeerForm) -> Json:
    """How the values of a topic are read where rows are made of them. Raises NotKept."""
    how = "waybill fields TOPIC suggests them"
    if not flat.get(FIELDS_KEY):
        raise NotKept(FIELDS_KEY, f'is missing: rows need the fields of records, {{"id": "int64"}}; {how}')
    form = "json" if value.format == TEXT_FORMAT else value.format
    return {"format": form, "fields": as_written(_fields(flat[FIELDS_KEY]))}


def _fields(given: Any) -> Type:
    """A properties file has them as text."""
    try:
        fields = yaml.safe_load(given) if isinstance(given, str) else given
        if not isinstance(fields, dict):
            raise ValueError("is a mapping of fields to types")
        return struct_of(fields)
    except (ValueError, yaml.YAMLError) as why:
        words = str(why) if isinstance(why, ValueError) else 'is a mapping, as {"id": "int64"}'
        raise NotKept(FIELDS_KEY, words) from None


def _translate(part: PeerPart, chain: Chain) -> None:
    condition = condition_of(part, chain)
    if part.cls == _FILTER:
        _filter(part, chain, condition)
        return
    translation = _find(part)
    if isinstance(condition, str):
        raise part.refuse(
            f"only Filter may depend on a record, and this predicate holds for some: {condition}; write two "
            "connectors with a Filter each, or rules of a native document (when)",
            "predicate",
        )
    if condition:
        translation(part, chain)
    else:
        part.known.update(part.options)
        chain.notice(part, "accepted without effect: its predicate holds for no record")


def _filter(part: PeerPart, chain: Chain, condition: bool | str) -> None:
    """It drops what the condition holds for."""
    if condition is False:
        chain.notice(part, "accepted without effect: its predicate holds for no record")
    else:
        chain.steps.append({"filter": f"NOT ({condition})" if isinstance(condition, str) else "FALSE"})


def _find(part: PeerPart) -> kafka.Translation:
    try:
        found = kafka.find(part.cls) or rocketmq_connect.find(part.cls) or debezium.find(part.cls)
        found = found or packages.CLASSES.get(part.cls)
    except ValueError as why:
        raise part.refuse(str(why)) from None
    if found is not None:
        return found
    classes = {
        kafka.PACKAGE: kafka.known(),
        rocketmq_connect.PACKAGE: list(rocketmq_connect.CLASSES),
        debezium.PACKAGE: list(debezium.CLASSES),
        "": list(packages.CLASSES),
    }
    known = [package + name for package, names in classes.items() for name in names]
    near = get_close_matches(part.cls, known, n=1, cutoff=0.5)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise part.refuse(f"there is no transform {part.cls!r} here{meant}")


# ------------------------------------------------------------------------------------------ what the document then says


def _parts(chain: Chain, begun: Type, value: PeerForm) -> Json:
    """With filters alone payloads stay the bytes they are."""
    conditions = [str(step["filter"]) for step in chain.steps if "filter" in step]
    if conditions and len(conditions) == len(chain.steps) and not chain.changes:
        return {"filter": {"when": " AND ".join(conditions)}}
    return {"parse": _parse(chain, begun, value), "transforms": chain.steps, "encode": _encode(chain, value)}


def _parse(chain: Chain, begun: Type, value: PeerForm) -> Json:
    if chain.is_source or value.format == TEXT_FORMAT:
        return {"format": TEXT_FORMAT}
    if chain.changes and value.format != "json-schema":
        words = "Debezium's transform leaves events without a schema as they are"
        raise NotKept(_CONVERTER, f"{words}: value.converter.schemas.enable: true, or {_DEBEZIUM}")
    return {"format": "debezium" if chain.changes else value.format, "fields": as_written(begun)}


def _encode(chain: Chain, value: PeerForm) -> Json:
    if chain.single:
        return _single(chain, value)
    if chain.is_source and value.format == TEXT_FORMAT:
        raise NotKept(_CONVERTER, f"would write Struct{{…}}, a form of Java's: {_JSON_CONVERTER}")
    if chain.is_source and value.format == "json-schema":
        return {"format": value.format, "flavor": value.flavor}
    if not chain.is_source:
        chain.notices.append(
            ("transforms", "what is delivered is JSON, where a sink of a peer writes Struct{…} or its own")
        )
    return {"format": "json"}


def _single(chain: Chain, value: PeerForm) -> Json:
    """A value that is no object: its text."""
    [(_, one)] = chain.rows.fields
    if chain.is_source and value.format != TEXT_FORMAT and (one.kind == "text" or value.format == "json-schema"):
        raise NotKept(_CONVERTER, "the value is one text here, which it would put in quotation marks: StringConverter")
    assert one.kind in EXACT_TEXTS
    return {"format": TEXT_FORMAT}


def _with_key(encode: Json, chain: Chain, form: PeerForm) -> Json:
    """What is written, with a key that is an object: the fields that ValueToKey names, as they still are at the end."""
    assert chain.key is not None
    fields, place = chain.key
    if not chain.is_source:
        raise NotKept(
            "transforms", "ValueToKey makes an object of the key: ExtractField$Key behind it takes its field out"
        )
    if form.format == TEXT_FORMAT:
        words = "would write Struct{…}, a form of Java's"
        raise NotKept(_KEY_CONVERTER, f"{words}: {_JSON_KEYS}, or ExtractField$Key behind ValueToKey")
    later = {name for step in chain.steps[place:] for name in step}
    if later - _KEEPING or any(chain.rows.field(name) != one for name, one in fields.items()):
        raise NotKept("transforms", "a key is made of fields as they are at the end: put ValueToKey last")
    flavor = {form.flavor, encode.get("flavor", form.flavor)}
    if form.format == "json-schema" and len(flavor) > 1:
        raise NotKept(_KEY_CONVERTER, f"writes for another product than {_CONVERTER}: use the same for both")
    schema = {"flavor": form.flavor} if form.flavor else {}
    return encode | schema | {"key_format": form.format, "key_fields": list(fields)}


def _check_single_key(one: Type, form: PeerForm) -> None:
    """A key that is no object: its text is what Java writes, and JSON writes the same of a number."""
    if form.format == "json-schema" or (form.format == "json" and one.kind == "text"):
        raise NotKept(_KEY_CONVERTER, "the key is one value here, which it would write as JSON: StringConverter")
