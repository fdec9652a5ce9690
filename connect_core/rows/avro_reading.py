"""Values of Avro -> rows. Pure, but for whoever knows the schemas of a registry (`Schemas`).

A value is decoded as its schema says, without logical types: numbers stay numbers, whatever calendars and decimals of
Python could hold. Then they become the declared columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from connect_core.rows.avro_frames import Key, split_frame
from connect_core.rows.avro_parts import Framing, reading_part
from connect_core.rows.avro_schemas import AvroNode, schema_node, wire_schema
from connect_core.rows.avro_strict import check_strictly
from connect_core.rows.envelope_columns import EnvelopeColumns
from connect_core.rows.envelope_schemas import EnvelopePart, Misfit
from connect_core.rows.json_columns import failing
from connect_core.rows.json_faults import expected, inner
from connect_core.rows.json_reading import Read
from connect_core.rows.reading_by_schema import KnownSchemas, NotOfSchema, SchemaFormat, read_by_schema, without
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type

Schemas = Callable[[int], object]
"""The schema that a registry has under a number. Raises Misfit where it has none that can be read; what the registry
itself fails with is for the run."""

_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)


class _Known(NamedTuple):
    """How values of one schema are read."""

    part: EnvelopePart
    node: AvroNode
    wire: Any


class AvroReader:
    """`known`: the schemas that the document has, by what stands before their values. `unknown` as the reader of JSON
    has it: of fields in a schema."""

    def __init__(
        self,
        rows: Type,
        framing: Framing,
        known: dict[Key, object],
        *,
        unknown: Literal["reject", "drop"] = "reject",
        schemas: Schemas | None = None,
    ) -> None:
        self._type, self._framing, self._unknown, self._ask = rows, framing, unknown, schemas
        self._schemas: KnownSchemas[Key, _Known] = KnownSchemas(
            {key: self._made(schema) for key, schema in known.items()}
        )

    def read(self, values: pa.Array) -> Read:
        """`values` are binary. Each is a row or has a reason."""
        form = SchemaFormat("Avro", partial(split_frame, self._framing), self._schema, _decoded, _rows)
        return read_by_schema(values, self._type, form)

    def _schema(self, key: Key) -> _Known | str:
        """Or why its values are not read."""
        if (known := self._schemas.get(key)) is not None:
            return known
        if not isinstance(key, int):
            return "written with another schema than that of the document (another fingerprint)"
        if self._ask is None:
            return f"written with schema {key}, and the document has none of that number"
        try:
            known = self._made(self._ask(key))
        except Misfit as why:
            known = str(why)
        return self._schemas.add(key, f"schema {key}: {known}" if isinstance(known, str) else known)

    def _made(self, schema: object) -> _Known | str:
        from fastavro import parse_schema

        try:
            node = schema_node(schema)
            return _Known(reading_part(node, self._type, self._unknown), node, parse_schema(wire_schema(node)))
        except Misfit as why:
            return str(why)


def _decoded(known: _Known, payload: bytes) -> tuple[Any, int]:
    """The decoder is given nothing that was not looked at. Raises NotOfSchema."""
    from fastavro import schemaless_reader

    count = check_strictly(known.node, payload)
    try:
        return schemaless_reader(BytesIO(payload), known.wire, None), count
    except UnicodeDecodeError:
        raise NotOfSchema("a text in it is not UTF-8") from None


def _rows(known: _Known, decoded: list[Any]) -> tuple[pa.StructArray, dict[int, str]]:
    unfit = _unfit(decoded, known.part.wire)
    places = [at for at in range(len(decoded)) if at not in unfit]
    columns = EnvelopeColumns()
    made = columns.rows(pa.array([decoded[at] for at in places], arrow_type(known.part.wire)), known.part)
    return without(made, columns.unfit), unfit | {places[at]: why for at, why in columns.unfit.items()}


def _unfit(decoded: list[Any], wire: Type) -> dict[int, str]:
    """Those that Arrow does not take: whole numbers that their type does not hold."""

    def fails(low: int, high: int) -> bool:
        try:
            pa.array(decoded[low:high], arrow_type(wire))
        except _UNFIT:
            return True
        return False

    return {at: _fault(decoded[at], wire, "") for at in failing(fails, 0, len(decoded))}


def _fault(value: Any, wire: Type, place: str) -> str:
    """Of the first value that Arrow does not take."""
    if wire.kind == "struct":
        parts = [(inner(place, name), value.get(name), of) for name, of in wire.fields]
    elif wire.item is not None:
        parts = [(f"{place}[]", one, wire.item) for one in value]
    else:
        return f"{place}: {expected(wire)}"
    for where, one, of in parts:
        try:
            pa.array([one], arrow_type(of))
        except _UNFIT:
            return _fault(one, of, where)
    return f"{place or 'payload'}: {expected(wire)}"
