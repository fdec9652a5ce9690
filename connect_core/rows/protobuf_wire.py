"""The class by which messages are read and written: made of the fields that a document looks at. Pure.

It is not that of the schema, but one with the same bytes. A field that nobody looks at is bytes, so it is not decoded;
the number of an enum is a number, so none is lost that has no name; an entry of a map is a message, so their order
stays, and two of one key are seen.
"""

from __future__ import annotations

from typing import Any

from connect_core.rows.protobuf_parts import ProtoField
from connect_core.rows.types import Type

_WORDS = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed64": 6,
    "fixed32": 7,
    "bool": 8,
    "string": 9,
    "message": 11,
    "bytes": 12,
    "uint32": 13,
    "enum": 5,
    "sfixed32": 15,
    "sfixed64": 16,
    "sint32": 17,
    "sint64": 18,
}
"""What a descriptor has for a type."""
_TIME = (ProtoField("seconds", 1, "int64", Type("int64")), ProtoField("nanos", 2, "int32", Type("int32")))


def wire_class(fields: tuple[ProtoField, ...]) -> Any:
    """Its fields are called `attribute(field)`."""
    from google.protobuf.descriptor_pb2 import Edition, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    file = FileDescriptorProto(name="wire", syntax="editions", edition=Edition.EDITION_2023)
    name = _message(file, fields)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))


def attribute(field: ProtoField) -> str:
    return f"f{field.number}"


def inner_fields(field: ProtoField) -> tuple[ProtoField, ...]:
    """Of what is a message in the bytes."""
    if field.logical == "wrapper":
        return (ProtoField("value", 1, field.kind, field.value_type),)
    return _TIME if field.logical else field.fields


def _message(file: Any, fields: tuple[ProtoField, ...]) -> str:
    """Its name in the file."""
    message = file.message_type.add(name=f"t{len(file.message_type)}")
    oneofs: dict[str, int] = {}
    for field in fields:
        if not field.number or field.kind == "group":
            continue  # a group is not known here, and dropped as all that is not
        made = message.field.add(name=attribute(field), number=field.number)
        made.label = made.LABEL_REPEATED if field.presence == "repeated" else made.LABEL_OPTIONAL
        made.type = _WORDS["message" if field.logical else field.kind]
        if made.type == made.TYPE_MESSAGE:
            made.type_name = f".{_message(file, inner_fields(field))}"
        if field.oneof:
            if field.oneof not in oneofs:
                oneofs[field.oneof] = len(oneofs)
                message.oneof_decl.add(name=f"o{oneofs[field.oneof]}")
            made.oneof_index = oneofs[field.oneof]
        _describe(made, field)
    return str(message.name)


def _describe(made: Any, field: ProtoField) -> None:
    features = made.options.features
    if field.presence == "repeated" and made.type not in (made.TYPE_MESSAGE, made.TYPE_STRING, made.TYPE_BYTES):
        features.repeated_field_encoding = features.PACKED if field.packed else features.EXPANDED
    if field.presence == "implicit":
        features.field_presence = features.IMPLICIT
