"""Change events of Debezium, in JSON with their schema or without (docs/debezium.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connect_core.pipeline.formats.payload_format import Encoded, Lookup, PayloadFormat, Reader, Writer, of_values
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    import pyarrow as pa

OWN = ("ts_ms", "snapshot")
"""What an event says itself of where it comes from."""


class DebeziumFormat(PayloadFormat):
    reading_options = ("fields", "unknown")
    writing_options = ("origin", "schemas")
    reads_changes = True
    writes_changes = True

    def check_reading(self, parse: Json) -> None:
        if parse["fields"] is None:
            raise ValueError("format debezium needs fields, those of the row, as {id: int64}")

    def check_writing(self, encode: Json) -> None:
        if own := [name for name in encode["origin"] if name in OWN]:
            raise ValueError(f"origin: each event has {own[0]} of its own")

    def rows(self, parse: Json) -> Type | None:
        return struct_of(parse["fields"])

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        from connect_core.rows.debezium_reading import DebeziumReader

        return of_values(DebeziumReader(struct_of(parse["fields"]), unknown=parse.get("unknown", "reject")).read)

    def writer(self, encode: Json, rows: Type) -> Writer:
        import pyarrow as pa

        from connect_core.pipeline.formats.payloads import with_values, without
        from connect_core.rows.debezium_writing import EventWriter
        from connect_core.sdk.batches import BEFORE

        events = EventWriter(_source(encode), schemas=encode.get("schemas", False))

        def written(rows: pa.StructArray, records: pa.RecordBatch) -> Encoded:
            names = records.schema.names
            before = records.column(BEFORE) if BEFORE in names else pa.nulls(len(rows), rows.type)
            made = events.written(rows, before, records.column("operation"), records.column("timestamp"))
            kept = without(records, [row for row, _ in made.unfit])
            kept = kept.drop_columns([BEFORE]) if BEFORE in names else kept
            return Encoded(with_values(kept, made.values), made.unfit)

        return written


def _source(encode: Json) -> dict[str, str]:
    """What consumers expect to find there, and what a document says."""
    return {"version": "1", "connector": "waybill", "name": "waybill", "db": "", **encode.get("origin", {})}
