"""Messages of Protobuf -> rows. Pure, but for whoever knows the schemas of a registry (`Files`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.json_reading import Read
from connect_core.rows.protobuf_columns import ProtobufColumns
from connect_core.rows.protobuf_frames import Key, split_frame
from connect_core.rows.protobuf_parts import Framing, reading_fields
from connect_core.rows.protobuf_schemas import message_at
from connect_core.rows.protobuf_strict import Bound, Fields, check_strictly
from connect_core.rows.protobuf_wire import wire_class
from connect_core.rows.reading_by_schema import (
    VALUES,
    KnownSchemas,
    NotOfSchema,
    SchemaFormat,
    read_by_schema,
    without,
)
from connect_core.rows.types import Type

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

Files = Callable[[int], bytes]
"""The file that a registry has under a number, the last of a FileDescriptorSet. Raises Misfit where it has none that
can be read; what the registry itself fails with is for the run."""


class _Known(NamedTuple):
    """How messages of one schema are read."""

    fields: Fields
    bound: Bound
    parse: Callable[[bytes], Any]


class ProtobufReader:
    """`known`: the messages that the document has, by what stands before their values. `unknown`: of fields in a
    schema that are not declared, and of those in a value that its schema does not have. `message`: the only name that
    messages of a registry may have, where the document says one."""

    def __init__(
        self,
        rows: Type,
        framing: Framing,
        known: dict[Key, Descriptor],
        *,
        unknown: Literal["reject", "drop"] = "reject",
        files: Files | None = None,
        message: str = "",
    ) -> None:
        self._type, self._framing, self._unknown, self._ask, self._name = rows, framing, unknown, files, message
        self._schemas: KnownSchemas[Key, _Known] = KnownSchemas({key: self._made(one) for key, one in known.items()})
        self._numbers = {key[0] for key in known if key is not None}

    def read(self, values: pa.Array) -> Read:
        """`values` are binary. Each is a row or has a reason."""
        split = partial(split_frame, self._framing)
        return read_by_schema(
            values, self._type, SchemaFormat("Protobuf", split, self._schema, self._decoded, self._rows)
        )

    def _rows(self, known: _Known, messages: list[Any]) -> tuple[pa.StructArray, dict[int, str]]:
        columns = ProtobufColumns()
        made = columns.rows(messages, known.fields, self._type)
        return without(made, columns.unfit), columns.unfit

    def _decoded(self, known: _Known, payload: bytes) -> tuple[Any, int]:
        """And how many values it holds at most. What would be written as it came is read exactly; what holds many
        values is looked at before the library makes them. Raises NotOfSchema."""
        from google.protobuf.message import DecodeError

        most = known.bound.values(len(payload))
        if most > VALUES:
            most = check_strictly(known.fields, payload, self._unknown)
        try:
            message = known.parse(payload)
        except DecodeError:
            check_strictly(known.fields, payload, self._unknown)
            raise NotOfSchema("it is none") from None
        message.DiscardUnknownFields()  # one that has another form than its schema says is among them
        if message.SerializeToString(deterministic=True) != payload:
            check_strictly(known.fields, payload, self._unknown)
        return message, most

    def _schema(self, key: Key) -> _Known | str:
        """Or why its values are not read."""
        if (known := self._schemas.get(key)) is not None:
            return known
        assert key is not None  # without a frame there is one schema, that of the document
        number, place = key
        if number in self._numbers:
            return "another message of the schema than that of the document"
        if self._ask is None:
            return f"written with schema {number}, and the document has none of that number"
        try:
            known = self._made(self._named(message_at(self._ask(number), place)))
        except Misfit as why:
            known = str(why)
        return self._schemas.add(key, f"schema {number}: {known}" if isinstance(known, str) else known)

    def _named(self, message: Descriptor) -> Descriptor:
        if self._name and message.full_name != self._name:
            raise Misfit(f"another message than {self._name}")
        return message

    def _made(self, message: Descriptor) -> _Known | str:
        try:
            fields = reading_fields(message, self._type, self._unknown)
        except Misfit as why:
            return str(why)
        return _Known(fields, Bound.of(fields), wire_class(fields).FromString)
