"""What typed fields and transforms cost: JSON through a cast and a filter beside a bare loop, and a hundred casts of
different fields beside one. `Pipeline.shape` alone, without a source and a target.

The bare loop reads each record with orjson, changes one key, and writes those that pass. It checks no type. Every pair
is interleaved; figures are medians of processor time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import orjson
import pyarrow as pa

from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.testing.driving import records
from tests.bench.telling import Row, row

BATCH, BATCHES, FIELDS = 4_000, 5, 100
_TYPES: dict[str, Any] = {
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


def transforms(repeats: int) -> list[Row]:
    return [_beside_a_loop(max(repeats, 5)), _many(max(repeats, 5))]


def _beside_a_loop(repeats: int) -> Row:
    chance = random.Random(1)
    bodies = [[orjson.dumps(_record(n, chance)) for n in range(BATCH)] for _ in range(BATCHES)]
    batches = [records(one) for one in bodies]
    steps = [{"cast": {"id": "text"}}, {"filter": "$.count < 40"}]
    pipeline = Pipeline({"parse": {"format": "json", "fields": _TYPES}, "transforms": steps})
    for batch, one in zip(batches, bodies, strict=True):
        made = pipeline.shape(batch).kept.column("value").to_pylist()
        assert list(map(orjson.loads, made)) == list(map(orjson.loads, _loop(one)))
    ours, bare = _pairs(lambda: _shaped(pipeline, batches), lambda: [_loop(one) for one in bodies], repeats)
    many, size = BATCH * BATCHES, sum(map(len, bodies[0])) // BATCH
    what = f"JSON of {size} bytes, {len(_TYPES)} fields: read, one cast, one filter, written"
    ratio = f"ratio {median(b / a for a, b in zip(ours, bare, strict=True)):.2f}"
    return Row(what, f"{many / median(ours):,.0f}/s", f"{many / median(bare):,.0f}/s", ratio)


def _many(repeats: int) -> Row:
    names = [f"f{n}" for n in range(FIELDS)]
    batches = [records([orjson.dumps(dict.fromkeys(names, n)) for n in range(BATCH)])]
    parse = {"format": "json", "fields": dict.fromkeys(names, "int64")}
    one = Pipeline({"parse": parse, "transforms": [{"cast": {"f0": "text"}}]})
    all_of_them = Pipeline({"parse": parse, "transforms": [{"cast": {name: "text"}} for name in names]})
    many, single = _pairs(lambda: _shaped(all_of_them, batches), lambda: _shaped(one, batches), repeats)
    ratio = median(a / b for a, b in zip(many, single, strict=True))
    micro = [f"{median(taken) / BATCH * 1e6:.2f} µs" for taken in (many, single)]
    return row(f"{FIELDS} casts of different fields", f"{micro[0]} a record", f"one cast {micro[1]}; ratio {ratio:.2f}")


def _shaped(pipeline: Pipeline, batches: Sequence[pa.RecordBatch]) -> None:
    for batch in batches:
        pipeline.shape(batch)


def _loop(bodies: Sequence[bytes]) -> list[bytes]:
    passed = []
    for body in bodies:
        fields = orjson.loads(body)
        fields["id"] = str(fields["id"])
        if fields["count"] < 40:
            passed.append(orjson.dumps(fields))
    return passed


def _pairs(
    first: Callable[[], object], second: Callable[[], object], repeats: int
) -> tuple[Sequence[float], Sequence[float]]:
    """Processor seconds. The first pair warms up."""
    pairs = [(_seconds(first), _seconds(second)) for _ in range(repeats + 1)][1:]
    ours, others = zip(*pairs, strict=True)
    return ours, others


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _record(number: int, chance: random.Random) -> dict[str, Any]:
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
