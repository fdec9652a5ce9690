"""A message of Protobuf beside the declared types: how it is read, or written, or why it does not fit. Pure, and light:
documents are checked by it.

What is read is what the schema says, and becomes what the document says. Only what is declared is looked into, so a
message that holds itself is read as deep as a document says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from connect_core.rows.avro_parts import declared_word
from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.json_faults import inner
from connect_core.rows.protobuf_schemas import (
    DURATION_SCALE,
    INT32,
    INT64,
    UINT32,
    UINT64,
    is_map,
    is_refused,
    kind_of,
    logical_of,
    word_of,
)
from connect_core.rows.types import Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

Presence = Literal["implicit", "explicit", "required", "repeated", "entry"]
"""implicit: the default is not written, and what is not there is the default. explicit: may be missing. entry: the key
or value of a map, which is written always, and is the default where it is missing."""
Framing = Literal["plain", "registry"]

_READ_AS = {
    "bool": ("bool",),
    **dict.fromkeys(INT32, ("int32", "int64", "int8", "int16", "uint8", "uint16")),
    **dict.fromkeys(UINT32, ("uint32", "uint64", "int64", "uint8", "uint16")),
    **dict.fromkeys(INT64, ("int64", "epoch", "uint32")),
    **dict.fromkeys(UINT64, ("uint64",)),
    "float": ("float32", "float64"),
    "double": ("float64",),
    "string": ("text",),
    "bytes": ("bytes",),
    "enum": ("text", "int32"),
    "Timestamp": ("timestamp", "epoch"),
    "Duration": ("decimal",),
}
_WRITTEN_OF = {
    "bool": ("bool",),
    **dict.fromkeys(INT32, ("int8", "int16", "int32", "uint8", "uint16")),
    **dict.fromkeys(UINT32, ("uint8", "uint16", "uint32")),
    **dict.fromkeys(INT64, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "epoch")),
    **dict.fromkeys(UINT64, ("uint8", "uint16", "uint32", "uint64")),
    "float": ("float32",),
    "double": ("float32", "float64"),
    "string": ("text",),
    "bytes": ("bytes",),
    "enum": ("text", "int32"),
    "Timestamp": ("timestamp", "epoch"),
    "Duration": ("decimal",),
}


@dataclass(frozen=True)
class ProtoField:
    """A field of a message as its bytes have it, and as the document declares it. `declared` is None for one that the
    rows do not have; `number` is 0 for one that the schema does not have."""

    name: str
    number: int
    kind: str
    declared: Type | None
    presence: Presence = "implicit"
    logical: str = ""
    """Timestamp, Duration, or wrapper: then `kind` is that of the value in it."""
    packed: bool = False
    oneof: str = ""
    """Its name, where it has other members."""
    is_map: bool = False
    fields: tuple[ProtoField, ...] = ()
    """Of a message."""
    values: tuple[tuple[str, int], ...] = ()
    """Of an enum."""
    closed: bool = False
    """Of an enum: whether it has no other numbers."""

    @property
    def value_type(self) -> Type:
        """Of a list that of its items."""
        assert self.declared is not None
        return self.declared.item if self.presence == "repeated" and self.declared.item else self.declared


def reading_fields(
    message: Descriptor, rows: Type, unknown: Literal["reject", "drop"], place: str = ""
) -> tuple[ProtoField, ...]:
    """How messages become these rows: first the declared fields, in order. Raises Misfit."""
    known = {field.name: field for field in message.fields}
    others = [name for name in known if rows.field(name) is None]
    if others and unknown == "reject":
        raise Misfit(f"{inner(place, others[0])}: in the schema, but not declared (unknown: drop leaves such out)")
    declared = [
        _read(known[name], of, unknown, inner(place, name)) if name in known else ProtoField(name, 0, "", of)
        for name, of in rows.fields
    ]
    return (*declared, *(_left_out(known[name], inner(place, name)) for name in others))


def _read(field: FieldDescriptor, one: Type, unknown: Literal["reject", "drop"], place: str) -> ProtoField:
    made = _made(field, one)
    value = _value(field, one)
    if value is not None and _is_struct(field, value):
        return replace(made, fields=reading_fields(field.message_type, value, unknown, place))
    if value is None or value.kind not in _READ_AS.get(_sort(made), ()) or _is_coarse(made, value):
        raise Misfit(f"{place}: the schema says {word_of(field)}, the document {declared_word(one)}")
    return made


def writing_fields(message: Descriptor, rows: Type, place: str = "") -> tuple[ProtoField, ...]:
    """How these rows are written as a message. Raises Misfit."""
    known = {field.name: field for field in message.fields}
    if other := next((name for name, _ in rows.fields if name not in known), None):
        raise Misfit(f"{inner(place, other)}: the schema has no such field (drop it, or rename it)")
    for name, field in known.items():
        if field.is_required and rows.field(name) is None:
            raise Misfit(f"{inner(place, name)}: the schema has this field, and it may not be missing (set it)")
    if lacks := [name for name in known if is_entry(message) and rows.field(name) is None]:
        raise Misfit(f"{inner(place, lacks[0])}: an entry of a map has key and value")
    return tuple(_written(known[name], of, inner(place, name)) for name, of in rows.fields)


def _written(field: FieldDescriptor, one: Type, place: str) -> ProtoField:
    made = _made(field, one)
    value = _value(field, one)
    if value is not None and _is_struct(field, value):
        return replace(made, fields=writing_fields(field.message_type, value, place))
    fits = value is not None and value.kind in _WRITTEN_OF.get(_sort(made), ())
    if not fits or (made.logical == "Duration" and value is not None and value.scale > DURATION_SCALE):
        raise Misfit(f"{place}: {declared_word(one)}, and the schema says {word_of(field)}")
    return made


def is_entry(message: Descriptor) -> bool:
    return bool(message.GetOptions().map_entry)


def _value(field: FieldDescriptor, one: Type) -> Type | None:
    """The declared type of one value; None where only one of both is a list."""
    if field.is_repeated:
        return one.item
    return one if one.item is None else None


def _is_struct(field: FieldDescriptor, value: Type) -> bool:
    return kind_of(field) == "message" and value.kind == "struct" and not logical_of(field) and not is_refused(field)


def _sort(field: ProtoField) -> str:
    return field.logical if field.logical in _READ_AS else field.kind


def _is_coarse(field: ProtoField, value: Type) -> bool:
    return field.logical == "Duration" and value.scale < DURATION_SCALE


def _made(field: FieldDescriptor, one: Type | None) -> ProtoField:
    kind, logical = kind_of(field), logical_of(field)
    if logical == "wrapper":
        kind = kind_of(field.message_type.fields[0])
    oneof = field.containing_oneof
    enum = field.enum_type if kind == "enum" else None
    return ProtoField(
        field.name,
        field.number,
        kind,
        one,
        _presence(field),
        logical,
        bool(field.is_packed),
        oneof.name if oneof is not None and len(oneof.fields) > 1 else "",
        is_map(field),
        values=tuple((value.name, value.number) for value in enum.values) if enum else (),
        closed=bool(enum and enum.is_closed),
    )


def _presence(field: FieldDescriptor) -> Presence:
    if field.is_repeated:
        return "repeated"
    if is_entry(field.containing_type):
        return "entry"
    if field.is_required:
        return "required"
    return "explicit" if field.has_presence else "implicit"


def _left_out(field: FieldDescriptor, place: str) -> ProtoField:
    """One that nobody looks into: whatever is in a message, a text or an enum is bytes, or a number."""
    made = _made(field, None)
    if made.kind == "group" and made.oneof:
        raise Misfit(f"{place}: the schema says a group in a oneof, which is not read here")
    kinds = {"string": "bytes", "message": "bytes", "enum": "int32"}
    kind = "bytes" if made.logical else kinds.get(made.kind, made.kind)
    return ProtoField(made.name, made.number, kind, None, made.presence, packed=made.packed, oneof=made.oneof)
