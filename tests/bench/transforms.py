"""What typed fields and transforms cost: JSON through a cast and a filter beside a bare loop, and a hundred casts of
different fields beside one. `Pipeline.shape` alone, without a source and a target.

The bare loop reads each record with orjson, changes one key, and writes those that pass. It checks no type. Every pair
is interleaved; figures are medians of processor time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median
from typing import Any

import orjson
import pyarrow as pa

from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.testing.driving import records
from tests.bench.bare import through_objects
from tests.bench.pairs import pairs, ratio
from tests.bench.telling import Row, row

BATCH, BATCHES, FIELDS = 4_000, 5, 100
TYPES: dict[str, Any] = {
    "id": "int64",
    "price": "float64",
    "count": "int32",
    "paid": "bool",
    "rate": "float64",
    "stock": "int64",
    "name": "text",
    "note": "text",
    "code": "text",
    "link": "text",
    "gone": "text",
    "at": "text",
    "tags": ["text"],
    "who": {"first": "text", "last": "text", "city": "text"},
}
CHANGED: dict[str, Any] = {
    "parse": {"format": "json", "fields": TYPES},
    "transforms": [{"cast": {"id": "text"}}, {"filter": "$.count < 40"}],
}


def transforms(repeats: int) -> list[Row]:
    return [_beside_a_loop(max(repeats, 5)), _many(max(repeats, 5))]


def _beside_a_loop(repeats: int) -> Row:
    chance = random.Random(1)
    bodies = [[orjson.dumps(made_up(n, chance)) for n in range(BATCH)] for _ in range(BATCHES)]
    batches = [records(one) for one in bodies]
    pipeline = Pipeline(CHANGED)
    for batch, one in zip(batches, bodies, strict=True):
        made = pipeline.shape(batch).kept.column("value").to_pylist()
        assert list(map(orjson.loads, made)) == list(map(orjson.loads, through_objects(one)))
    ours, bare = pairs(lambda: _shaped(pipeline, batches), lambda: [through_objects(one) for one in bodies], repeats)
    many, size = BATCH * BATCHES, sum(map(len, bodies[0])) // BATCH
    what = f"JSON of {size} bytes, {len(TYPES)} fields: read, one cast, one filter, written"
    return Row(what, f"{many / median(ours):,.0f}/s", f"{many / median(bare):,.0f}/s", ratio(ours, bare))


def _many(repeats: int) -> Row:
    names = [f"f{n}" for n in range(FIELDS)]
    batches = [records([orjson.dumps(dict.fromkeys(names, n)) for n in range(BATCH)])]
    parse = {"format": "json", "fields": dict.fromkeys(names, "int64")}
    one = Pipeline({"parse": parse, "transforms": [{"cast": {"f0": "text"}}]})
    all_of_them = Pipeline({"parse": parse, "transforms": [{"cast": {name: "text"}} for name in names]})
    many, single = pairs(lambda: _shaped(all_of_them, batches), lambda: _shaped(one, batches), repeats)
    micro = [f"{median(taken) / BATCH * 1e6:.2f} µs" for taken in (many, single)]
    return row(
        f"{FIELDS} casts of different fields", f"{micro[0]} a record", f"one cast {micro[1]}; {ratio(single, many)}"
    )


def _shaped(pipeline: Pipeline, batches: Sequence[pa.RecordBatch]) -> None:
    for batch in batches:
        pipeline.shape(batch)


def made_up(number: int, chance: random.Random) -> dict[str, Any]:
    return {
        "id": number,
        "price": round(chance.random() * 1000, 2),
        "count": number % 50,
        "paid": number % 3 == 0,
        "rate": number * 1.5,
        "stock": number * 7,
        "name": f'Jürgen "{number}"',
        "note": "x" * 300,
        "code": "c" * 60,
        "link": "l" * 60,
        "gone": None,
        "at": "2026-01-02T03:04:05.123Z",
        "tags": ["a", "b", f"c{number % 7}"],
        "who": {"first": "Ann", "last": "Lee", "city": f"Köln {number}"},
    }
