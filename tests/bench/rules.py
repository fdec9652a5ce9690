"""What a hundred rules cost beside one, in one columnar pass: `Pipeline.shape` alone, without a source and a target.

Each record matches one rule, so that both make as many outputs. Every pair is interleaved; figures are medians.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import pyarrow as pa

from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import OPERATION_NONE, encode_headers
from tests.bench.telling import Row, row

RULES, RECORDS, BATCH = 100, 200_000, 4_000
Rule = dict[str, str]


class Kind(NamedTuple):
    """`one` matches every record; the `nth` of a hundred matches a hundredth of them."""

    words: str
    one: Rule
    nth: Callable[[int], Rule]


KINDS = (
    Kind(
        "by topic, condition on the payload, tags from the topic",
        {"filter": "site/+/+/temp", "when": "$.temp >= 0", "tags": "{topic[2]}"},
        lambda n: {"filter": f"site/{n}/+/temp", "when": f"$.temp >= -{n + 1}", "tags": "{topic[2]}"},
    ),
    Kind(
        "by a condition on the payload",
        {"when": "$.temp >= 0 AND $.temp < 100"},
        lambda n: {"when": f"$.temp >= {n} AND $.temp < {n + 1}"},
    ),
    Kind("by topic alone", {"filter": "site/+/+/temp"}, lambda n: {"filter": f"site/{n}/+/temp"}),
    Kind("by a condition on a topic level alone", {"when": "topic[2] <> ''"}, lambda n: {"when": f"topic[2] = '{n}'"}),
)


def rules(repeats: int) -> list[Row]:
    batches = [_batch(begin) for begin in range(0, RECORDS, BATCH)]
    return [_pair(kind, batches, max(repeats, 5)) for kind in KINDS]


def _pair(kind: Kind, batches: Sequence[pa.RecordBatch], repeats: int) -> Row:
    one = Pipeline({"rules": [{"name": "one", **kind.one}]})
    hundred = Pipeline({"rules": [{"name": f"rule-{n}", **kind.nth(n)} for n in range(RULES)]})
    pairs = [(_seconds(one, batches), _seconds(hundred, batches)) for _ in range(repeats + 1)][1:]
    ratio = median(second / first for first, second in pairs)
    first, second = (median(one) / RECORDS * 1e6 for one in zip(*pairs, strict=True))
    return row(
        f"{RULES} rules {kind.words}, {RECORDS:,} records",
        f"{second:.2f} µs a record",
        f"one rule {first:.2f} µs; ratio {ratio:.2f}",
    )


def _seconds(pipeline: Pipeline, batches: Sequence[pa.RecordBatch]) -> float:
    started = time.perf_counter()
    outputs = sum(len(pipeline.shape(batch).kept) for batch in batches)
    taken = time.perf_counter() - started
    assert outputs == RECORDS
    return taken


def _batch(begin: int) -> pa.RecordBatch:
    """As an MQTT source gives them: forty devices on each of a hundred sites."""
    chance = random.Random(begin)
    rows = [_record(begin + n, f"site/{n % 100}/device-{n % 4_000 // 100}/temp", chance) for n in range(BATCH)]
    return pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)


def _record(offset: int, topic: str, chance: random.Random) -> dict[str, object]:
    body = b'{"id": %d, "temp": %.3f, "unit": "C", "note": "%s"}' % (offset, chance.random() * 99.999, b"x" * 120)
    headers = encode_headers([("MQTT_TOPIC", topic), ("MQTT_QOS", "1")])
    given = {"topic": topic, "key": topic, "value": body, "headers": headers}
    return {**given, "offset": offset, "operation": OPERATION_NONE}
