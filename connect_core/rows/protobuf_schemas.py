"""Messages of Protobuf: the descriptors that a document or a registry has -> a message, and the fields that rows have
of it. Pure, and light: documents are checked by it, so the library is loaded when it is called.

Descriptors may come from a stranger. The library refuses what is none; a message is looked into no deeper than rows go.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.json_faults import inner
from connect_core.rows.types import MAX_DEPTH, Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

Message: TypeAlias = "Descriptor"
"""Of which rows are read or written."""
FIELDS = 10_000
"""Of a message at most, with those of the messages in it."""
KINDS = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message"),
    *("bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
"""By the number that a descriptor has for it."""
INT32, UINT32 = ("int32", "sint32", "sfixed32"), ("uint32", "fixed32")
INT64, UINT64 = ("int64", "sint64", "sfixed64"), ("uint64", "fixed64")
DURATION_SCALE = 9
DURATION_DIGITS = 21

_HOW = "protoc --include_imports --descriptor_set_out=FILE writes it"
_KNOWN = re.compile(
    r"google/protobuf/(any|api|descriptor|duration|empty|field_mask|source_context|struct|timestamp|type|wrappers)\.proto"
)
"""Files that everybody has, and nobody refers to."""
_MOST_FILES = 1000
_TIME = ((1, "int64"), (2, "int32"))
_LOGICAL: dict[str, tuple[str, tuple[tuple[int, str], ...]]] = {
    "google.protobuf.Timestamp": ("Timestamp", _TIME),
    "google.protobuf.Duration": ("Duration", _TIME),
    **{
        f"google.protobuf.{name}Value": ("wrapper", ((1, name.lower()),))
        for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
    },
}
"""Messages that are one value: what they are called here, and the numbers and types of their fields."""
_REFUSED = frozenset(f"google.protobuf.{name}" for name in ("Any", "Struct", "Value", "ListValue"))
_TYPES = {
    **dict.fromkeys(INT32, "int32"),
    **dict.fromkeys(UINT32, "uint32"),
    **dict.fromkeys(INT64, "int64"),
    **dict.fromkeys(UINT64, "uint64"),
    "bool": "bool",
    "float": "float32",
    "double": "float64",
    "string": "text",
    "bytes": "bytes",
    "enum": "text",
}


@lru_cache(maxsize=16)
def message_of(descriptors: str, name: str) -> Descriptor:
    """Of a FileDescriptorSet in base64. Raises Misfit."""
    files = _files(_decoded(descriptors))
    pool = _pool(files)
    try:
        found: Descriptor = pool.FindMessageTypeByName(name)
    except (KeyError, TypeError, ValueError):
        near = get_close_matches(name, [*_names(files)], n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise Misfit(f"the descriptors have no message {name!r}{meant}") from None
    return found


def message_at(files: bytes, indexes: tuple[int, ...]) -> Descriptor:
    """Of a FileDescriptorSet whose last file it is in: at these places in the file and in its messages. Raises
    Misfit."""
    made = _files(files)
    if not made:
        raise Misfit("the schema is empty")
    one: Any = made[-1]
    names = [one.package] if one.package else []
    for at, index in enumerate(indexes):
        messages = one.nested_type if at else one.message_type
        if not index < len(messages):
            raise Misfit("the schema has no message at that place")
        one = messages[index]
        names.append(one.name)
    found: Descriptor = _pool(made).FindMessageTypeByName(".".join(names))
    return found


def set_of(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A FileDescriptorSet of these FileDescriptorProtos, which may have other names. Raises Misfit for what is none."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.message import DecodeError

    made = FileDescriptorSet()
    for name, content in files:
        try:
            file = FileDescriptorProto.FromString(content)
        except DecodeError:
            raise Misfit("the schema is no FileDescriptorProto") from None
        file.name = name
        made.file.append(file)
    return made.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def registered_file(descriptors: str, message: Descriptor) -> str:
    """The FileDescriptorProto that the message is in, in base64, as a registry is asked for it: without names that the
    registry makes itself. Raises Misfit for one that needs those of others."""
    file = next(one for one in _files(_decoded(descriptors)) if one.name == message.file.name)
    if others := [name for name in file.dependency if not _KNOWN.fullmatch(name)]:
        raise Misfit(f"its file imports {others[0]}, which a registry has by itself: say schema_id")
    file.ClearField("source_code_info")
    waiting = [*file.message_type]
    while waiting:
        one = waiting.pop()
        waiting += one.nested_type
        for field in (*one.field, *one.extension):
            if field.json_name == _json_name(field.name):
                field.ClearField("json_name")
    return b64encode(file.SerializeToString(deterministic=True)).decode()


def place_of(message: Descriptor) -> tuple[int, ...]:
    """What `message_at` finds it by."""
    if message.containing_type is not None:
        others = [one.full_name for one in message.containing_type.nested_types]
        return (*place_of(message.containing_type), others.index(message.full_name))
    others = [one.full_name for one in message.file.message_types_by_name.values()]
    return (others.index(message.full_name),)


def fields_of(message: Descriptor) -> Type:
    """The fields that a document has which declares none. Raises Misfit for what no field can be."""
    return _Fields().struct(message, "", ())


def kind_of(field: FieldDescriptor) -> str:
    return KINDS[field.type]


def logical_of(field: FieldDescriptor) -> str:
    """Timestamp, Duration or wrapper, of a message that is one value; else empty."""
    if kind_of(field) != "message":
        return ""
    name, fields = _LOGICAL.get(field.message_type.full_name, ("", ()))
    return name if fields == tuple((one.number, kind_of(one)) for one in field.message_type.fields) else ""


def is_map(field: FieldDescriptor) -> bool:
    return kind_of(field) == "message" and bool(field.message_type.GetOptions().map_entry)


def word_of(field: FieldDescriptor) -> str:
    """What the schema calls it, for reasons."""
    kind = kind_of(field)
    if is_map(field):
        return "map"
    if kind in ("message", "enum"):
        kind = f"{kind} {(field.message_type or field.enum_type).full_name}"
    return f"repeated {kind}" if field.is_repeated else kind


def is_refused(field: FieldDescriptor) -> bool:
    """Whether no row has room for it."""
    kind = kind_of(field)
    return kind == "group" or (kind == "message" and field.message_type.full_name in _REFUSED)


class _Fields:
    def __init__(self) -> None:
        self._left = FIELDS

    def struct(self, message: Descriptor, place: str, outer: tuple[str, ...]) -> Type:
        if message.full_name in outer:
            raise Misfit(f"{place}: the schema has {message.full_name} in itself; fields say how deep it is read")
        if len(outer) > MAX_DEPTH:
            raise Misfit(f"{place}: more than {MAX_DEPTH} lists and messages in each other")
        if not message.fields:
            raise Misfit(f"{place or 'payload'}: a message without fields")
        self._left -= len(message.fields)
        if self._left < 0:
            raise Misfit(f"the schema has more than {FIELDS:,} fields; fields say which of them are read")
        within = (*outer, message.full_name)
        return Type(
            "struct",
            fields=tuple((one.name, self._field(one, inner(place, one.name), within)) for one in message.fields),
        )

    def _field(self, field: FieldDescriptor, place: str, outer: tuple[str, ...]) -> Type:
        if field.is_repeated:
            return Type("list", item=self._value(field, f"{place}[]", outer))
        return self._value(field, place, outer)

    def _value(self, field: FieldDescriptor, place: str, outer: tuple[str, ...]) -> Type:
        kind, logical = kind_of(field), logical_of(field)
        if is_refused(field):
            raise Misfit(f"{place}: the schema says {word_of(field)}, which no field can be")
        if logical == "Timestamp":
            return Type("timestamp", unit="ns")
        if logical == "Duration":
            return Type("decimal", precision=DURATION_DIGITS, scale=DURATION_SCALE)
        if logical:
            return Type(_TYPES[kind_of(field.message_type.fields[0])])
        return self.struct(field.message_type, place, outer) if kind == "message" else Type(_TYPES[kind])


def check_descriptors(text: str) -> None:
    """Raises Misfit for what is no FileDescriptorSet in base64."""
    _files(_decoded(text))


def _json_name(name: str) -> str:
    """What protoc makes of it."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Misfit(f"the descriptors are not base64 of a FileDescriptorSet ({_HOW})") from None


def _files(content: bytes) -> list[FileDescriptorProto]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        files = list(FileDescriptorSet.FromString(content).file)
    except DecodeError:
        files = []
    if not files or not all(one.name for one in files):
        raise Misfit(f"the descriptors are not a FileDescriptorSet ({_HOW})")
    if len(files) > _MOST_FILES:
        raise Misfit(f"the descriptors have more than {_MOST_FILES:,} files")
    return files


def _pool(files: Iterable[FileDescriptorProto]) -> Any:
    """Raises Misfit for files that are none, or do not go together."""
    from google.protobuf.descriptor_pool import DescriptorPool

    pool, given, added = DescriptorPool(), {one.name: one for one in files}, set[str]()

    def add(name: str, depth: int) -> None:
        if name in added:
            return
        if depth > _MOST_FILES // 2:
            raise Misfit("the descriptors have files that import each other")
        one = given.get(name) or _known(name)
        added.add(name)
        for needed in one.dependency:
            add(needed, depth + 1)
        pool.Add(one)

    try:
        for name in given:
            add(name, 0)
    except (TypeError, ValueError) as error:
        if isinstance(error, Misfit):
            raise
        raise Misfit(f"the descriptors do not go together: do they lack a file? ({_HOW})") from None
    return pool


def _known(name: str) -> FileDescriptorProto:
    """Of a file that nobody gave. One that is unknown is empty: where only options of it are used, nothing lacks."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    made = FileDescriptorProto(name=name)
    if found := _KNOWN.fullmatch(name):
        made.ParseFromString(import_module(f"google.protobuf.{found[1]}_pb2").DESCRIPTOR.serialized_pb)
    return made


def _names(files: Iterable[FileDescriptorProto]) -> Iterator[str]:
    for file in files:
        waiting: list[tuple[str, Any]] = [(file.package, one) for one in file.message_type]
        while waiting:
            space, one = waiting.pop()
            name = f"{space}.{one.name}" if space else one.name
            yield name
            waiting += [(name, nested) for nested in one.nested_type]
