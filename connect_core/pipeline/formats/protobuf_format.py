"""Protobuf: plain, and with what a Schema Registry needs before it (docs/protobuf.md)."""

from __future__ import annotations

from connect_core.pipeline.formats.payload_format import Lookup, PayloadFormat, Reader, Writer, of_values, to_values
from connect_core.pipeline.formats.schema_framing import FRAMED, PLAIN, check_framing
from connect_core.rows.protobuf_frames import Key, frame
from connect_core.rows.protobuf_parts import reading_fields, writing_fields
from connect_core.rows.protobuf_schemas import Message, fields_of, message_of, place_of, registered_file
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.values import Json

_OPTIONS = ("message", "descriptors", *FRAMED)


class ProtobufFormat(PayloadFormat):
    reading_options = ("fields", "unknown", *_OPTIONS)
    writing_options = _OPTIONS
    reads_rows = True
    drops_without_fields = True
    schema_kind = "PROTOBUF"

    def check_reading(self, parse: Json) -> None:
        _check_framing(parse)
        fields = parse["fields"]
        if not parse["descriptors"]:
            if parse["registry"] is None or fields is None:
                raise ValueError(
                    "format protobuf needs message and descriptors; or fields, framing: registry and registry"
                )
            return
        message = _message(parse)
        if fields is None:
            fields_of(message)
        else:
            reading_fields(message, struct_of(fields), parse["unknown"])

    def check_writing(self, encode: Json) -> None:
        _check_framing(encode)
        if not encode["descriptors"]:
            raise ValueError("format protobuf needs message and descriptors, which give fields their numbers")
        message = _message(encode)
        if encode["registry"] is not None and encode["schema_id"] is None:
            registered_file(encode["descriptors"], message)

    def rows(self, parse: Json) -> Type:
        return struct_of(parse["fields"]) if parse.get("fields") else fields_of(_message(parse))

    def check_rows(self, encode: Json, rows: Type) -> None:
        writing_fields(_message(encode), rows)

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        from connect_core.rows.protobuf_reading import ProtobufReader

        framing, number = parse.get("framing", PLAIN), parse.get("schema_id")
        known: dict[Key, Message] = {}
        if parse.get("descriptors") and (framing == PLAIN or number is not None):
            message = _message(parse)
            known[None if number is None else (number, place_of(message))] = message
        made = ProtobufReader(
            self.rows(parse),
            framing,
            known,
            unknown=parse.get("unknown", "reject"),
            files=lookup,  # type: ignore[arg-type]  # of this format
            message=parse.get("message", ""),
        )
        return of_values(made.read)

    def writer(self, encode: Json, rows: Type) -> Writer:
        from connect_core.rows.protobuf_writing import ProtobufWriter

        message = _message(encode)
        before = frame(encode.get("framing", PLAIN), (encode.get("schema_id") or 0, place_of(message)))
        return to_values(ProtobufWriter(writing_fields(message, rows), before).written)

    def written_schema(self, encode: Json, rows: Type) -> object:
        return registered_file(encode["descriptors"], _message(encode))

    def record_name(self, encode: Json, rows: Type) -> str:
        return str(_message(encode).full_name)


def _message(part: Json) -> Message:
    if not part.get("message"):
        raise ValueError("descriptors need message, the full name of the one that payloads are")
    return message_of(part["descriptors"], part["message"])


def _check_framing(part: Json) -> None:
    if part["framing"] not in (PLAIN, "registry"):
        raise ValueError(f"framing {part['framing']} goes with format avro")
    if part["message"] and not part["descriptors"] and part["registry"] is None:
        raise ValueError("message needs descriptors; or framing: registry and registry")
    check_framing(part)
