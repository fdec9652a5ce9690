"""Rows become messages: columns found by name and type, headers as RocketMQ keeps them, queues, ids."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import ConfigError, DataError
from connect_core.rocketmq.wire import properties
from connect_core.sdk.records import encode_headers
from connect_core.spark.messages import (
    check_mode,
    encoded_headers,
    mapped,
    message_ids,
    property_strings,
    queue_numbers,
    stored_headers,
)
from connect_core.spark.options import WriteOptions, checked

MAP = pa.map_(pa.string(), pa.string())
PROPERTY_TEXT = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=3)


def options(**given: str) -> WriteOptions:
    return checked(WriteOptions, {"name_servers": "h:1", "topic": "orders"} | given)


def test_columns_are_found_by_name() -> None:
    given = [("headers", "map<string,string>"), ("value", "binary"), ("key", "string"), ("tags", "varchar(9)")]
    columns = {"value": "value", "key": "key", "tags": "tags", "headers": "headers"}
    assert mapped(given, options()).columns == columns
    assert mapped([("body", "string")], options(value_column="body")).columns == {"value": "body"}


@pytest.mark.parametrize(
    ("given", "more", "told"),
    [
        ([("body", "string")], {}, "value: there is no such column"),
        ([("value", "string")], {"key_column": "id"}, "id: there is no such column: name the one with the key"),
        ([("value", "struct<a:int>")], {}, "value: is struct<a:int>, but value must be binary or string"),
        ([("value", "string"), ("key", "bigint")], {}, "key: is bigint, but key must be string"),
        ([("value", "string"), ("headers", "map<string,int>")], {}, "headers must be map<string,string>"),
        ([("value", "string"), ("offset", "bigint")], {}, "offset: is no part of a message: drop it"),
        ([("value", "string"), ("value", "string")], {}, "value: is there twice"),
        ([("value", "string")], {"key_column": "value"}, "value: stands for two parts of a message"),
        ([("value", "string"), ("topic", "string")], {}, "topic: says the topic, and so does an option"),
    ],
)
def test_other_columns_are_refused(given: list[tuple[str, str]], more: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        mapped(given, options(**more))


def test_somebody_says_the_topic() -> None:
    without = checked(WriteOptions, {"name_servers": "h:1"})
    assert mapped([("value", "string"), ("topic", "string")], without).columns["topic"] == "topic"
    with pytest.raises(ConfigError, match="topic: is said by no option and no column"):
        mapped([("value", "string")], without)


def test_overwriting_means_nothing() -> None:
    check_mode(False)
    with pytest.raises(ConfigError, match=r'Write with mode\("append"\)'):
        check_mode(True)


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
def test_rows_become_records(text: pa.DataType) -> None:
    batch = pa.record_batch({"k": pa.array(["ß", None], text), "b": pa.array(["größe", None], text)})
    records = mapped([("k", "string"), ("b", "string")], options(key_column="k", value_column="b")).records(batch)
    assert records.column("value").to_pylist() == ["größe".encode(), None]
    assert records.column("value").type == pa.binary()
    assert (records.column("key").to_pylist(), records.column("key").type) == (["ß", None], pa.string())
    assert [records.column(name).null_count for name in ("tags", "headers", "topic")] == [2, 2, 2]


def test_headers_are_encoded_as_records_have_them() -> None:
    rows = [[("größe", "ß \x01"), ("a", "b")], None, [], [("c", "d")]]
    expected = [encode_headers(row or []) for row in rows]
    assert encoded_headers(pa.array(rows, MAP)).to_pylist() == expected
    assert encoded_headers(pa.array([[("x", "y")], *rows], MAP).slice(1)).to_pylist() == expected
    assert encoded_headers(pa.array([], MAP)).to_pylist() == []


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (("", "v"), "name is empty"),
        (("a\x01b", "v"), "control character"),
        (("a\x02b", "v"), "control character"),
        (("DELAY", "3"), "means something to RocketMQ"),
        (("TIMER_DELAY_MS", "3"), "means something to RocketMQ"),
        (("KEYS", "k"), "means something to RocketMQ"),
        (("WAYBILL", "k"), "means something to RocketMQ"),
        (("a", ""), "has no value"),
        (("a", None), "has no value"),
        (("a", "v\x02"), "control character 2"),
    ],
)
def test_headers_that_would_not_come_back_are_refused(header: tuple[str, str | None], told: str) -> None:
    with pytest.raises(DataError, match=told):
        encoded_headers(pa.array([[("fine", "v")], [header]], MAP))


@given(st.lists(st.none() | st.lists(st.tuples(PROPERTY_TEXT, PROPERTY_TEXT), max_size=3), max_size=5))
def test_stored_headers_are_taken_where_a_map_of_them_is(rows: list[list[tuple[str, str]] | None]) -> None:
    strings = pa.array([None if row is None else encode_headers(row) for row in rows], pa.binary())
    maps = pa.array(rows, MAP)
    try:
        expected = encoded_headers(maps).to_pylist()
    except DataError:
        with pytest.raises(DataError):
            stored_headers(strings)
    else:
        assert stored_headers(strings).to_pylist() == expected
        assert stored_headers(pa.concat_arrays([strings[:1], strings]).slice(min(1, len(rows)))).to_pylist() == expected


@pytest.mark.parametrize(
    ("string", "told"),
    [
        (b"a\x01b", "no properties as RocketMQ stores them"),
        (b"a\x02", "no properties as RocketMQ stores them"),
        (b"\x02", "no properties as RocketMQ stores them"),
        (b"a\x01b\x02\x02", "no properties as RocketMQ stores them"),
        (b"a\x01b\x02c", "no properties as RocketMQ stores them"),
        (b"\x01b\x02", "name is empty"),
        (b"a\x01\x02", "has no value"),
        (b"DELAY\x013\x02", "means something to RocketMQ"),
        (b"a\x01\xff\x02", "not UTF-8"),
    ],
)
def test_stored_headers_that_are_none_are_refused(string: bytes, told: str) -> None:
    with pytest.raises(DataError, match=told):
        stored_headers(pa.array([b"fine\x01v\x02", b"", None, string], pa.binary()))


def test_a_task_that_runs_twice_gives_the_same_ids_and_no_other_does() -> None:
    numbers = np.arange(3)
    ids = message_ids("job", 0, numbers).to_pylist()
    assert ids == message_ids("job", 0, numbers).to_pylist()
    others = [message_ids("job", 1, numbers), message_ids("other", 0, numbers), message_ids("job", 0, numbers + 3)]
    everything = [*ids, *(one for other in others for one in other.to_pylist())]
    assert len(set(everything)) == 12
    assert re.fullmatch(rb"UNIQ_KEY\x01[0-9A-F]{32}\x02", ids[0])


def test_a_property_string_has_headers_key_tags_and_id() -> None:
    records = pa.record_batch(
        {
            "headers": pa.array([b"a\x01b\x02", b"", None], pa.binary()),
            "key": pa.array(["k", None, ""]),
            "tags": pa.array([None, "t", None], pa.string()),
        }
    )
    strings = property_strings(records, message_ids("job", 0, np.arange(3))).to_pylist()
    found = [properties.decode(text) for text in strings]
    assert [one.pop("UNIQ_KEY")[-1] for one in found] == ["0", "1", "2"]
    assert found == [{"a": "b", "KEYS": "k"}, {"TAGS": "t"}, {}]


def test_rows_go_to_the_queue_of_their_partition_or_of_their_key() -> None:
    keys = pa.array(["a", "b", None, "", "a"])
    assert queue_numbers(keys, "partition", 6, 4).tolist() == [2] * 5
    by_key = queue_numbers(keys, "key", 6, 4).tolist()
    assert by_key == [0xE8B7BE43 % 4, 0x71BEEFF9 % 4, 2, 2, 0xE8B7BE43 % 4]  # the CRC-32 of "a" and "b"
    assert queue_numbers(pa.nulls(2, pa.string()), "key", 1, 4).tolist() == [1, 1]
