"""Transforms of Kafka Connect and RocketMQ Connect, as their documentation and tests configure them, in flat documents:
what records become is compared with what they say themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect_core.config import Settings, check, read_text
from connect_core.config.checking import Checked
from connect_core.config.ruling import pipeline_of
from connect_core.errors import ConfigError
from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.records import encode_headers, header_pairs
from connect_core.sdk.testing.driving import records

KAFKA = "org.apache.kafka.connect.transforms."
PREDICATES = f"{KAFKA}predicates."
ROCKETMQ = "org.apache.rocketmq.connect.transforms."
CONFLUENT, AIVEN = "io.confluent.connect.transforms.", "io.aiven.kafka.connect.transforms."
JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
SOURCE = {"connector.class": "FileSourceConnector", "filename": "test.txt", "connect.topicname": "connect-test"}
SINK = {"connector.class": "FileSinkConnector", "filename": "out.txt", "connect.topicnames": "foo;bar"}

Read = Callable[[dict[str, Any]], Checked]


@pytest.fixture
def read(home: Path, settings: Settings) -> Read:
    def checked(flat: dict[str, Any]) -> Checked:
        (written,) = read_text(json.dumps(flat), where="x.json", suffix=".json")
        return check(written, home, settings, "given")

    return checked


def chain(*given: dict[str, Any], names: str = "abcdefgh") -> dict[str, Any]:
    """As a document has them; each with `type`."""
    flat: dict[str, Any] = {"transforms": ",".join(names[: len(given)])}
    for name, options in zip(names, given, strict=False):
        flat |= {f"transforms.{name}.{key}": value for key, value in options.items()}
    return flat


def kafka(name: str, **options: Any) -> dict[str, Any]:
    return {"type": KAFKA + name, **{key.replace("_", "."): value for key, value in options.items()}}


def of_rocketmq(name: str, options: dict[str, str]) -> dict[str, Any]:
    return {"class": ROCKETMQ + name, **options}


def made(checked: Checked, *bodies: Any, **columns: Any) -> list[dict[str, Any]]:
    """The records that the pipeline of the document makes."""
    given = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in bodies]
    shaped = Pipeline(pipeline_of(checked.document)).shape(records(given, **columns))
    assert shaped.rejected == ()
    return shaped.kept.to_pylist()


def values(checked: Checked, *bodies: Any, **columns: Any) -> list[Any]:
    return [json.loads(one["value"]) for one in made(checked, *bodies, **columns)]


def test_kafkas_own_example_of_a_file_source(read: Read) -> None:
    """https://kafka.apache.org/documentation/#connect_transforms"""
    checked = read(
        {
            **SOURCE,
            **JSON,
            "transforms": "MakeMap, InsertSource",
            "transforms.MakeMap.type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms.MakeMap.field": "line",
            "transforms.InsertSource.type": "org.apache.kafka.connect.transforms.InsertField$Value",
            "transforms.InsertSource.static.field": "data_source",
            "transforms.InsertSource.static.value": "test-file-source",
        }
    )
    assert [one["value"].decode() for one in made(checked, b"foo", b"bar", b"hello world")] == [
        '{"line":"foo","data_source":"test-file-source"}',
        '{"line":"bar","data_source":"test-file-source"}',
        '{"line":"hello world","data_source":"test-file-source"}',
    ]


def filtering(pattern: str, **more: str) -> dict[str, Any]:
    predicate = {"predicates": "IsFoo", "predicates.IsFoo.type": f"{PREDICATES}TopicNameMatches"}
    return {
        **chain(kafka("Filter", **({"predicate": "IsFoo"} | more))),
        **predicate,
        "predicates.IsFoo.pattern": pattern,
    }


@pytest.mark.parametrize(
    ("pattern", "more", "passing"),
    [
        ("foo", {}, ["bar"]),
        ("foo", {"negate": "true"}, ["foo"]),
        ("fo", {}, ["foo", "bar"]),
        ("...", {}, []),
        ("(foo|bar)", {"negate": "true"}, ["foo", "bar"]),
    ],
)
def test_kafkas_own_example_of_a_filter_by_topic(
    pattern: str, more: dict[str, str], passing: list[str], read: Read
) -> None:
    """Bytes pass as the bytes they are."""
    checked = read({**SINK, **filtering(pattern, **more)})
    assert not checked.document.reshapes
    assert [one["topic"] for one in made(checked, b"\xff", b"b", topic=["foo", "bar"])] == passing


ORDER = {"id": 7, "who": {"name": "Ann", "card": "4000"}, "price": 2.5, "at": 1769867110250, "paid": True}
FIELDS = {
    "id": "int64",
    "who": {"name": "text", "card": "text"},
    "price": "decimal(6,2)",
    "at": "int64",
    "paid": "bool",
}
JSON_SINK = {**SINK, **JSON, "waybill.fields": FIELDS}
NAMED = {**SINK, **JSON, "waybill.fields": {"name": "text"}}


@pytest.mark.parametrize(
    ("transforms", "value"),
    [
        ([kafka("Cast$Value", spec="id:string,price:float64")], ORDER | {"id": "7"}),
        ([kafka("ExtractField$Value", field="who")], ORDER["who"]),
        (
            [kafka("Flatten$Value", delimiter="_"), kafka("ReplaceField$Value", include="who_name,id")],
            {"id": 7, "who_name": "Ann"},
        ),
        (
            [
                kafka("Flatten$Value"),
                kafka("ReplaceField$Value", blacklist="who.card,at", renames="who.name:name,id:no"),
            ],
            {"no": 7, "name": "Ann", "price": 2.5, "paid": True},
        ),
        ([kafka("HoistField$Value", field="order")], {"order": ORDER}),
        (
            [kafka("Flatten$Value"), kafka("MaskField$Value", fields="who.card,id,paid")],
            {"id": 0, "who.name": "Ann", "who.card": "", "price": 2.5, "at": ORDER["at"], "paid": False},
        ),
        (
            [
                kafka("ReplaceField$Value", exclude="who,paid,at"),
                kafka("MaskField$Value", fields="id", replacement="9"),
            ],
            {"id": 9, "price": 2.5},
        ),
        (
            [kafka("InsertField$Value", topic_field="from", static_field="{x}!", static_value="{y}")],
            ORDER | {"{x}": "{y}", "from": "foo"},
        ),
        (
            [
                kafka("TimestampConverter$Value", field="at", target_type="Timestamp"),
                kafka("ReplaceField$Value", include="at"),
            ],
            {"at": "2026-01-31T13:45:10.250Z"},
        ),
        (
            [
                kafka("TimestampConverter$Value", field="at", target_type="Timestamp"),
                kafka("TimestampConverter$Value", field="at", target_type="unix", unix_precision="microseconds"),
            ],
            ORDER | {"at": 1769867110250000},
        ),
        (
            [
                kafka("TimestampConverter$Value", field="at", target_type="string", format="yyyy-MM-dd HH:mm:ss.SSS"),
                kafka("ReplaceField$Value", include="at"),
            ],
            {"at": "2026-01-31 13:45:10.250"},
        ),
        (
            [
                kafka("TimestampConverter$Value", field="at", target_type="string", format="yyyy-MM-dd'T'HH:mm"),
                kafka("TimestampConverter$Value", field="at", target_type="unix", format="yyyy-MM-dd'T'HH:mm"),
                kafka("ReplaceField$Value", include="at"),
            ],
            {"at": 1769867100000},
        ),
        ([kafka("SetSchemaMetadata$Value", schema_name="order", schema_version="2")], ORDER),
    ],
)
def test_a_transform_of_kafka_connect(transforms: list[dict[str, Any]], value: Any, read: Read) -> None:
    assert values(read({**JSON_SINK, **chain(*transforms)}), ORDER, topic=["foo"]) == [value]


def test_key_and_headers_from_a_value(read: Read) -> None:
    checked = read(
        {
            **JSON_SINK,
            **chain(
                kafka("ValueToKey", fields="id,paid"),
                kafka("HeaderFrom$Value", fields="paid,id", headers="p,i", operation="move"),
                kafka("ExtractField$Key", field="id"),
                kafka("InsertHeader", header="lang", value_literal="en-GB"),
                kafka("DropHeaders", headers="old,older"),
                kafka("ExtractField$Value", field="who"),
                kafka("ExtractField$Value", field="name"),
            ),
        }
    )
    old = encode_headers([("old", "1"), ("kept", "2")])
    [record] = made(checked, ORDER, headers=[old], topic=["foo"])
    assert (record["key"], record["value"]) == ("7", b"Ann")
    assert sorted(header_pairs(record["headers"])) == [("i", "7"), ("kept", "2"), ("lang", "en-GB"), ("p", "true")]


def test_transforms_of_packages_that_people_install(read: Read) -> None:
    """As their documentation configures them."""
    transforms = (
        {"type": f"{CONFLUENT}TombstoneHandler", "behavior": "ignore"},
        {"type": f"{AIVEN}TombstoneHandler", "behavior": "drop_silent"},
        {"type": f"{AIVEN}Hash$Value", "field.name": "card", "function": "sha256", "skip.missing.or.null": "true"},
        {"type": f"{CONFLUENT}Drop$Key"},
    )
    checked = read({**JSON_SINK, "waybill.fields": {"card": "text"}, **chain(*transforms)})
    given = {"key": ["k", None], "topic": ["foo", "foo"]}
    found = made(checked, {"card": "4000 Zoë"}, {"card": None}, **given)
    hashed = hashlib.sha256("4000 Zoë".encode()).hexdigest()
    assert [(one["key"], json.loads(one["value"])["card"]) for one in found] == [(None, hashed), (None, None)]
    assert sum("nothing here is a tombstone" in one for one in checked.notices) == 2
    for package in (CONFLUENT, AIVEN):
        wrong = chain({"type": f"{package}TombstoneHandler", "behavior": "bogus"})
        with pytest.raises(ConfigError, match=r"transforms.a.behavior: line 1: 'bogus' is none of"):
            read({**JSON_SINK, "waybill.fields": {"card": "text"}, **wrong})


def test_records_with_a_header_are_filtered(read: Read) -> None:
    predicate = {"predicates": "has", "predicates.has.type": f"{PREDICATES}HasHeaderKey", "predicates.has.name": "skip"}
    checked = read({**SINK, **chain(kafka("Filter", predicate="has")), **predicate})
    headers = [encode_headers([("skip", "1")]), encode_headers([("other", "1")]), None]
    assert [one["offset"] for one in made(checked, b"", b"", b"", headers=headers)] == [1, 2]


def test_nothing_is_a_tombstone(read: Read) -> None:
    predicate = {"predicates": "gone", "predicates.gone.type": f"{PREDICATES}RecordIsTombstone"}
    checked = read({**SINK, **chain(kafka("Filter", predicate="gone")), **predicate})
    assert [one["value"] for one in made(checked, b"a")] == [b"a"]
    assert any("its predicate holds for no record" in one for one in checked.notices)


def test_a_router_names_the_topic_of_a_source(read: Read) -> None:
    router = kafka("RegexRouter", regex="(.*)-(.*)", replacement="$2.${1}\\$".replace(".${1}\\$", "_$1"))
    assert read({**SOURCE, **chain(router)}).data["sink"]["rocketmq"]["topic"] == "test_connect"
    assert not read({**SOURCE, **chain(router)}).document.reshapes
    other = kafka("RegexRouter", regex="nothing", replacement="x")
    assert read({**SOURCE, **chain(other)}).data["sink"]["rocketmq"]["topic"] == "connect-test"


def test_transforms_behind_a_router_see_the_other_topic(read: Read) -> None:
    router = kafka("RegexRouter", regex="(foo|bar)", replacement="all")
    checked = read({**JSON_SINK, **chain(router, kafka("InsertField$Value", topic_field="from"))})
    assert [one["from"] for one in values(checked, ORDER, ORDER, topic=["foo", "bar"])] == ["all", "all"]


def test_envelopes_are_read_and_written_for_the_product_of_the_converter(read: Read) -> None:
    enveloped = {**SOURCE, "value.converter": JSON["value.converter"], **chain(kafka("HoistField$Value", field="line"))}
    checked = read(enveloped)
    assert checked.data["encode"] == {"format": "json-schema", "flavor": "kafka"}
    [body] = made(checked, b"foo")
    assert json.loads(body["value"])["payload"] == {"line": "foo"}
    back = read(
        {**SINK, "value.converter": JSON["value.converter"], "waybill.fields": '{"line": "text"}'}
        | chain(kafka("InsertField$Value", static_field="a", static_value="b"))
    )
    assert values(back, body["value"]) == [{"line": "foo", "a": "b"}]


# ----------------------------------------------------------------------------------------------- RocketMQ Connect's own


@pytest.mark.parametrize(
    ("transform", "fields", "given", "value"),
    [
        (
            of_rocketmq("PatternRename$Value", {"field.pattern": "\\.", "field.replacement": "_"}),
            {"first.name": "text", "last.name": "text"},
            {"first.name": "example", "last.name": "user"},
            {"first_name": "example", "last_name": "user"},
        ),
        (
            of_rocketmq("PatternRename$Value", {"field.pattern": "^prefixed", "field.replacement": ""}),
            {"prefixedfirstname": "text", "prefixedlastname": "text"},
            {"prefixedfirstname": "example", "prefixedlastname": "user"},
            {"firstname": "example", "lastname": "user"},
        ),
        (
            of_rocketmq(
                "ExtractNestedField$Value",
                {
                    "input.inner.field.name": "state",
                    "input.outer.field.name": "address",
                    "output.field.name": "state",
                },
            ),
            {"first_name": "text", "address": {"city": "text", "state": "text"}},
            {"first_name": "test", "address": {"city": "Austin", "state": "tx"}},
            {"first_name": "test", "address": {"city": "Austin", "state": "tx"}, "state": "tx"},
        ),
        (
            of_rocketmq("ChangeCase$Value", {"from": "UPPER_UNDERSCORE", "to": "LOWER_UNDERSCORE"}),
            {"FIRST_NAME": "text"},
            {"FIRST_NAME": "test"},
            {"first_name": "test"},
        ),
        (
            of_rocketmq("SetMaximumPrecision$Value", {"precision.max": "32"}),
            {"n": "decimal(38,1)"},
            {"n": 1.5},
            {"n": 1.5},
        ),
        (
            of_rocketmq("SetNull$Value", {"field.pattern": "a"}),
            {"a": "text"},
            {"a": "b"},
            {"a": "b"},
        ),
    ],
)
def test_a_transform_of_rocketmq_connect(
    transform: dict[str, Any], fields: dict[str, Any], given: Any, value: Any, read: Read
) -> None:
    also = kafka("InsertField$Value", static_field="x", static_value="y")
    checked = read({**SINK, **JSON, "waybill.fields": fields, **chain(transform, also)})
    assert values(checked, given) == [value | {"x": "y"}]


def test_a_pattern_leaves_records_out(read: Read) -> None:
    transform = of_rocketmq("PatternFilter$Value", {"pattern": "DEBUG.*", "fields": "level,note,n"})
    fields = {"level": "text", "note": "text", "n": "int64"}
    checked = read({**SINK, **JSON, "waybill.fields": fields, **chain(transform)})
    given = [{"level": "DEBUG"}, {"level": "INFO", "note": "DEBUGGED"}, {"level": "xDEBUG"}, {"note": "DEBUG\nx"}, {}]
    assert [one["offset"] for one in made(checked, *given)] == [2, 3, 4]


def test_a_key_is_made_none(read: Read) -> None:
    transform = of_rocketmq("SetNull$Key", {"field.pattern": "x"})
    [record] = made(read({**SINK, **chain(transform)}), b"a", key=["k"])
    assert (record["key"], record["value"]) == (None, b"a")


# ---------------------------------------------------------------------------------------------------- what is not kept


@pytest.mark.parametrize(
    ("flat", "fault"),
    [
        ({**SOURCE, "transforms": "a"}, "transforms.a.type: line 1: is missing: 'a' in transforms needs a class"),
        ({**SOURCE, "transforms": "a,a"}, "transforms: line 1: 'a' is there twice"),
        ({**SOURCE, "transforms.a.type": "b"}, "transforms.a.type: line 1: has no effect without transforms"),
        ({**SOURCE, **chain({"type": "a.b.C"})}, "transforms.a.type: line 1: there is no transform 'a.b.C' here"),
        (
            {**SOURCE, **chain(kafka("HoistFeild$Value"))},
            "did you mean org.apache.kafka.connect.transforms.HoistField$V",
        ),
        ({**SOURCE, **chain(kafka("HoistField$Value"))}, "transforms.a.field: line 1: is missing"),
        (
            {**SOURCE, **JSON, **chain(kafka("HoistField$Value", field="a", feld="b"))},
            "transforms.a.feld: line 1: unknown key of",
        ),
        ({**SOURCE, **chain(kafka("HoistField$Value", field="a"))}, "value.converter: line 1: would write Struct"),
        ({**SOURCE, **chain(kafka("Flatten$Value"))}, "the value is one text here, without fields: HoistField$Value"),
        (
            {**SOURCE, **chain(kafka("Flatten$Key"))},
            "transforms.a.type: line 1: only ExtractField$Key behind ValueToKey is kept",
        ),
        ({**SOURCE, **chain(kafka("TimestampRouter"))}, "have no time of their own"),
        (
            {**SOURCE, "waybill.fields": {"a": "text"}, **chain(kafka("Flatten$Value"))},
            "what a source reads is one text",
        ),
        (
            {**SINK, **JSON, **chain(kafka("Flatten$Value"))},
            "transforms: line 1: need the fields of the JSON: waybill.f",
        ),
        (
            {**JSON_SINK, "waybill.fields": "{a: number}", **chain(kafka("Flatten$Value"))},
            "waybill.fields: line 1: a: ",
        ),
        ({**JSON_SINK, **chain(kafka("Cast$Value", spec="int32"))}, "casts the whole value"),
        ({**JSON_SINK, **chain(kafka("Cast$Value", spec="paid:int32"))}, "bool can become bool, text"),
        ({**JSON_SINK, **chain(kafka("Cast$Value", spec="idd:int32"))}, "there is no field 'idd'"),
        (
            {**JSON_SINK, **chain(kafka("MaskField$Value", fields="who"))},
            "who is struct, which has no value for nothing",
        ),
        ({**JSON_SINK, **chain(kafka("MaskField$Value", fields="id", replacement="x"))}, "x is no int64"),
        ({**JSON_SINK, **chain(kafka("ExtractField$Value", field="price"))}, "the value would be decimal(6,2) alone"),
        (
            {**JSON_SINK, **chain(kafka("InsertField$Value", offset_field="o"))},
            "transforms.a.offset.field: line 1: is no",
        ),
        ({**JSON_SINK, **chain(kafka("ValueToKey", fields="id"))}, "ExtractField$Key behind it takes its field out"),
        ({**JSON_SINK, **chain(kafka("ExtractField$Key", field="id"))}, "ValueToKey makes an object of it first"),
        (
            {**JSON_SINK, **chain(kafka("InsertHeader", header="a", value_literal="007"))},
            "only words and whole numbers",
        ),
        (
            {**JSON_SINK, **chain(kafka("TimestampConverter$Value", field="at", target_type="string"))},
            "transforms.a.format: line 1: is missing",
        ),
        (
            {**JSON_SINK, **chain(kafka("TimestampConverter$Value", field="at", target_type="string", format="EEE"))},
            "EEE is not one of yyyy, MM, dd",
        ),
        (
            {**JSON_SINK, **chain(kafka("TimestampConverter$Value", field="at", target_type="Date"))},
            "at is int64, which is not made Date exactly",
        ),
        (
            {**JSON_SINK, **chain(kafka("RegexRouter", regex="(?=a)", replacement="b"))},
            "is read by Java in a way of its",
        ),
        (
            {**SOURCE, **filtering("foo", predicate="IsBar")},
            "there is no predicate 'IsBar' in predicates (there are: IsF",
        ),
        (
            {**JSON_SINK, **filtering("foo"), "transforms.a.type": f"{KAFKA}Flatten$Value"},
            "transforms.a.predicate: line 1: only Filter may depend on a record",
        ),
        ({**SINK, **chain(of_rocketmq("RegexRouter", {}))}, "RocketMQ Connect cannot run it either"),
        (
            {**JSON_SINK, **chain({"type": f"{AIVEN}Hash$Value", "field.name": "id", "function": "sha256"})},
            "transforms.a.field.name: line 1: id is no text",
        ),
        (
            {**NAMED, **chain({"type": f"{AIVEN}Hash$Value", "field.name": "name", "function": "sha1"})},
            "transforms.a.function: line 1: 'sha1' is not kept, only sha256",
        ),
        (
            {**NAMED, **chain({"type": f"{AIVEN}Hash$Value", "field.name": "name", "function": "sha256"})},
            "transforms.a.skip.missing.or.null: line 1: a value that is missing stays missing here",
        ),
        ({**JSON_SINK, **chain({"type": f"{CONFLUENT}Drop$Value"})}, f"did you mean {CONFLUENT}Drop$Key?"),
        (
            {**JSON_SINK, **chain(of_rocketmq("ChangeCase$Value", {"from": "a", "to": "b"}))},
            "'a' is not one of LOWER_HYP",
        ),
        ({**JSON_SINK, **chain(of_rocketmq("ChangeCase$Key", {}))}, "transforms of keys are not kept"),
    ],
)
def test_what_cannot_be_kept_is_a_fault(flat: dict[str, Any], fault: str, faults: Callable[..., list[str]]) -> None:
    told = faults(json.dumps(flat), suffix=".json")
    assert any(fault in one for one in told), told
