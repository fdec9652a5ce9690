"""The transforms of Kafka Connect, one function each. Pure.

Each takes what the document says of it and the chain so far, and adds the steps that do the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from connect_core.config.peers.patterns import java_pattern, replaced
from connect_core.config.peers.reading import PeerPart
from connect_core.config.peers.state import EXACT_TEXTS, Chain, literal, path, reference
from connect_core.pipeline.transforms.casts import FLOATS, WHOLE
from connect_core.rows.types import Type
from connect_core.sdk.values import Json

Translation: TypeAlias = Callable[[PeerPart, Chain], None]

PACKAGE = "org.apache.kafka.connect.transforms."
_CASTS = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "float32", "float64")},
    "boolean": "bool",
    "string": "text",
}
_PLAIN_DECIMAL_SCALE = 6
"""Up to here Java writes every decimal without an exponent."""
_PLAIN_WORD = re.compile(r"[A-Za-z][\w ./@-]*", re.ASCII)
_PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_NO_WORDS = frozenset({"null", "nan", "infinity"})
_NOTHING_OF = {
    **dict.fromkeys(WHOLE | FLOATS | {"decimal"}, "0"),
    "text": "",
    "bool": "false",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01T00:00:00Z",
}
"""What MaskField puts there, by the kind of a type."""
_PRECISIONS = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


# --------------------------------------------------------------------------------------------------------- whole fields


def _hoist(part: PeerPart, chain: Chain) -> None:
    name = part.need("field")
    if chain.single:
        [(only, _)] = chain.rows.fields
        if only != name:
            chain.add(part, {"rename": {path(only): _new(name)}})
        chain.single = False
    else:
        chain.add(part, {"hoist": path(name)})


def _extract(part: PeerPart, chain: Chain) -> None:
    name = part.need("field")
    _only_v1(part)
    one = chain.field(part, name, "field")
    if one.kind == "struct":
        chain.add(part, {"extract": path(name)})
    elif one.kind in EXACT_TEXTS:
        chain.add(part, {"keep": [path(name)]})
        chain.single = True
    else:
        raise part.refuse(f"the value would be {one} alone: keep it in an object, with ReplaceField$Value and include")


def _only_v1(part: PeerPart) -> None:
    if part.get("field.syntax.version", "V1").upper() != "V1":
        raise part.refuse("only V1 is kept: name fields of objects in a native document", "field.syntax.version")


def _replace_field(part: PeerPart, chain: Chain) -> None:
    include, exclude = part.words("include", "whitelist"), part.words("exclude", "blacklist")
    fields = chain.fields(part)
    for name in (*include, *exclude):
        if name not in fields:
            chain.notice(part, f"there is no field {name!r} to include or exclude")
    kept = [name for name in fields if name not in exclude and (not include or name in include)]
    if not kept:
        raise part.refuse("leaves no field")
    if kept != list(fields):
        chain.add(part, {"keep": [path(name) for name in kept]})
    renames = dict(_pairs(part, "renames"))
    if names := {path(name): _new(renames[name]) for name in kept if renames.get(name, name) != name}:
        chain.add(part, {"rename": names})


def _pairs(part: PeerPart, option: str) -> list[tuple[str, str]]:
    pairs = [tuple(one.split(":")) for one in part.words(option)]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise part.refuse("is a list of pairs, as a:b,c:d", option)
    return [(first.strip(), second.strip()) for first, second in pairs]


def _new(name: str) -> str:
    return path(name) if "." in name or name.startswith('"') else name


def _flatten(part: PeerPart, chain: Chain) -> None:
    chain.fields(part)
    chain.add(part, {"flatten": part.get("delimiter") or "."})


def _insert(part: PeerPart, chain: Chain) -> None:
    for option in ("partition.field", "offset.field", "timestamp.field"):
        if part.get(option):
            raise part.refuse("is no field here: which record it is travels in the header WAYBILL", option)
    values: Json = {}
    if name := part.get("static.field"):
        values[_insertable(part, name, "static.field", chain)] = literal(part.need("static.value"))
    if name := part.get("topic.field"):
        values[_insertable(part, name, "topic.field", chain)] = _topic(part, chain)
    if not values:
        raise part.refuse("inserts nothing: static.field and static.value, or topic.field")
    chain.add(part, {"set": values})


def _insertable(part: PeerPart, name: str, option: str, chain: Chain) -> str:
    """`?` and `!` behind a name say whether it may be missing: here every field may."""
    name = name.removesuffix("?").removesuffix("!")
    if name in chain.fields(part):
        raise part.refuse(f"there is a field {name!r} already: exclude it first, with ReplaceField$Value", option)
    return path(name)


def _topic(part: PeerPart, chain: Chain) -> str:
    topics = chain.topics
    if topics is not None and len(set(topics.values())) == 1:
        return literal(next(iter(topics.values())))
    if topics is not None and all(one == seen for one, seen in topics.items()):
        return "{topic}"
    raise part.refuse("several topics have other names by then: put this before the router", "topic.field")


# ----------------------------------------------------------------------------------------------------- values of fields


def _cast(part: PeerPart, chain: Chain) -> None:
    pairs = [(*one.split(":", 1), "")[:2] for one in part.need("spec").split(",")]
    types: Json = {}
    for name, wanted in ((first.strip(), second.strip()) for first, second in pairs):
        if not wanted:
            raise part.refuse("casts the whole value: name fields, as id:string,price:float64", "spec")
        if wanted not in _CASTS:
            raise part.refuse(f"{wanted!r} is no type to cast to ({', '.join(_CASTS)})", "spec")
        given = chain.field(part, name, "spec")
        if wanted == "string" and not _is_exact_as_text(given):
            words = "Java writes it in a form of its own: leave it a number, or say it is a text in waybill.fields"
            raise part.refuse(f"{name} is {given}, and {words}", "spec")
        types[path(name)] = _CASTS[wanted]
    chain.add(part, {"cast": types})
    chain.notice(part, "a value that does not fit exactly is rejected, where Kafka Connect cuts or rounds it")


def _is_exact_as_text(given: Type) -> bool:
    return given.kind in EXACT_TEXTS or (given.kind == "decimal" and given.scale <= _PLAIN_DECIMAL_SCALE)


def _mask(part: PeerPart, chain: Chain) -> None:
    replacement = part.get("replacement")
    ways: Json = {}
    for name in _needed(part, "fields"):
        kind = chain.field(part, name, "fields").kind
        if replacement and kind not in WHOLE | FLOATS | {"decimal", "text"}:
            raise part.refuse(f"{name} is {kind}: only numbers and texts are replaced", "replacement")
        if kind not in _NOTHING_OF:
            raise part.refuse(f"{name} is {kind}, which has no value for nothing: exclude it, with ReplaceField$Value")
        ways[path(name)] = {"with": replacement or _NOTHING_OF[kind]}
    chain.add(part, {"mask": ways})


def _needed(part: PeerPart, option: str) -> list[str]:
    part.need(option)
    return part.words(option)


def _timestamp(part: PeerPart, chain: Chain) -> None:
    name = part.get("field")
    if not name:
        raise part.refuse("converts the whole value: name a field", "field")
    unit = _PRECISIONS.get(part.get("unix.precision", "milliseconds"))
    if unit is None:
        raise part.refuse(f"is one of {', '.join(_PRECISIONS)}", "unix.precision")
    given, wanted = chain.field(part, name, "field"), part.need("target.type")
    steps = _MOMENTS.get((_moment(given), wanted))
    if steps is None:
        words = "int64, text and timestamp are made unix, string and Timestamp"
        raise part.refuse(f"{name} is {given}, which is not made {wanted} exactly: {words}", "target.type")
    form = part.need("format") if {"parse_time", "format_time"} & set(steps) else part.get("format")
    for one in steps:
        if one in ("parse_time", "format_time"):
            chain.add(part, {one: {path(name): form}})
        else:
            chain.add(part, {"cast": {path(name): one.format(unit=unit)}})


def _moment(given: Type) -> str:
    """What Kafka Connect calls it."""
    kinds = {"int64": "unix", "text": "string", "timestamp": "Timestamp", "epoch": "Timestamp"}
    return kinds.get(given.kind, given.kind)


_MOMENTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("unix", "Timestamp"): ("epoch({unit})", "timestamp(ms)"),
    ("unix", "unix"): (),
    ("Timestamp", "unix"): ("timestamp(ms)", "epoch({unit})", "int64"),
    ("Timestamp", "Timestamp"): ("timestamp(ms)",),
    ("string", "Timestamp"): ("parse_time",),
    ("string", "unix"): ("parse_time", "epoch({unit})", "int64"),
    ("Timestamp", "string"): ("timestamp(ms)", "format_time"),
    ("unix", "string"): ("epoch({unit})", "timestamp(ms)", "format_time"),
}
"""By what a field is and what it becomes: its types one after the other, or the step between texts and moments."""


# --------------------------------------------------------------------------------------------------- beside the value


def _value_to_key(part: PeerPart, chain: Chain) -> None:
    names = _needed(part, "fields")
    chain.key = {name: chain.field(part, name, "fields") for name in names}, len(chain.steps)


def _extract_key(part: PeerPart, chain: Chain) -> None:
    """The key of the steps is set where ValueToKey stands: the field may be gone by now."""
    name = part.need("field")
    if chain.key is None:
        raise part.refuse("the key is one text here; ValueToKey makes an object of it first")
    fields, place = chain.key
    if name not in fields:
        raise part.refuse(f"the key has no field {name!r} (it has: {', '.join(fields)})", "field")
    if fields[name].kind not in EXACT_TEXTS:
        raise part.refuse(f"{name} is {fields[name]}, and Java writes it in a form of its own: use Cast$Value", "field")
    chain.steps.insert(place, {"record": {"key": reference(name)}})
    chain.key, chain.single_key = None, fields[name]


def _header_from(part: PeerPart, chain: Chain) -> None:
    names, headers, operation = _needed(part, "fields"), _needed(part, "headers"), part.need("operation").lower()
    if len(names) != len(headers):
        raise part.refuse(f"{len(names)} fields and {len(headers)} headers", "headers")
    if operation not in ("move", "copy"):
        raise part.refuse(f"{operation!r} is neither move nor copy", "operation")
    for name in names:
        kind = chain.field(part, name, "fields").kind
        if kind not in EXACT_TEXTS:
            raise part.refuse(f"{name} is {kind}, and Java writes it in a form of its own: use Cast$Value", "fields")
    given = {header: reference(name) for header, name in zip(headers, names, strict=True)}
    chain.add(part, {"record": {"headers": given}})
    if operation == "move":
        chain.add(part, {"drop": [path(name) for name in names]})


def _insert_header(part: PeerPart, chain: Chain) -> None:
    """Kafka Connect guesses the type of the value, and may write another text of it."""
    header, value = part.need("header"), part.need("value.literal")
    plain = _PLAIN_WORD.fullmatch(value) and value.lower() not in _NO_WORDS
    if not plain and not _PLAIN_NUMBER.fullmatch(value):
        words = "Kafka Connect reads it as a number, a date or a list: only words and whole numbers are kept"
        raise part.refuse(f"{words}; in a native document: record: {{headers: {{NAME: VALUE}}}}", "value.literal")
    chain.add(part, {"record": {"headers": {header: literal(value)}}})


def _drop_headers(part: PeerPart, chain: Chain) -> None:
    chain.add(part, {"record": {"headers": dict.fromkeys(_needed(part, "headers"))}})


def _route(part: PeerPart, chain: Chain) -> None:
    if chain.topics is None:
        raise part.refuse("the topic depends on the time of a record by then")
    regex, replacement = part.need("regex"), part.get("replacement")
    try:
        pattern = java_pattern(regex)
        chain.topics = {
            topic: replaced(pattern, replacement, seen, once=True) if pattern.fullmatch(seen) else seen
            for topic, seen in chain.topics.items()
        }
    except ValueError as why:
        raise part.refuse(str(why), "regex") from None
    if not chain.is_source:
        chain.notice(part, "accepted: the target of this sink does not depend on the topic")


def _route_by_time(part: PeerPart, chain: Chain) -> None:
    if chain.is_source:
        raise part.refuse("lines and publishes have no time of their own; a rule may name a topic by a field: to")
    part.get("topic.format")
    part.get("timestamp.format")
    chain.topics = None
    chain.notice(part, "accepted: the target of this sink does not depend on the topic")


def _schema(part: PeerPart, chain: Chain) -> None:
    part.get("schema.name")
    part.get("schema.version")
    chain.notice(part, "accepted without effect: what is written has no name and version of its schema")


VALUE: Mapping[str, Translation] = {
    "Cast": _cast,
    "ExtractField": _extract,
    "Flatten": _flatten,
    "HeaderFrom": _header_from,
    "HoistField": _hoist,
    "InsertField": _insert,
    "MaskField": _mask,
    "ReplaceField": _replace_field,
    "SetSchemaMetadata": _schema,
    "TimestampConverter": _timestamp,
}
KEY: Mapping[str, Translation] = {"ExtractField": _extract_key}
WHOLE_RECORD: Mapping[str, Translation] = {
    "DropHeaders": _drop_headers,
    "InsertHeader": _insert_header,
    "RegexRouter": _route,
    "TimestampRouter": _route_by_time,
    "ValueToKey": _value_to_key,
}


def known() -> list[str]:
    return sorted({"Filter", *WHOLE_RECORD, *(f"{name}$Value" for name in VALUE), *(f"{name}$Key" for name in KEY)})


def find(cls: str) -> Translation | None:
    """None for a class that is not Kafka Connect's. Raises ValueError for one that is not kept."""
    if not cls.startswith(PACKAGE):
        return None
    name, _, which = cls.removeprefix(PACKAGE).partition("$")
    found = {"": WHOLE_RECORD, "Value": VALUE, "Key": KEY}.get(which, {}).get(name)
    if found is None and which == "Key" and name in VALUE:
        raise ValueError("only ExtractField$Key behind ValueToKey is kept: change the fields in the value, before it")
    return found
