"""The schema of an envelope (`{"schema": …, "payload": …}` of Kafka Connect and RocketMQ Connect) beside the declared
types: how its payload is read, or why it does not fit. Pure.

A payload is read as what its schema says, and becomes what the document says: so an `int32` of 5,000,000,000 is no
int32, also where the document has int64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from connect_core.rows.json_faults import inner
from connect_core.rows.types import MAX_DEPTH, Type

Flavor = Literal["rocketmq", "kafka"]
USUAL_FLAVOR: Flavor = "rocketmq"

NAMES: Mapping[Flavor, str] = {
    "rocketmq": "io.openmessaging.connector.api.data.logical.",
    "kafka": "org.apache.kafka.connect.data.",
}
"""Before the name of a logical type, as each product calls it."""
DEBEZIUM = "io.debezium.time."
"""Before the name of a logical type of Debezium, which has finer times, and times without a zone."""
FINER = {"ms": "", "us": "Micro", "ns": "Nano"}
"""What its names say of their unit."""
LOGICAL = {"Decimal": "bytes", "Date": "int32", "Time": "int32", "Timestamp": "int64"}
"""Logical types, and what they are written as."""

_OF_DEBEZIUM: Mapping[str, tuple[str, str, str, tuple[str, ...]]] = {
    f"{DEBEZIUM}Date": ("Date", "int32", "", ("date",)),
    f"{DEBEZIUM}Time": ("Time", "int32", "ms", ("time",)),
    f"{DEBEZIUM}ZonedTimestamp": ("", "string", "", ("timestamp",)),
    **{f"{DEBEZIUM}{FINER[unit]}Time": ("Time", "int64", unit, ("time",)) for unit in ("us", "ns")},
    **{
        f"{DEBEZIUM}{word}Timestamp": ("Timestamp", "int64", unit, ("datetime", "epoch"))
        for unit, word in FINER.items()
    },
}
"""By name: the conversion, empty for texts that are read as they are; what it is written as; its unit; what it may be
declared as, beside the plain type. https://debezium.io/documentation/reference/stable/connectors/postgresql.html,
"Temporal types"."""

_SIGNED = ("int8", "int16", "int32", "int64")
_PLAIN = {"boolean": "bool", "float": "float32", "double": "float64", "string": "text", "bytes": "bytes"}
_ALSO = {"float32": ("float64",), "text": ("datetime",)}
"""Types that hold every value of another one. A date and time without a zone has no type of its own in envelopes."""


class Misfit(ValueError):
    """Why payloads of a schema are no rows of the declared fields."""


@dataclass(frozen=True)
class EnvelopePart:
    """A value, as the payload has it (`wire`) and as the document declares it. `scale` is that of a decimal, `unit`
    that of a time or moment."""

    wire: Type
    declared: Type
    logical: str = ""
    scale: int = 0
    unit: str = "ms"
    required: bool = False
    absent: bool = False
    """Declared, and not in the schema."""
    parts: tuple[EnvelopePart, ...] = ()
    """Of a struct its fields, of a list its items."""


def part_of(schema: object, rows: Type, unknown: Literal["reject", "drop"]) -> EnvelopePart:
    """How payloads of this schema become these rows. Raises Misfit."""
    if not isinstance(schema, dict) or schema.get("type") not in ("struct", "map"):
        raise Misfit(f"the schema says {_said(schema)}, the document fields")
    return _part(schema, rows, "", unknown, 0)


def _part(schema: object, one: Type, place: str, unknown: Literal["reject", "drop"], depth: int) -> EnvelopePart:
    if not isinstance(schema, dict) or not isinstance(schema.get("type"), str) or depth > MAX_DEPTH + 1:
        raise Misfit(f"{place or 'payload'}: the schema does not say its type")
    required = schema.get("optional") is not True and bool(place)
    kind = schema["type"]
    if one.kind == "struct" and kind in ("struct", "map"):
        fields = _fields(schema, one, place) if kind == "struct" else _entries(schema, one, place)
        others = [name for name in fields if one.field(name) is None]
        if others and unknown == "reject":
            raise Misfit(f"{inner(place, others[0])}: in the schema, but not declared (unknown: drop leaves such out)")
        parts = tuple(
            _part(fields[name], of, inner(place, name), unknown, depth + 1)
            if name in fields
            else EnvelopePart(Type("bool"), of, absent=True)
            for name, of in one.fields
        )
        wire = Type("struct", fields=tuple((name, of.wire) for (name, _), of in zip(one.fields, parts, strict=True)))
        return EnvelopePart(wire, one, required=required, parts=parts)
    if one.item is not None and kind == "array":
        item = _part(schema.get("items"), one.item, f"{place}[]", unknown, depth + 1)
        return EnvelopePart(Type("list", item=item.wire), one, required=required, parts=(item,))
    if (found := _leaf(schema, kind, one, required)) is None:
        raise Misfit(f"{place}: the schema says {_said(schema)}, the document {_declared(one)}")
    return found


def _fields(schema: Mapping[str, Any], one: Type, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    fields = schema.get("fields")
    for field in fields if isinstance(fields, list) else [None]:
        name = field.get("field") if isinstance(field, dict) else None
        if not isinstance(name, str) or name in found:
            raise Misfit(f"{place or 'payload'}: the schema does not name its fields, each once")
        found[name] = field
    return found


def _entries(schema: Mapping[str, Any], one: Type, place: str) -> dict[str, Any]:
    """A map with texts as keys is an object in JSON: of it, the declared ones. Any may be missing."""
    keys, values = schema.get("keys"), schema.get("values")
    if not isinstance(keys, dict) or keys.get("type") != "string" or not isinstance(values, dict):
        raise Misfit(f"{place or 'payload'}: the schema says a map whose keys are no texts, which no type here holds")
    return {name: {**values, "optional": True} for name, _ in one.fields}


def _leaf(schema: Mapping[str, Any], kind: str, one: Type, required: bool) -> EnvelopePart | None:
    if found := _OF_DEBEZIUM.get(str(schema.get("name"))):
        return _of_debezium(kind, one, required, *found)
    logical = logical_name(schema.get("name"))
    if logical:
        return _logical(schema, logical, one, required) if kind == LOGICAL[logical] else None
    return _plain(kind, one, required)


def _of_debezium(
    kind: str, one: Type, required: bool, logical: str, wire: str, unit: str, takes: tuple[str, ...]
) -> EnvelopePart | None:
    """A plain number or text where the document declares that. A moment as a number has a unit of its own."""
    if kind != wire or one.kind not in takes:
        return _plain(kind, one, required) if one.kind not in ("epoch", "datetime") else None
    if not logical:
        return EnvelopePart(one, one, required=required)
    return EnvelopePart(Type(wire), one, logical, unit=unit, required=required)


def _plain(kind: str, one: Type, required: bool) -> EnvelopePart | None:
    if kind in _SIGNED:
        if one.kind == "epoch":
            return EnvelopePart(one, one, required=required)
        if one.kind in _SIGNED and _SIGNED.index(kind) <= _SIGNED.index(one.kind):
            return EnvelopePart(Type(kind), one, required=required)
        fits = one.kind in UNSIGNED and _SIGNED.index(kind) <= _SIGNED.index(UNSIGNED[one.kind])
        return EnvelopePart(one, one, required=required) if fits else None
    said = _PLAIN.get(kind)
    if said == one.kind:
        return EnvelopePart(one, one, required=required)
    if said is None or one.kind not in _ALSO.get(said, ()):
        return None
    return EnvelopePart(one if one.kind == "datetime" else Type(said), one, required=required)


UNSIGNED = {"uint8": "int16", "uint16": "int32", "uint32": "int64"}
"""What whole numbers without a sign are written as; `uint64` is a decimal of scale 0."""


def _logical(schema: Mapping[str, Any], logical: str, one: Type, required: bool) -> EnvelopePart | None:
    if logical == "Decimal":
        scale = _scale(schema)
        fits = scale is not None and 0 <= scale <= one.scale and one.kind in ("decimal", "uint64")
        return EnvelopePart(Type("bytes"), one, logical, cast("int", scale), required=required) if fits else None
    takes = {"Date": ("date",), "Time": ("time",), "Timestamp": ("timestamp", "epoch")}[logical]
    return EnvelopePart(Type(LOGICAL[logical]), one, logical, required=required) if one.kind in takes else None


def logical_name(name: object) -> str:
    """Decimal, Date, Time or Timestamp, whichever product named it; empty for all else."""
    if not isinstance(name, str):
        return ""
    package, _, last = name.rpartition(".")
    return last if last in LOGICAL and f"{package}." in NAMES.values() else ""


def _scale(schema: Mapping[str, Any]) -> int | None:
    parameters = schema.get("parameters")
    given = str(parameters.get("scale")) if isinstance(parameters, dict) else ""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 4 else None


def _said(schema: object) -> str:
    """Never what a stranger wrote into it, but names that are known."""
    if not isinstance(schema, dict):
        return "no type"
    kind = schema.get("type")
    if (name := str(schema.get("name"))) in _OF_DEBEZIUM:
        return name
    if logical := logical_name(schema.get("name")):
        scale = _scale(schema) if logical == "Decimal" else None
        return f"{logical} of scale {scale}" if scale is not None else logical
    known = (*_SIGNED, *_PLAIN, "array", "map", "struct")
    return kind if isinstance(kind, str) and kind in known else "a type that is not known"


def _declared(one: Type) -> str:
    return "an object" if one.kind == "struct" else "a list" if one.item is not None else str(one)
