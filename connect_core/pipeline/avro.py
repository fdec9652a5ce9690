"""What `parse` and `encode` of a document say of Avro: what goes together, and what becomes of it. Pure, and light:
documents are checked by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from connect_core.pipeline.formats import AVRO
from connect_core.rows.avro_frames import MAX_ID, frame, key_of
from connect_core.rows.avro_parts import WritingPart, reading_part, rows_schema, writing_part
from connect_core.rows.avro_schemas import fields_of, schema_node
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    from connect_core.rows.avro_reading import AvroReader
    from connect_core.rows.avro_writing import AvroWriter

RECORD = "Row"
"""The name of a record for which a document gives no schema."""
PLAIN = "plain"

Lookup = Callable[[int], object]
"""See `avro_reading.Schemas`."""


def check_reading(parse: Json) -> None:
    """Of a `parse` with what it leaves out. Raises ValueError."""
    _check_together(parse)
    schema, fields = parse["avro_schema"], parse["fields"]
    if parse["format"] == AVRO and schema is None and (parse["registry"] is None or fields is None):
        raise ValueError("format avro needs avro_schema; or fields, framing: registry and registry")
    if schema is not None and fields is not None:
        reading_part(schema_node(schema), struct_of(fields), parse["unknown"])
    elif schema is not None:
        fields_of(schema_node(schema))


def check_writing(encode: Json) -> None:
    """Of an `encode` with what it leaves out. Raises ValueError."""
    _check_together(encode)
    if encode["record"] != RECORD and (encode["format"] != AVRO or encode["avro_schema"] is not None):
        raise ValueError("record goes with format avro, and without avro_schema, which says the name itself")


def _check_together(part: Json) -> None:
    framing, number, registry = part["framing"], part["schema_id"], part["registry"]
    for name, given in (
        ("avro_schema", part["avro_schema"] is not None),
        ("framing", framing != PLAIN),
        ("schema_id", number is not None),
        ("registry", registry is not None),
    ):
        if given and part["format"] != AVRO:
            raise ValueError(f"{name} goes with format avro")
    for name, value in (("schema_id", number), ("registry", registry)):
        if value is not None and framing != "registry":
            raise ValueError(f"{name} goes with framing: registry")
    if framing == "registry" and number is None and registry is None:
        raise ValueError("framing: registry needs schema_id, the number of the schema there; or registry, to ask it")
    if number is not None and not 0 < number <= MAX_ID:
        raise ValueError(f"schema_id must be from 1 to {MAX_ID:,}")


def read_rows(parse: Json) -> Type:
    """The fields of what is read."""
    return struct_of(parse["fields"]) if parse.get("fields") else fields_of(schema_node(parse["avro_schema"]))


def written_schema(encode: Json, rows: Type) -> object:
    """With which rows are written: that of the document, or one that is made of them. Raises ValueError."""
    given = encode.get("avro_schema")
    return rows_schema(rows, encode.get("record", RECORD)) if given is None else given


def record_name(encode: Json, rows: Type) -> str:
    """With its namespace."""
    schema: Any = written_schema(encode, rows)
    name, space = str(schema["name"]), str(schema.get("namespace", ""))
    return name if "." in name or not space else f"{space}.{name}"


def written_part(encode: Json, rows: Type) -> WritingPart:
    """Raises ValueError for rows that the schema does not take."""
    return writing_part(schema_node(written_schema(encode, rows)), rows)


def reader(parse: Json, lookup: Lookup | None) -> AvroReader:
    from connect_core.rows.avro_reading import AvroReader

    framing, schema, number = parse.get("framing", PLAIN), parse.get("avro_schema"), parse.get("schema_id")
    known: dict[Any, object] = {}
    if schema is not None and (framing != "registry" or number is not None):
        known[key_of(framing, schema, number)] = schema
    return AvroReader(read_rows(parse), framing, known, unknown=parse.get("unknown", "reject"), schemas=lookup)


def writer(encode: Json, rows: Type) -> AvroWriter:
    from connect_core.rows.avro_writing import AvroWriter

    framing = encode.get("framing", PLAIN)
    key = key_of(framing, written_schema(encode, rows), encode.get("schema_id"))
    return AvroWriter(written_part(encode, rows), frame(framing, key))
