"""A rejected record is kept whole: what is made of it again is what was read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from connect_core.pipeline.letters import as_records, attributes
from connect_core.pipeline.rejecting import MAX_ORIGINAL_BYTES, as_read, reject_row
from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.batches import RECORD_SCHEMA, own_field
from connect_core.sdk.records import OPERATION_DELETE, OPERATION_NONE, encode_headers
from connect_core.work import Letter, LetterPlace

PLACE = LetterPlace("u", "live", "q", 0, 7, 0, "parse")
FULL: dict[str, Any] = {
    "topic": "orders",
    "key": "k\0é",
    "tags": "paid",
    "value": b"\xff\x00",
    "headers": encode_headers([("a", "1"), ("a", "2"), ("Zoë", "")]),
    "timestamp": -(1 << 55),
    "operation": OPERATION_DELETE,
    "mars.id": b"\x00\x01\xff",
    "mars.flag": 7,
}
SCHEMA = pa.schema([*RECORD_SCHEMA, own_field("mars", "flag", pa.int64()), own_field("mars", "id", pa.binary())])


def records(*rows: dict[str, Any]) -> pa.RecordBatch:
    numbered = [{"operation": OPERATION_NONE, "offset": offset, **row} for offset, row in enumerate(rows)]
    schema = pa.schema([*SCHEMA, own_field("mars", "zipped", pa.binary(), of_value=True)])
    return pa.RecordBatch.from_pylist(numbered, schema=schema)


def letter(batch: pa.RecordBatch, row: int, number: int) -> Letter:
    """By the way through the ledger, which keeps JSON."""
    kept = reject_row(batch, row, "parse", "Bad", "words")
    assert kept.attributes is not None
    return Letter(number, kept.original, kept.topic, json.loads(json.dumps(kept.attributes)), PLACE)


@pytest.mark.parametrize("row", [FULL, {"value": b""}, {"value": None}, {"value": b"x", "topic": "t", "headers": b""}])
def test_a_record_is_made_again_as_it_was_read(row: dict[str, Any]) -> None:
    batch = records({"value": b"other"}, row)
    made = as_records([letter(batch, 0, 4), letter(batch, 1, 9)])
    expected = pa.RecordBatch.from_pylist(
        [
            {"operation": OPERATION_NONE, "value": b"other", "offset": 4},
            {"operation": OPERATION_NONE, **row, "offset": 9},
        ],
        schema=SCHEMA if row is FULL else RECORD_SCHEMA,
    )
    assert made.equals(expected)


def test_a_letter_from_before_has_what_it_had() -> None:
    """Its columns had no name of a system yet."""
    kept = {"key": "k", "message_id": "00ff", "flag": 7}
    made = as_records([Letter(4, b"x", "t", kept, PLACE), Letter(5, b"y", "t", None, PLACE)])
    assert made.column("rocketmq.message_id").to_pylist() == [b"\x00\xff", None]
    assert made.column("rocketmq.flag").to_pylist() == [7, None]


def test_what_only_the_way_into_one_target_was_is_left_out() -> None:
    batch = records({"value": b"x", "mars.zipped": b"p", "trace": 9, "to": "t", "ordinal": 1, "outputs": 2})
    assert attributes(batch, 0) == {}


def test_a_payload_that_is_too_large_is_kept_in_part_and_is_not_whole() -> None:
    batch = records({"value": b"x" * (MAX_ORIGINAL_BYTES + 1)}, {"value": b"y" * MAX_ORIGINAL_BYTES})
    cut, whole = (reject_row(batch, row, "parse", "Bad", "words") for row in range(2))
    assert (len(cut.original), cut.attributes) == (MAX_ORIGINAL_BYTES, None)
    assert (len(whole.original), whole.attributes) == (MAX_ORIGINAL_BYTES, {})


def test_what_an_output_is_rejected_for_is_kept_with_the_record_that_was_read() -> None:
    read = records({"value": b"before", "key": "k", "topic": "t"})
    output = records({"value": b"after", "key": "by a rule", "topic": "t"})
    [reject] = as_read([reject_row(output, 0, "encode", "Bad", "words")], read)
    assert (reject.original, reject.attributes, reject.topic) == (b"before", {"key": "k"}, "t")


@pytest.mark.parametrize(
    ("document", "changes"),
    [
        ({}, False),
        ({"filter": {"tags": ["a"]}}, False),
        ({"parse": {"format": "csv", "columns": ["a"]}}, False),
        ({"rules": []}, True),
        ({"parse": {"format": "json", "fields": {"a": "text"}}}, True),
    ],
)
def test_a_pipeline_says_whether_it_changes_records(document: dict[str, Any], changes: bool) -> None:
    assert Pipeline(document).changes is changes
