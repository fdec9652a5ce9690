"""What a document says of payloads: `parse` and `encode`, as values. Nothing is read or looked up."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from connect_core import packages
from connect_core.config.document_parts import DocumentPart
from connect_core.config.registries import Registry, SubjectRegistry
from connect_core.pipeline.formats import avro_format
from connect_core.pipeline.formats.key_format import (
    PLAIN_KEY,
    KeyFormat,
    check_key_format,
    check_read_key,
    check_written_key,
    row_type,
)
from connect_core.pipeline.formats.known import FORMATS, INFER, Format, WrittenFormat, check_encode, check_parse
from connect_core.pipeline.formats.patterns import MAX_PATTERN
from connect_core.rows.avro_parts import Framing
from connect_core.rows.avro_schemas import is_name, schema_node
from connect_core.rows.envelope_schemas import USUAL_FLAVOR, Flavor
from connect_core.rows.event_attributes import Mode
from connect_core.rows.protobuf_schemas import check_descriptors
from connect_core.rows.types import Type, struct_of
from connect_core.rows.widening import MOST_EVOLVED
from connect_core.sdk.values import Json


def check_fields(written: object) -> object:
    """The fields themselves when each has a type, or `apply` is to find them."""
    if isinstance(written, dict):
        struct_of(written)
    elif written not in (None, INFER):
        raise ValueError(f"{written!r} is neither a mapping of fields to types nor {INFER}")
    return written


def check_types(written: Json | None) -> Json | None:
    """The fields themselves, where there are some, when each has a type."""
    if written:
        struct_of(written)
    return written


def check_schema(schema: Json | None) -> Json | None:
    """The schema itself when it is one of Avro that can be read or written here."""
    if schema is not None:
        schema_node(schema)
    return schema


def check_record_name(name: str) -> str:
    """The name itself when Avro takes it."""
    if not all(map(is_name, name.split("."))):
        raise ValueError(f"{name!r} cannot name a record: use A-Z a-z 0-9 _, and dots for its namespace")
    return name


def check_set(text: str) -> str:
    """The text itself when it is empty, or one of descriptors."""
    if text:
        check_descriptors(text)
    return text


def check_format(word: object, ours: ValidatorFunctionWrapHandler) -> object:
    """The word itself where an installed package brings the format, else what it is among ours."""
    if isinstance(word, str) and word not in FORMATS and word in packages.brought(packages.FORMATS):
        return word
    return ours(word)


_BROUGHT = (WrapValidator(check_format), PlainSerializer(str, return_type=str))
_OPTIONS: Any = Field(
    default_factory=dict, description="Of a format that an installed package brings: its options, as it names them."
)
AvroSchema = Annotated[Json | None, AfterValidator(check_schema)]
SchemaId = Annotated[int, Field(strict=True)] | None
_AVRO_SCHEMA: Any = Field(
    default=None,
    description="Of avro: the schema, a record; or `{path: PATH}`, whose text `apply` stores in its place.",
)
Descriptors = Annotated[str, AfterValidator(check_set)]
_MESSAGE: Any = Field(default="", description="Of protobuf: the full name of the message that a payload is.")
_DESCRIPTORS: Any = Field(
    default="",
    description="Of protobuf: the FileDescriptorSet that has the message, in base64; or `{path: PATH}` of a file that "
    "protoc made of it, which `apply` stores in its place.",
)
_FRAMING: Any = Field(
    default="plain",
    description="Of avro and protobuf: what is written before each value. plain: nothing. single-object, of avro: C3 "
    "01 and the fingerprint of the schema. registry: a zero byte and its number in a Schema Registry, and of protobuf "
    "the place of the message.",
)
_SCHEMA_ID: Any = Field(
    default=None,
    description="Of framing registry: the number of the schema there. Of encode `apply` asks for it, once.",
)


class InferredFrom(DocumentPart):
    """Where `fields` are from when `apply` has found them in records of the source."""

    at: datetime = Field(description="Written by `apply` beside the fields that it has inferred: when it looked.")
    records: int = Field(ge=1, description="How many JSON objects it found them in.")
    others: int = Field(default=0, ge=0, description="How many records beside these were no JSON objects.")


class Parse(DocumentPart):
    """What payloads are, so that rules and transforms can name their parts. A record that is not of the format is
    rejected; what is delivered is the payload as it was, unless transforms or encode make another one."""

    format: Annotated[Format, *_BROUGHT] = Field(
        default="none",
        description="json, csv, logfmt, regex, grok, or an access log of a web server: common, combined. json-schema: "
        "envelopes of Kafka Connect and RocketMQ Connect, with schema and payload. avro: a value of avro_schema. "
        "protobuf: a message. debezium: change events, whose rows have fields. cloudevents: events, whole as JSON, or "
        "data with attributes in headers. text: all of it is the field `text`. none: what is JSON has places that "
        "rules can name, and nothing is rejected for what it is not. Also one that an installed package brings.",
    )
    options: Json = _OPTIONS
    pattern: str = Field(
        default="",
        max_length=MAX_PATTERN,
        description="Of regex and grok: found anywhere in the payload unless ^ and $ say where. Its named groups "
        "(`(?P<status>[0-9]+)`, `%{INT:status}`) are the fields. In the syntax of RE2.",
    )
    columns: list[str] = Field(default_factory=list, description="Of csv: the names of its columns, all of them.")
    delimiter: str = Field(default=",", min_length=1, max_length=1, description="Of csv: what separates columns.")
    fields: Annotated[Json | str | None, BeforeValidator(check_fields)] = Field(
        default=None,
        description="Of json, json-schema, avro and protobuf: the fields of each payload and their types, `{id: int64, "
        "price: 'decimal(12,2)', tags: [text]}`. A record whose values are of other types is rejected. Of avro and "
        "protobuf by default those of the schema. Of cloudevents: the type of `data`, and extensions. Of debezium: the "
        "fields of the row. Of json also `infer`: `apply` finds them in the newest records of the source, once, and "
        "stores them in its place.",
    )
    inferred: InferredFrom | None = Field(
        default=None, description="Written by `apply`, beside the fields that it has inferred."
    )
    unknown: Literal["reject", "drop", "evolve"] = Field(
        default="reject",
        description="With fields: what happens to a record that has others, or to these others. Of protobuf also to "
        "those that its schema does not have. evolve, of json: a run adds the field to the document, or makes the type "
        f"of a number wider, and goes on with that; at most {MOST_EVOLVED} fields until a person applies them.",
    )
    evolved: Annotated[Json | None, AfterValidator(check_types)] = Field(
        default=None, description="Written by runs, under unknown: evolve: the fields that they have added or widened."
    )
    avro_schema: AvroSchema = _AVRO_SCHEMA
    message: str = _MESSAGE
    descriptors: Descriptors = _DESCRIPTORS
    framing: Framing = _FRAMING
    schema_id: SchemaId = _SCHEMA_ID
    registry: Registry | None = Field(
        default=None, description="Of framing registry: who knows the schemas that records were written with."
    )
    key_format: Annotated[KeyFormat, BeforeValidator(check_key_format)] = Field(
        default=PLAIN_KEY,
        description="What the keys of records are. text: one text, which templates name as `{key}`. json: an object, "
        "and json-schema: an envelope of one, as the JsonConverter of Kafka Connect and RocketMQ Connect writes it, "
        "whose fields become fields of the record, before those of the payload. A record whose key is not of the "
        "format is rejected.",
    )
    key_fields: Annotated[Json, AfterValidator(check_types)] = Field(
        default_factory=dict,
        description="With key_format json or json-schema: the fields of each key and their types, as `fields` has "
        "them. `unknown` holds for others in a key, too.",
        examples=[{"id": "int64"}],
    )
    key_prefix: str = Field(
        default="",
        description="What comes before the names of the key's fields. Two fields of one name are a fault.",
        examples=["key_"],
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Parse:
        if self.inferred is not None and not isinstance(self.fields, dict):
            raise ValueError("inferred says where fields are from that apply has inferred; there are none")
        if self.evolved is not None and not isinstance(self.fields, dict):
            raise ValueError("evolved says which fields runs have added or widened; there are none")
        parse = self.model_dump()
        check_parse(parse, _defaults(type(self)))
        check_read_key(parse)
        return self

    @property
    def infers(self) -> bool:
        """Whether `apply` has still to find the fields."""
        return self.fields == INFER

    @property
    def evolves(self) -> bool:
        """Whether runs add fields, and widen them, for records that do not fit."""
        return self.unknown == "evolve"

    def rows(self) -> Type | None:
        """What `$.NAME` may be, and of which type; None where payloads say it, or `apply` will."""
        return None if self.infers else row_type(self.model_dump())


class Encode(DocumentPart):
    """What is delivered."""

    format: Annotated[WrittenFormat, *_BROUGHT] = Field(
        default="none",
        description="json: the fields that `parse` and `transforms` make. json-schema: the same in an envelope with "
        "their schema. avro: the same as a value of avro_schema, or of a schema that is made of them. protobuf: the "
        "same as a message. debezium: change events. cloudevents: an event, of records with its attributes and `data` "
        "as fields. csv: one line of CSV. text: of records with one field, its text alone. none: the payload as it "
        "was, or JSON where there are transforms. Also one that an installed package brings.",
    )
    options: Json = _OPTIONS
    columns: list[str] = Field(
        default_factory=list, description="Of csv: the fields that are written, in this order; empty: all of them."
    )
    delimiter: str = Field(default=",", min_length=1, max_length=1, description="Of csv: what separates columns.")
    mode: Mode = Field(
        default="structured",
        description="Of cloudevents. structured: the payload is the whole event, as JSON. binary: the payload is the "
        "data, and headers have the attributes.",
    )
    flavor: Flavor = Field(
        default=USUAL_FLAVOR, description="Of json-schema, also of keys: whose JsonConverter reads it."
    )
    avro_schema: AvroSchema = _AVRO_SCHEMA
    record: Annotated[str, AfterValidator(check_record_name)] = Field(
        default=avro_format.RECORD, description="Of avro without avro_schema: the name of the record in the schema."
    )
    message: str = _MESSAGE
    descriptors: Descriptors = _DESCRIPTORS
    framing: Framing = _FRAMING
    schema_id: SchemaId = _SCHEMA_ID
    registry: SubjectRegistry | None = Field(
        default=None, description="Of framing registry: who gives the schema its number when the document is applied."
    )

    origin: dict[str, Annotated[str, Field(strict=True)]] = Field(
        default_factory=dict,
        description="Of debezium: texts for `source` of each event, such as name, db and table.",
        examples=[{"name": "shop", "table": "orders"}],
    )
    schemas: bool = Field(
        default=False, strict=True, description="Of debezium: whether each event has its schema, as schemas.enable."
    )
    key_format: Annotated[KeyFormat, BeforeValidator(check_key_format)] = Field(
        default=PLAIN_KEY,
        description="What keys are written. text: the key that the record has, or that `record` or a rule gives it. "
        "json: an object of key_fields, json-schema: the same in an envelope with their schema, of `flavor`. The "
        "payload is what `format` says.",
    )
    key_fields: list[str] = Field(
        default_factory=list,
        description="With key_format json or json-schema: the fields of which keys are made, in this order.",
        examples=[["id"]],
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Encode:
        encode = self.model_dump()
        check_encode(encode, _defaults(type(self)))
        check_written_key(encode)
        return self

    @property
    def writes_keys(self) -> bool:
        """Whether records get another key."""
        return self.key_format != PLAIN_KEY


@cache
def _defaults(part: type[DocumentPart]) -> Json:
    return {name: field.get_default(call_default_factory=True) for name, field in part.model_fields.items()}
