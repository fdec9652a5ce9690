"""JSON, plain and in the envelopes of Kafka Connect and RocketMQ Connect."""

from __future__ import annotations

from typing import ClassVar

from connect_core.pipeline.formats.payload_format import Lookup, PayloadFormat, Reader, Writer, of_values, to_values
from connect_core.rows.envelope_schemas import USUAL_FLAVOR
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.values import Json


class JsonFormat(PayloadFormat):
    reading_options: ClassVar[tuple[str, ...]] = ("fields", "unknown", "inferred", "evolved")
    is_plain_json = True
    evolves = True

    def rows(self, parse: Json) -> Type | None:
        return struct_of(parse["fields"]) if parse.get("fields") else None

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        from connect_core.rows.json_evolving import EvolvingReader
        from connect_core.rows.json_reading import JsonReader

        if parse.get("unknown") == "evolve":
            return of_values(EvolvingReader(struct_of(parse["fields"])).read)
        return of_values(JsonReader(struct_of(parse["fields"]), unknown=parse.get("unknown", "reject")).read)

    def writer(self, encode: Json, rows: Type) -> Writer:
        from connect_core.rows.json_writing import written

        return to_values(written)


class EnvelopeFormat(JsonFormat):
    reading_options = ("fields", "unknown")
    writing_options = ("flavor",)
    is_plain_json = False
    evolves = False

    def check_reading(self, parse: Json) -> None:
        if parse["fields"] is None:
            raise ValueError("format json-schema needs fields, as {id: int64}")

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        from connect_core.rows.json_envelopes import EnvelopeReader

        return of_values(EnvelopeReader(struct_of(parse["fields"]), unknown=parse.get("unknown", "reject")).read)

    def writer(self, encode: Json, rows: Type) -> Writer:
        from connect_core.rows.envelope_writing import written_envelopes

        flavor = encode.get("flavor", USUAL_FLAVOR)
        return to_values(lambda struct: written_envelopes(struct, flavor))
