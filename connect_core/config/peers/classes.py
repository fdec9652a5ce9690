"""Classes of transforms, predicates and converters that flat documents may name, and the options of each. Pure.

What a class of these does with an option its translation says; `must` are those without which there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from connect_core.config.peers import debezium, kafka, packages, predicates, rocketmq_connect

PeerKind = Literal["transform", "predicate", "converter"]


@dataclass(frozen=True)
class PeerClass:
    """By its whole name. `keys` are its options, and whether each has to be there."""

    name: str
    kind: PeerKind
    keys: dict[str, bool]


def transforms_and_predicates() -> Iterator[PeerClass]:
    for name in kafka.known():
        yield _transform(kafka.PACKAGE, name)
    for name in sorted(rocketmq_connect.CLASSES.keys() - rocketmq_connect.NOT_KEPT):
        yield _transform(rocketmq_connect.PACKAGE, name)
    for name in sorted(debezium.CLASSES):
        yield _transform(debezium.PACKAGE, name)
    for name in sorted(packages.CLASSES):
        yield _transform("", name)
    for name in predicates.KNOWN:
        yield PeerClass(f"{predicates.PACKAGE}{name}", "predicate", _keys(_PREDICATES[name]))


def converters() -> Iterator[PeerClass]:
    """Those of texts and bytes are known by the end of their names, whichever package they are of."""
    for name, said in _CONVERTERS.items():
        yield PeerClass(name, "converter", _keys(said))


def _transform(package: str, name: str) -> PeerClass:
    short = name.rpartition(".")[2]
    said = _TRANSFORMS.get(short) or _TRANSFORMS[short.partition("$")[0]]
    of_kafka = {"predicate": False, "negate": False} if package != rocketmq_connect.PACKAGE else {}
    return PeerClass(f"{package}{name}", "transform", _keys(said) | of_kafka)


def _keys(said: str) -> dict[str, bool]:
    """`*` behind a name: it has to be there."""
    return {one.rstrip("*"): one.endswith("*") for one in said.split()}


_TRANSFORMS = {
    "Cast": "spec*",
    "DropHeaders": "headers*",
    "ExtractField": "field* field.syntax.version",
    "ExtractField$Key": "field*",
    "Filter": " ",
    "Flatten": "delimiter",
    "HeaderFrom": "fields* headers* operation*",
    "HoistField": "field*",
    "InsertField": "static.field static.value topic.field partition.field offset.field timestamp.field",
    "InsertHeader": "header* value.literal*",
    "MaskField": "fields* replacement",
    "RegexRouter": "regex* replacement",
    "ReplaceField": "include exclude renames whitelist blacklist",
    "SetSchemaMetadata": "schema.name schema.version",
    "TimestampConverter": "field* target.type* format unix.precision",
    "TimestampRouter": "topic.format timestamp.format",
    "ValueToKey": "fields*",
    "ExtractNewRecordState": "drop.tombstones delete.tombstone.handling.mode delete.handling.mode add.fields "
    "add.fields.prefix add.headers add.headers.prefix drop.fields.header.name drop.fields.from.key "
    "drop.fields.keep.schema.compatible replace.null.with.default route.by.field",
    "TombstoneHandler": "behavior",
    "Drop$Key": "schema.behavior",
    "Hash$Value": "field.name* function* skip.missing.or.null",
    "ChangeCase": "from* to*",
    "ExtractNestedField": "input.outer.field.name* input.inner.field.name* output.field.name",
    "PatternFilter": "pattern* fields",
    "PatternRename": "field.pattern* field.pattern.flags field.replacement",
    "SetMaximumPrecision": "precision.max*",
    "SetNull": "field.pattern*",
}
_PREDICATES = {"TopicNameMatches": "pattern*", "HasHeaderKey": "name*", "RecordIsTombstone": " "}
_REGISTRY = "schema.registry.url* auto.register.schemas use.latest.version"
_CONVERTERS = {
    "org.apache.rocketmq.connect.runtime.converter.record.StringConverter": "serializer.encoding deserializer.encoding",
    "org.apache.rocketmq.connect.runtime.converter.record.ByteArrayConverter": " ",
    "org.apache.rocketmq.connect.runtime.converter.record.json.JsonConverter": "schemas.enable",
    "org.apache.rocketmq.schema.avro.AvroConverter": _REGISTRY,
    "org.apache.kafka.connect.storage.StringConverter": "converter.encoding",
    "org.apache.kafka.connect.converters.ByteArrayConverter": " ",
    "org.apache.kafka.connect.json.JsonConverter": "schemas.enable",
    "io.confluent.connect.avro.AvroConverter": _REGISTRY,
    "io.confluent.connect.protobuf.ProtobufConverter": _REGISTRY,
}
