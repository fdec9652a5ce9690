"""Changes of a table in PostgreSQL: how many a second, beside a bare loop that reads the same slot and appends what
comes to a file; rows of a snapshot; and how fresh they are in a topic, in a window."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from select import select
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg2
from psycopg2.extras import LogicalReplicationConnection

from connect_core import stack
from connect_core.rocketmq import Client
from tests.bench.freshness import See, Store, Way, after_silence, bodies_in, under_a_trickle
from tests.bench.measures import compared
from tests.bench.place import Place, Timed, until
from tests.bench.telling import Row, row

ROWS = 300_000
TRICKLE_S = 60.0
_TABLE = "(id bigint PRIMARY KEY, a text, b integer, c text)"
_VALUES = "repeat('x', 80), n, repeat('y', 80)"
_numbers = count(1)


class Database:
    """A server of its own, with logical decoding."""

    def __init__(self, folder: Path) -> None:
        settings = {"wal_level": "logical", "max_wal_size": "4GB"}
        options = stack.Options(well_known_ports=False, postgresql=settings)
        url = stack.up(folder / ".waybill", parts=(stack.POSTGRESQL,), supervise=False, options=options).database_url
        parts = urlsplit(url)
        host = parts.hostname or parse_qs(parts.query)["host"][0]
        self.options: dict[str, Any] = {"host": host, "port": parts.port or 5432, "user": parts.username or "postgres"}
        self.options["database"] = parts.path.removeprefix("/")

    def run(self, *statements: str) -> None:
        with closing(self.connected()) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def connected(self) -> Any:
        session = psycopg2.connect(**self._access())
        session.autocommit = True
        return session

    def following(self) -> Any:
        return psycopg2.connect(**self._access(), connection_factory=LogicalReplicationConnection)

    def _access(self) -> dict[str, Any]:
        options = dict(self.options)
        return {"dbname": options.pop("database"), **options}

    def drop_slot(self, name: str) -> None:
        """Once the server has noticed that its reader is gone."""
        asked = (
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active"
        )
        with closing(self.connected()) as session, session.cursor() as cursor:
            until(lambda: cursor.execute(asked, (name,)) or cursor.rowcount, f"the end of slot {name}", 30.0)

    def filled(self, table: str, each: int) -> None:
        """`ROWS` rows, `each` in a transaction. The last statement has all of them on disk."""
        if each == 1:
            insert = f"INSERT INTO {table} SELECT n, {_VALUES}; COMMIT"
            self.run("SET synchronous_commit = off", f"DO $$ BEGIN FOR n IN 1..{ROWS} LOOP {insert}; END LOOP; END $$")
        else:
            self.run(f"INSERT INTO {table} SELECT n, {_VALUES} FROM generate_series(1, {ROWS}) n")
        self.run(f"CREATE TABLE {table}_filled ()")


def change_streams(place: Place, repeats: int) -> list[Row]:
    with postgresql(place) as database:
        rows = [
            _throughput(place, database, 1, repeats),
            _throughput(place, database, ROWS, repeats),
            _snapshot(place, database),
        ]
        ends, way, what = partial(_into_topic, database), Way("window"), "changes of PostgreSQL -> RocketMQ"
        rows += [under_a_trickle(place, what, ends, way, rate, TRICKLE_S) for rate in (10, 1_000)]
        return [*rows, after_silence(place, what, ends, way)]


@contextmanager
def postgresql(place: Place) -> Iterator[Database]:
    folder = place.folder / "postgresql"
    folder.mkdir()
    folder.chmod(0o711)
    try:
        yield Database(folder)
    finally:
        stack.down(folder / ".waybill")


def _throughput(place: Place, database: Database, each: int, repeats: int) -> Row:
    def ours() -> Timed:
        name = f"changes-{next(_numbers)}"
        _applied(place, database, name, {"file": {"path": str(place.folder / f"{name}.log")}})
        database.filled(name.replace("-", "_"), each)
        try:
            return place.run(name)
        finally:
            place.delete(name)

    def bare() -> float:
        name = f"bare_{next(_numbers)}"
        database.run(f"CREATE TABLE {name} {_TABLE}", f"CREATE PUBLICATION {name} FOR TABLE {name}")
        database.run(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        database.filled(name, each)
        try:
            return _read_bare(database, name, place.folder / f"{name}.log")
        finally:
            database.drop_slot(name)
            database.run(f"DROP PUBLICATION {name}")

    words = "one a transaction" if each == 1 else "one transaction"
    return compared(f"changes of PostgreSQL -> file, {ROWS:,} inserts of 200 bytes, {words}", ROWS, ours, bare, repeats)


def _applied(place: Place, database: Database, name: str, sink: dict[str, Any]) -> None:
    """A connector that has begun, with nothing to bring."""
    table = name.replace("-", "_")
    database.run(f"CREATE TABLE {table} {_TABLE}")
    place.apply(name, {"postgresql_changes": {**database.options, "tables": [table], "schemas": False}}, sink)
    place.run(name)


def _read_bare(database: Database, name: str, target: Path) -> float:
    begun, inserts = time.monotonic(), 0
    with closing(database.following()) as session, session.cursor() as cursor, target.open("wb") as file:
        options = {"proto_version": "1", "publication_names": name}
        cursor.start_replication(slot_name=name, decode=False, options=options)
        while inserts < ROWS:
            message = cursor.read_message()
            if message is None:
                select([cursor], [], [], 1)
            elif message.payload[:1] == b"I":
                inserts += 1
                file.write(message.payload + b"\n")
    return time.monotonic() - begun


def _snapshot(place: Place, database: Database) -> Row:
    name = f"changes-{next(_numbers)}"
    table = name.replace("-", "_")
    database.run(f"CREATE TABLE {table} {_TABLE}")
    database.filled(table, ROWS)
    target = place.folder / f"{name}.log"
    source = {"postgresql_changes": {**database.options, "tables": [table], "schemas": False}}
    place.apply(name, source, {"file": {"path": str(target)}})
    seconds = place.run(name).wall_s
    if (arrived := sum(1 for _ in target.open("rb"))) != ROWS:
        raise SystemExit(f"{arrived:,} of {ROWS:,} rows arrived")
    place.delete(name)
    return row(f"snapshot of PostgreSQL -> file, {ROWS:,} rows", f"{ROWS / seconds:,.0f}/s", "through the log")


def _into_topic(database: Database, place: Place, client: Client, **document: Any) -> tuple[str, Store, See]:
    name = f"fresh-changes-{next(_numbers)}"
    table = name.replace("-", "_")
    database.run(f"CREATE TABLE {table} (id bigserial PRIMARY KEY, body text)")
    client.topics.create(name, 1)
    source = {"postgresql_changes": {**database.options, "tables": [table], "schemas": False}}
    place.apply(name, source, {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}, **document)
    writing = database.connected().cursor()

    def store(body: bytes) -> None:
        writing.execute(f"INSERT INTO {table} (body) VALUES (%s)", (body.decode(),))

    return name, store, lambda: _bodies(client, name)


def _bodies(client: Client, topic: str) -> Iterator[bytes]:
    for event in bodies_in(client, topic):
        yield json.loads(event)["after"]["body"].encode() if event else b""
