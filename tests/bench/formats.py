"""What formats cost: rows made of payloads, and payloads of rows, by one core, without a source and a target.

Beside JSON the bare loop is orjson's, beside Avro fastavro's, each one record after the other into Python's objects and
back; beside Debezium's events orjson's as well. They check no types.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from statistics import median
from typing import Any

import fastavro
import orjson

from connect_core.pipeline.formats.avro_format import AVRO
from connect_core.pipeline.formats.known import FORMATS
from connect_core.rows.types import struct_of
from connect_core.sdk.testing.driving import records
from tests.bench.pairs import pairs, ratio
from tests.bench.telling import Row
from tests.bench.transforms import TYPES, made_up

MANY = 4_000
Loop = Callable[[list[bytes]], list[Any]]


def formats(repeats: int) -> list[Row]:
    chance = random.Random(1)
    bodies = [orjson.dumps(made_up(number, chance)) for number in range(MANY)]
    avro = fastavro.parse_schema(AVRO.written_schema({}, struct_of(TYPES)))

    def from_avro(values: list[bytes]) -> list[Any]:
        return [fastavro.schemaless_reader(io.BytesIO(value), avro, None) for value in values]

    def to_avro(rows: list[Any]) -> list[bytes]:
        return [_avro(avro, one) for one in rows]

    json: tuple[Loop, Callable[[list[Any]], list[bytes]]] = (
        lambda values: list(map(orjson.loads, values)),
        lambda rows: list(map(orjson.dumps, rows)),
    )
    ways = {"json": json, "debezium": json, "avro": (from_avro, to_avro)}
    return [row for name, loops in ways.items() for row in _both_ways(name, bodies, *loops, max(repeats, 5))]


def _both_ways(name: str, bodies: list[bytes], read: Loop, write: Loop, repeats: int) -> list[Row]:
    """As the transforms do it: rows of JSON are written in the format, and what was written is read."""
    parse = {"format": "json", "fields": TYPES}
    came = records(bodies)
    rows = FORMATS["json"].reader(parse, None)(came).rows
    writer = FORMATS[name].writer({}, struct_of(TYPES))
    written = writer(rows, came).records
    values = written.column("value").to_pylist()
    reader = FORMATS[name].reader(_read_as(name), None)
    assert reader(written).rows.equals(rows)
    objects = read(values)
    size = sum(map(len, values)) // MANY
    return [
        _row(f"{name} of {size:,} bytes read", lambda: reader(written), lambda: read(values), repeats),
        _row(f"{name} of {size:,} bytes written", lambda: writer(rows, came), lambda: write(objects), repeats),
    ]


def _read_as(name: str) -> dict[str, Any]:
    return {"avro_schema": AVRO.written_schema({}, struct_of(TYPES))} if name == "avro" else {"fields": TYPES}


def _row(what: str, ours: Callable[[], object], bare: Callable[[], object], repeats: int) -> Row:
    taken, others = pairs(ours, bare, repeats)
    rates = [f"{MANY / median(one):,.0f}/s" for one in (taken, others)]
    return Row(f"{what}, {len(TYPES)} fields", *rates, ratio(taken, others))


def _avro(schema: Any, row: Any) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, schema, row)
    return target.getvalue()
