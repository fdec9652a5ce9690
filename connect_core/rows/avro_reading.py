"""Values of Avro -> rows. Pure, but for whoever knows the schemas of a registry (`Schemas`).

A value is decoded as its schema says, without logical types: numbers stay numbers, whatever calendars and decimals of
Python could hold. Then they become the declared columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from connect_core.rows.avro_frames import Key, split_frame
from connect_core.rows.avro_parts import Framing, reading_part
from connect_core.rows.avro_schemas import AvroNode, schema_node, wire_schema
from connect_core.rows.avro_strict import VALUES, NotAvro, check_strictly
from connect_core.rows.envelope_columns import EnvelopeColumns
from connect_core.rows.envelope_schemas import EnvelopePart, Misfit
from connect_core.rows.json_columns import failing
from connect_core.rows.json_faults import expected, inner
from connect_core.rows.json_reading import Read
from connect_core.rows.reading_by_schema import KnownSchemas, read_by_schema
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type

PART = 1 << 20
"""Bytes of values that are decoded at once, or fewer that hold so many others (`VALUES`), and one more."""

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
        split = partial(split_frame, self._framing)
        return read_by_schema(values, self._type, split, self._schema, _read)

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


def _read(known: _Known, payloads: list[bytes], begin: int) -> tuple[Read, int]:
    """As many as are decoded at once, and where they end; rows are counted from `begin` on."""
    unfit: dict[int, str] = {}
    decoded: list[Any] = []
    places: list[int] = []
    size = values = 0
    end = begin
    while end < len(payloads) and size < PART and values < VALUES:
        payload, row = payloads[end], end - begin
        size, end = size + len(payload), end + 1
        try:
            values += check_strictly(known.node, payload)
            decoded.append(_decoded(known, payload))
            places.append(row)
        except NotAvro as why:
            unfit[row] = f"not Avro of its schema: {why}"
    decoded, places = _fitting(decoded, places, known.part.wire, unfit)
    columns = EnvelopeColumns()
    made = columns.rows(pa.array(decoded, arrow_type(known.part.wire)), known.part)
    if columns.unfit:
        unfit |= {places[row]: reason for row, reason in columns.unfit.items()}
        fits = np.ones(len(made), np.bool_)
        fits[list(columns.unfit)] = False
        made = made.filter(pa.array(fits))
    return Read(made, sorted(unfit.items())), end


def _decoded(known: _Known, payload: bytes) -> Any:
    """Of a value that was looked at. Raises NotAvro."""
    from fastavro import schemaless_reader

    try:
        return schemaless_reader(BytesIO(payload), known.wire, None)
    except UnicodeDecodeError:
        raise NotAvro("a text in it is not UTF-8") from None


def _fitting(decoded: list[Any], places: list[int], wire: Type, unfit: dict[int, str]) -> tuple[list[Any], list[int]]:
    """Without those that Arrow does not take: whole numbers that their type does not hold."""

    def fails(low: int, high: int) -> bool:
        try:
            pa.array(decoded[low:high], arrow_type(wire))
        except _UNFIT:
            return True
        return False

    bad = set(failing(fails, 0, len(decoded)))
    for at in bad:
        unfit[places[at]] = _fault(decoded[at], wire, "")
    stay = [at for at in range(len(decoded)) if at not in bad]
    return [decoded[at] for at in stay], [places[at] for at in stay]


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
