"""A schema of Avro beside the declared types: how its values are read, or written, or why they do not fit. Pure, and
light: documents are checked by it.

What is read is what the schema says, and becomes what the document says. Where Avro has no type of its own for one of
a document (`int8`, `uint32`, …), the next larger one stands for it, and each value is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from connect_core.rows.avro_schemas import AvroNode, is_name, nullable, schema_node
from connect_core.rows.envelope_schemas import EnvelopePart, Misfit
from connect_core.rows.json_faults import inner
from connect_core.rows.types import Type
from connect_core.sdk.values import Json

Framing = Literal["plain", "single-object", "registry"]

_IN_INT = ("int8", "int16", "int32", "uint8", "uint16")
_WHOLE = {"int": ("int64", *_IN_INT), "long": ("int64", "uint32", "epoch")}
"""Types of a document that a whole number of Avro is read as."""
_PLAIN = {"boolean": "bool", "float": "float32", "double": "float64", "string": "text", "bytes": "bytes"}
_LOGICAL = {"decimal": "Decimal", "date": "Date", "time": "Time", "timestamp": "Timestamp", "datetime": "Timestamp"}
"""What the columns of envelopes call these."""
_TAKES = {
    "decimal": ("decimal", "uint64"),
    "date": ("date",),
    "time": ("time",),
    "timestamp": ("timestamp", "epoch"),
    "datetime": ("datetime",),
}
"""Logical types, and the types of a document that they are read as."""
_UNITS = {"s": "ms", "ms": "ms", "us": "us", "ns": "ns"}
"""Of a document, and of Avro."""
_MOMENTS = {"ms": "millis", "us": "micros", "ns": "nanos"}


def reading_part(node: AvroNode, one: Type, unknown: Literal["reject", "drop"], place: str = "") -> EnvelopePart:
    """How values of a schema become these rows. Raises Misfit."""
    node, _ = nullable(node)
    if one.kind == "struct" and node.kind == "record":
        fields = dict(node.fields)
        others = [name for name in fields if one.field(name) is None]
        if others and unknown == "reject":
            raise Misfit(f"{inner(place, others[0])}: in the schema, but not declared (unknown: drop leaves such out)")
        parts = tuple(
            reading_part(fields[name], of, unknown, inner(place, name))
            if name in fields
            else EnvelopePart(Type("bool"), of, absent=True)
            for name, of in one.fields
        )
        wire = Type("struct", fields=tuple((name, of.wire) for (name, _), of in zip(one.fields, parts, strict=True)))
        return EnvelopePart(wire, one, parts=parts)
    if one.item is not None and node.kind == "array":
        item = reading_part(node.branches[0], one.item, unknown, f"{place}[]")
        return EnvelopePart(Type("list", item=item.wire), one, parts=(item,))
    if (found := _leaf(node, one)) is None:
        raise Misfit(f"{place}: the schema says {node.word}, the document {declared_word(one)}")
    return found


def _leaf(node: AvroNode, one: Type) -> EnvelopePart | None:
    if node.logical and node.logical != "uuid":
        fits = one.kind in _TAKES[node.logical]
        if node.logical == "decimal":
            fits = fits and node.scale <= one.scale
        wire = {"int": "int32", "long": "int64"}.get(node.kind, "bytes")
        part = EnvelopePart(Type(wire), one, _LOGICAL[node.logical], node.scale, node.unit or "ms")
        return part if fits else None
    if node.kind in _WHOLE:
        wider = node.kind == "int" and one.kind == "int64"
        return EnvelopePart(Type("int32") if wider else one, one) if one.kind in _WHOLE[node.kind] else None
    said = {"enum": "text", "fixed": "bytes"}.get(node.kind) or _PLAIN.get(node.kind)
    if said == one.kind:
        return EnvelopePart(one, one)
    return EnvelopePart(Type("float32"), one) if (said, one.kind) == ("float32", "float64") else None


@dataclass(frozen=True)
class WritingPart:
    """A value as the document has it, and what it is written as. `optional`: whether it may be missing."""

    declared: Type
    node: AvroNode
    optional: bool
    parts: tuple[tuple[str, WritingPart | None], ...] = ()
    """Of a record its fields, in its order; of an array its items. None: the rows do not have it."""


def writing_part(node: AvroNode, one: Type, place: str = "") -> WritingPart:
    """How these rows are written as a schema says. Raises Misfit."""
    node, optional = nullable(node)
    if one.kind == "struct" and node.kind == "record":
        known = {name for name, _ in node.fields}
        if others := [name for name, _ in one.fields if name not in known]:
            raise Misfit(f"{inner(place, others[0])}: the schema has no such field (drop it, or rename it)")
        return WritingPart(one, node, optional, tuple(_of_field(name, of, one, place) for name, of in node.fields))
    if one.item is not None and node.kind == "array":
        item = writing_part(node.branches[0], one.item, f"{place}[]")
        return WritingPart(one, node, optional, (("", item),))
    if not _is_written(node, one):
        raise Misfit(f"{place}: {declared_word(one)}, and the schema says {node.word}")
    return WritingPart(one, node, optional)


def _of_field(name: str, node: AvroNode, rows: Type, place: str) -> tuple[str, WritingPart | None]:
    of = rows.field(name)
    if of is not None:
        return name, writing_part(node, of, inner(place, name))
    if not nullable(node)[1]:
        raise Misfit(f"{inner(place, name)}: the schema has this field, and it may not be missing (set it)")
    return name, None


def _is_written(node: AvroNode, one: Type) -> bool:
    kind = one.kind
    if node.logical == "decimal":
        needs = (20, 0) if kind == "uint64" else (one.precision, one.scale)
        before_point = needs[0] - needs[1] <= node.precision - node.scale
        return kind in _TAKES["decimal"] and needs[1] <= node.scale and before_point
    if node.logical and node.logical != "uuid":
        return kind in _TAKES[node.logical]
    if node.kind == "int":
        return kind in _IN_INT
    if node.kind == "long":
        return kind in (*_IN_INT, *_WHOLE["long"])
    if node.kind == "double":
        return kind in ("float32", "float64")
    return kind == ({"enum": "text", "fixed": "bytes"}.get(node.kind) or _PLAIN.get(node.kind))


def rows_schema(rows: Type, name: str) -> Json:
    """The schema of these rows, where a document gives none: any of its values may be missing. Raises Misfit."""
    return _record(rows, name, "")


def _record(rows: Type, name: str, place: str) -> Json:
    if wrong := next((one for one, _ in rows.fields if not is_name(one)), None):
        raise Misfit(f"{inner(place, wrong)}: no name that Avro has (letters, digits and _): rename it")
    fields = [
        {"name": field, "type": ["null", _schema(of, f"{name}_{field}", inner(place, field))], "default": None}
        for field, of in rows.fields
    ]
    return {"type": "record", "name": name, "fields": fields}


def _schema(one: Type, name: str, place: str) -> Any:
    if one.kind == "struct":
        return _record(one, name, place)
    if one.item is not None:
        return {"type": "array", "items": ["null", _schema(one.item, name, f"{place}[]")]}
    if one.kind in ("decimal", "uint64"):
        precision, scale = (20, 0) if one.kind == "uint64" else (one.precision, one.scale)
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if one.kind == "time" and one.unit == "ns":
        raise Misfit(f"{place}: Avro has no {one}: cast it to time(us)")
    if one.kind == "time":
        millis = _UNITS[one.unit] == "ms"
        return {"type": "int" if millis else "long", "logicalType": f"time-{'millis' if millis else 'micros'}"}
    if one.kind in ("timestamp", "datetime"):
        word = "timestamp" if one.kind == "timestamp" else "local-timestamp"
        return {"type": "long", "logicalType": f"{word}-{_MOMENTS[_UNITS[one.unit]]}"}
    if one.kind == "date":
        return {"type": "int", "logicalType": "date"}
    if one.kind in _IN_INT:
        return "int"
    return next((avro for avro, known in _PLAIN.items() if known == one.kind), "long")


def node_of_rows(rows: Type, name: str) -> AvroNode:
    """Raises Misfit."""
    return schema_node(rows_schema(rows, name))


def declared_word(one: Type) -> str:
    return "an object" if one.kind == "struct" else "a list" if one.item is not None else str(one)
