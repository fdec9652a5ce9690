"""The formats that a document can name: ours, and those that packages bring. Pure, and light: documents are checked by
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from connect_core.pipeline.formats.avro_format import AVRO
from connect_core.pipeline.formats.debezium_format import DebeziumFormat
from connect_core.pipeline.formats.events_format import CloudEvents
from connect_core.pipeline.formats.json_format import EnvelopeFormat, JsonFormat
from connect_core.pipeline.formats.package_format import PackageFormat
from connect_core.pipeline.formats.payload_format import PayloadFormat
from connect_core.pipeline.formats.protobuf_format import ProtobufFormat
from connect_core.pipeline.formats.text_formats import Csv, Pattern, TextFields, WholeText
from connect_core.sdk.values import Json

Format = Literal[
    "none",
    "json",
    "json-schema",
    "avro",
    "protobuf",
    "debezium",
    "cloudevents",
    "text",
    "csv",
    "logfmt",
    "regex",
    "grok",
    "common",
    "combined",
]
"""What `parse.format` may be."""
WrittenFormat = Literal["none", "json", "json-schema", "avro", "protobuf", "debezium", "cloudevents", "csv", "text"]
"""What `encode.format` may be."""

INFER = "infer"
"""What `parse.fields` may be instead of fields."""

FORMATS: Mapping[str, PayloadFormat] = {
    "none": PayloadFormat(),
    "json": JsonFormat(),
    "json-schema": EnvelopeFormat(),
    "avro": AVRO,
    "protobuf": ProtobufFormat(),
    "debezium": DebeziumFormat(),
    "cloudevents": CloudEvents(),
    "text": WholeText(),
    "csv": Csv(),
    "logfmt": TextFields(),
    "regex": Pattern(),
    "grok": Pattern(),
    "common": TextFields(),
    "combined": TextFields(),
}


_OWN_SCHEMA = "each payload has its own schema: a field that is new there is to be declared"
_REGISTRY = "which fields there are is said by the schema, in the document or in a registry: change it there"
_NO_EVOLVING = {
    "json-schema": _OWN_SCHEMA,
    "avro": _REGISTRY,
    "protobuf": _REGISTRY,
    "debezium": "a change event is about a row of a table, whose fields are to be declared as the table has them",
    "cloudevents": "the attributes of an event are those of its specification, and data is to be declared",
}
"""Why fields of these formats do not evolve."""
_NO_FIELDS = "other formats declare no fields"


def format_named(name: str) -> PayloadFormat:
    """One of ours, else one that a package brings."""
    return FORMATS.get(name) or PackageFormat(name)


def read_format(parse: Json) -> PayloadFormat:
    return format_named(parse.get("format", "none"))


def written_format(encode: Json) -> PayloadFormat:
    """Where transforms are and no format, JSON is written."""
    form = encode.get("format", "none")
    return format_named("json" if form == "none" else form)


def check_parse(parse: Json, defaults: Json) -> None:
    """Of a whole `parse` and what each of its fields is by default. Raises ValueError."""
    words = "; the fields of other formats are texts, which cast changes"
    reading = {name: format_named(name).reading_options for name in _named(parse, Format)}
    of_payload = {name: value for name, value in parse.items() if name != "unknown" or not parse["key_fields"]}
    _check_options(of_payload, defaults, reading, {"fields": words})
    drops = parse["fields"] is not None or parse["key_fields"] or read_format(parse).drops_without_fields
    if parse["unknown"] != defaults["unknown"] and not drops:
        raise ValueError("unknown goes with fields")
    if parse["unknown"] == "evolve" and not read_format(parse).evolves:
        raise ValueError(f"unknown: evolve goes with format json; {_NO_EVOLVING.get(parse['format'], _NO_FIELDS)}")
    if parse["fields"] == INFER and parse["format"] != "json":
        raise ValueError("fields: infer goes with format json")
    read_format(parse).check_reading(parse)


def check_encode(encode: Json, defaults: Json) -> None:
    """Of a whole `encode` and what each of its fields is by default. Raises ValueError."""
    of_payload = {
        name: value for name, value in encode.items() if name not in FORMATS[encode["key_format"]].writing_options
    }
    writing = {name: format_named(name).writing_options for name in _named(encode, WrittenFormat)}
    _check_options(of_payload, defaults, writing, {})
    written_format(encode).check_writing(encode)


def _named(part: Json, ours: object) -> tuple[str, ...]:
    """Our formats, and the one of a package that this part of a document names."""
    known = get_args(ours)
    form = part["format"]
    if part["options"] and form in known:
        raise ValueError("options goes with a format that a package brings")
    return known if form in known else (*known, form)


def _check_options(part: Json, defaults: Json, options: Mapping[str, tuple[str, ...]], more: Mapping[str, str]) -> None:
    for name, value in part.items():
        of = [form for form, goes_with in options.items() if name in goes_with]
        if of and value != defaults[name] and part["format"] not in of:
            *others, last = of
            words = f"{', '.join(others)} or {last}" if others else last
            raise ValueError(f"{name} goes with format {words}{more.get(name, '')}")
