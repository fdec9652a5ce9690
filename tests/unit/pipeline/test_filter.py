"""A filter lets records pass by tag and header; what it leaves out is told by offset."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import encode_headers
from connect_core.sdk.values import Json

ROWS = [
    ("red", [("region", "eu")]),
    ("blue", [("region", "eu"), ("kind", "x")]),
    (None, [("region", "us")]),
    ("red", []),
    ("", [("region", "us"), ("region", "eu")]),
    ("redder", [("xregion", "eu")]),
]


def records() -> pa.RecordBatch:
    rows = [
        {"tags": tags, "headers": encode_headers(headers) if headers else None, "offset": 10 + n, "operation": 0}
        for n, (tags, headers) in enumerate(ROWS)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ({"tags": ["red"]}, [10, 13]),
        ({"tags": ["red", "blue"]}, [10, 11, 13]),
        ({"headers": {"region": "eu"}}, [10, 11, 14]),
        ({"headers": {"region": "eu", "kind": "x"}}, [11]),
        ({"tags": ["red"], "headers": {"region": "eu"}}, [10]),
        ({"tags": ["green"]}, []),
        ({"sql": "region = 'eu' AND kind IS NULL"}, [10, 14]),
        ({"sql": "TAGS = 'red'", "headers": {"region": "eu"}}, [10]),
        ({"sql": "TAGS IS NULL"}, [12, 14]),
    ],
)
def test_what_passes_and_what_is_left_out(wanted: Json, kept: list[int]) -> None:
    shaped = Pipeline({"transforms": [], "filter": wanted}).shape(records())
    assert shaped.kept.column("offset").to_pylist() == kept
    assert sorted([*kept, *shaped.filtered]) == list(range(10, 16))
    assert shaped.rejected == ()


def test_without_a_filter_the_same_batch_passes() -> None:
    batch = records()
    assert Pipeline({"transforms": []}).shape(batch).kept is batch


def test_another_filter_is_another_pipeline() -> None:
    documents: list[Json] = [{"transforms": []}, *({"transforms": [], "filter": {"tags": [tag]}} for tag in ("a", "b"))]
    documents += [{"transforms": [], "filter": {"sql": sql}} for sql in ("a = 1", "a = 2")]
    assert len({pipeline_digest(document) for document in documents}) == 5
