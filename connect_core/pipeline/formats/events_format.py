"""CloudEvents 1.0, structured and binary (docs/cloudevents.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from connect_core.pipeline.formats.payload_format import Encoded, Lookup, PayloadFormat, Reader, Writer
from connect_core.rows.event_attributes import check_event_rows, event_rows
from connect_core.rows.types import Type
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    import pyarrow as pa

    from connect_core.rows.json_reading import Read


class CloudEvents(PayloadFormat):
    reading_options: ClassVar[tuple[str, ...]] = ("fields", "unknown")
    writing_options: ClassVar[tuple[str, ...]] = ("mode",)
    reads_rows = True

    def check_reading(self, parse: Json) -> None:
        event_rows(parse["fields"])

    def rows(self, parse: Json) -> Type:
        return event_rows(parse.get("fields"))

    def check_rows(self, encode: Json, rows: Type) -> None:
        check_event_rows(rows)

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        from connect_core.rows.event_reading import CloudEventReader

        reader = CloudEventReader(self.rows(parse), unknown=parse.get("unknown", "reject"))

        def read(records: pa.RecordBatch) -> Read:
            return reader.read(records.column("value"), records.column("headers"))

        return read

    def writer(self, encode: Json, rows: Type) -> Writer:
        """`binding` is no option of a document: its sink says it (`Plugin.event_headers`)."""
        from connect_core.pipeline.formats.payloads import with_column, with_values, without
        from connect_core.rows.event_writing import CloudEventWriter

        writer = CloudEventWriter(rows, encode.get("mode", "structured"), encode.get("binding", ""))

        def written(struct: pa.StructArray, records: pa.RecordBatch) -> Encoded:
            made = writer.written(struct, records.column("headers"))
            fit = without(records, [row for row, _ in made.unfit])
            return Encoded(with_column(with_values(fit, made.values), "headers", made.headers), made.unfit)

        return written
