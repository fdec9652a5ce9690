"""The transforms of a flat document as the parts of a native one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import yaml

from connect_core.config.peers import kafka, rocketmq_connect
from connect_core.config.peers.predicates import condition_of
from connect_core.config.peers.reading import NotKept, PeerPart, transforms_in, unknown_options
from connect_core.config.peers.state import EXACT_TEXTS, Chain
from connect_core.pipeline.formats.patterns import TEXT_FORMAT
from connect_core.rows.types import Type, as_written, struct_of
from connect_core.sdk.values import Json

FIELDS_KEY = "waybill.fields"
"""What no peer's configuration says and transforms have to know: the fields of the JSON in a topic."""
_FILTER = f"{kafka.PACKAGE}Filter"
_CONVERTER = "value.converter"
_JSON_CONVERTER = "value.converter: org.apache.kafka.connect.json.JsonConverter, value.converter.schemas.enable: false"


@dataclass(frozen=True)
class PeerValue:
    """How values stand in the topic, by the converter: `json`, `json-schema` in a `flavor`, or one `text`."""

    format: str
    flavor: str = ""


@dataclass(frozen=True)
class Translated:
    """`parts` are those of a native document. `topics` are what the topics are called by the end."""

    parts: Json
    topics: Mapping[str, str] | None
    notices: Sequence[tuple[str, str]] = field(default=())


def translated(flat: Mapping[str, Any], topics: Sequence[str], value: PeerValue, *, is_source: bool) -> Translated:
    """Raises NotKept for the first thing that cannot be kept."""
    chain = _begin(flat, topics, value, is_source=is_source)
    begun = chain.rows
    for part in transforms_in(flat):
        _translate(part, chain)
        for one in (part, *((part.predicate,) if part.predicate else ())):
            if unknown := next(unknown_options(one), None):
                raise NotKept(unknown, f"unknown key of {one.cls} (known: {', '.join(sorted(one.known))})")
    if chain.key is not None:
        raise NotKept(
            "transforms", "ValueToKey makes an object of the key: ExtractField$Key behind it takes its field out"
        )
    return Translated(_parts(chain, begun, value), chain.topics, chain.notices)


def _begin(flat: Mapping[str, Any], topics: Sequence[str], value: PeerValue, *, is_source: bool) -> Chain:
    known = {topic: topic for topic in topics}
    if is_source and FIELDS_KEY in flat:
        raise NotKept(FIELDS_KEY, "is for the JSON in a topic; what a source reads is one text, until HoistField")
    if is_source or value.format == TEXT_FORMAT:
        return Chain(Type("struct", fields=((TEXT_FORMAT, Type("text")),)), True, known, is_source)
    if not flat.get(FIELDS_KEY):
        how = "waybill fields TOPIC suggests them"
        raise NotKept("transforms", f'need the fields of the JSON: {FIELDS_KEY}: {{"id": "int64"}}; {how}')
    return Chain(_fields(flat[FIELDS_KEY]), False, known, is_source)


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
        found = kafka.find(part.cls) or rocketmq_connect.find(part.cls)
    except ValueError as why:
        raise part.refuse(str(why)) from None
    if found is not None:
        return found
    packages = {kafka.PACKAGE: kafka.known(), rocketmq_connect.PACKAGE: list(rocketmq_connect.CLASSES)}
    known = [package + name for package, names in packages.items() for name in names]
    near = get_close_matches(part.cls, known, n=1, cutoff=0.5)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise part.refuse(f"there is no transform {part.cls!r} here{meant}")


# ------------------------------------------------------------------------------------------ what the document then says


def _parts(chain: Chain, begun: Type, value: PeerValue) -> Json:
    """Without transforms, or with filters alone, payloads stay the bytes they are."""
    if not chain.steps:
        return {}
    conditions = [str(step["filter"]) for step in chain.steps if "filter" in step]
    if len(conditions) == len(chain.steps):
        return {"filter": {"when": " AND ".join(conditions)}}
    return {"parse": _parse(chain, begun, value), "transforms": chain.steps, "encode": _encode(chain, value)}


def _parse(chain: Chain, begun: Type, value: PeerValue) -> Json:
    if chain.is_source or value.format == TEXT_FORMAT:
        return {"format": TEXT_FORMAT}
    return {"format": value.format, "fields": as_written(begun)}


def _encode(chain: Chain, value: PeerValue) -> Json:
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


def _single(chain: Chain, value: PeerValue) -> Json:
    """A value that is no object: its text."""
    [(_, one)] = chain.rows.fields
    if chain.is_source and value.format != TEXT_FORMAT and (one.kind == "text" or value.format == "json-schema"):
        raise NotKept(_CONVERTER, "the value is one text here, which it would put in quotation marks: StringConverter")
    assert one.kind in EXACT_TEXTS
    return {"format": TEXT_FORMAT}
