"""Avro: plain, as a single object, and with the five bytes of a Schema Registry (docs/avro.md)."""

from __future__ import annotations

from typing import Any

from connect_core.pipeline.formats.payload_format import Lookup, PayloadFormat, Reader, Writer, of_values, to_values
from connect_core.pipeline.formats.schema_framing import FRAMED, PLAIN, check_framing
from connect_core.rows.avro_frames import frame, key_of
from connect_core.rows.avro_parts import WritingPart, reading_part, rows_schema, writing_part
from connect_core.rows.avro_schemas import fields_of, schema_node
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.values import Json

RECORD = "Row"
"""The name of a record for which a document gives no schema."""

_FRAMED = ("avro_schema", *FRAMED)


class AvroFormat(PayloadFormat):
    reading_options = ("fields", "unknown", *_FRAMED)
    writing_options = ("record", *_FRAMED)
    reads_rows = True
    schema_kind = "AVRO"

    def check_reading(self, parse: Json) -> None:
        check_framing(parse)
        schema, fields = parse["avro_schema"], parse["fields"]
        if schema is None and (parse["registry"] is None or fields is None):
            raise ValueError("format avro needs avro_schema; or fields, framing: registry and registry")
        if schema is not None and fields is not None:
            reading_part(schema_node(schema), struct_of(fields), parse["unknown"])
        elif schema is not None:
            fields_of(schema_node(schema))

    def check_writing(self, encode: Json) -> None:
        check_framing(encode)
        if encode["record"] != RECORD and encode["avro_schema"] is not None:
            raise ValueError("record goes with format avro, and without avro_schema, which says the name itself")

    def rows(self, parse: Json) -> Type:
        return struct_of(parse["fields"]) if parse.get("fields") else fields_of(schema_node(parse["avro_schema"]))

    def check_rows(self, encode: Json, rows: Type) -> None:
        _written_part(encode, rows)

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        from connect_core.rows.avro_reading import AvroReader

        framing, schema, number = parse.get("framing", PLAIN), parse.get("avro_schema"), parse.get("schema_id")
        known: dict[Any, object] = {}
        if schema is not None and (framing != "registry" or number is not None):
            known[key_of(framing, schema, number)] = schema
        unknown = parse.get("unknown", "reject")
        return of_values(AvroReader(self.rows(parse), framing, known, unknown=unknown, schemas=lookup).read)

    def writer(self, encode: Json, rows: Type) -> Writer:
        from connect_core.rows.avro_writing import AvroWriter

        framing = encode.get("framing", PLAIN)
        key = key_of(framing, self.written_schema(encode, rows), encode.get("schema_id"))
        return to_values(AvroWriter(_written_part(encode, rows), frame(framing, key)).written)

    def written_schema(self, encode: Json, rows: Type) -> object:
        given = encode.get("avro_schema")
        return rows_schema(rows, encode.get("record", RECORD)) if given is None else given

    def record_name(self, encode: Json, rows: Type) -> str:
        schema: Any = self.written_schema(encode, rows)
        name, space = str(schema["name"]), str(schema.get("namespace", ""))
        return name if "." in name or not space else f"{space}.{name}"


def _written_part(encode: Json, rows: Type) -> WritingPart:
    """Raises ValueError for rows that the schema does not take."""
    return writing_part(schema_node(AVRO.written_schema(encode, rows)), rows)


AVRO = AvroFormat()
