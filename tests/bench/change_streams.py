"""Changes of a table in PostgreSQL and in MariaDB: how many a second, beside a bare loop that reads the same log and
appends what comes to a file; rows of a snapshot; and how fresh they are in a topic, in a window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

from connect_core.rocketmq import Client
from tests.bench.freshness import See, Store, Way, after_silence, bodies_in, under_a_trickle
from tests.bench.logged import ROWS, LoggedDatabase, MariaDatabase, mariadb, postgresql
from tests.bench.measures import compared
from tests.bench.place import Place, Timed
from tests.bench.telling import Row, row

TRICKLE_S = 60.0
_numbers = count(1)


def change_streams(place: Place, repeats: int) -> list[Row]:
    with postgresql(place) as database:
        rows = _of(place, database, repeats)
    with mariadb(place) as server:
        return [*rows, *_of(place, MariaDatabase(server), repeats)]


def _of(place: Place, database: LoggedDatabase, repeats: int) -> list[Row]:
    rows = [
        _throughput(place, database, 1, repeats),
        _throughput(place, database, ROWS, repeats),
        _snapshot(place, database),
    ]
    ends, way, what = partial(_into_topic, database), Way("window"), f"changes of {database.name} -> RocketMQ"
    rows += [under_a_trickle(place, what, ends, way, rate, TRICKLE_S) for rate in (10, 1_000)]
    return [*rows, after_silence(place, what, ends, way)]


def _throughput(place: Place, database: LoggedDatabase, each: int, repeats: int) -> Row:
    def ours() -> Timed:
        """Of a connector that has begun, with nothing to bring."""
        name = f"changes-{next(_numbers)}"
        table = name.replace("-", "_")
        database.made(table)
        place.apply(name, _source(database, table), {"file": {"path": str(place.folder / f"{name}.log")}})
        place.run(name)
        database.filled(table, each)
        try:
            return place.run(name)
        finally:
            place.delete(name)

    def bare() -> float:
        return database.bare(place.folder / "bare.log", each)

    words = "one a transaction" if each == 1 else "one transaction"
    what = f"changes of {database.name} -> file, {ROWS:,} inserts of 200 bytes, {words}"
    return compared(what, ROWS, ours, bare, repeats)


def _source(database: LoggedDatabase, table: str) -> dict[str, Any]:
    return {database.system: {**database.options, "tables": [table], "schemas": False}}


def _snapshot(place: Place, database: LoggedDatabase) -> Row:
    name = f"changes-{next(_numbers)}"
    table = name.replace("-", "_")
    database.made(table)
    database.filled(table, ROWS)
    target = place.folder / f"{name}.log"
    place.apply(name, _source(database, table), {"file": {"path": str(target)}})
    seconds = place.run(name).wall_s
    if (arrived := sum(1 for _ in target.open("rb"))) != ROWS:
        raise SystemExit(f"{arrived:,} of {ROWS:,} rows arrived")
    place.delete(name)
    return row(f"snapshot of {database.name} -> file, {ROWS:,} rows", f"{ROWS / seconds:,.0f}/s", "through the log")


def _into_topic(database: LoggedDatabase, place: Place, client: Client, **document: Any) -> tuple[str, Store, See]:
    name = f"fresh-changes-{next(_numbers)}"
    table = name.replace("-", "_")
    database.run(f"CREATE TABLE {table} (id {database.serial} PRIMARY KEY, body text)")
    client.topics.create(name, 1)
    place.apply(
        name, _source(database, table), {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}, **document
    )
    writing = database.connected().cursor()

    def store(body: bytes) -> None:
        writing.execute(f"INSERT INTO {table} (body) VALUES (%s)", (body.decode(),))

    return name, store, lambda: _bodies(client, name)


def _bodies(client: Client, topic: str) -> Iterator[bytes]:
    for event in bodies_in(client, topic):
        yield json.loads(event)["after"]["body"].encode() if event else b""
