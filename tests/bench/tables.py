"""Rows of a table into a topic, and messages of a topic into a table, beside bare loops with the same drivers.

A bare loop moves the same data by the quickest statements of its database: a cursor of the server out, COPY or LOAD
DATA in, ten thousand rows in a transaction. It keeps no marker, and reads JSON without a look at types.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from io import BytesIO
from itertools import count
from typing import Any

import orjson
from pymysql.cursors import SSCursor

from connect_core.rocketmq import Client, ClientOptions, encode_batches
from tests.bench.bare import PROPERTIES
from tests.bench.copies import fill, forget
from tests.bench.logged import Database, MariaDatabase, mariadb, postgresql
from tests.bench.measures import compared
from tests.bench.place import Place, Timed
from tests.bench.telling import Row
from tests.mariadb import MariaDB

_AT_ONCE = 10_000
_LIMIT_S = 600.0
_QUEUES = 2
_FIELDS = {"id": "int64", "a": "text", "b": "int32", "c": "text"}
_BYTES = 200
_numbers = count(1)
Values = Sequence[Any]
"""Of a row, by `_FIELDS`."""


class _Postgresql:
    name, system = "PostgreSQL", "postgresql"

    def __init__(self, database: Database) -> None:
        self.options, self._database = database.options, database
        self.make, self.connected = database.run, database.connected

    def fill(self, table: str, rows: int) -> None:
        values = "repeat('x', 80), n, repeat('y', 80)"
        self.make(f"INSERT INTO {table} SELECT n, {values} FROM generate_series(1, {rows}) n")

    def read(self, session: Any, table: str) -> Iterator[list[Values]]:
        with session.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"DECLARE bare CURSOR FOR SELECT id, a, b, c FROM {table} ORDER BY id")
            cursor.execute(f"FETCH {_AT_ONCE} FROM bare")
            while rows := cursor.fetchall():
                yield rows
                cursor.execute(f"FETCH {_AT_ONCE} FROM bare")

    def add(self, session: Any, table: str, rows: Sequence[Values]) -> None:
        lines = BytesIO("".join(f"{one[0]}\t{one[1]}\t{one[2]}\t{one[3]}\n" for one in rows).encode())
        with session.cursor() as cursor:
            cursor.copy_expert(f"COPY {table} (id, a, b, c) FROM STDIN", lines)


class _Mariadb:
    name, system = "MariaDB", "mysql"

    def __init__(self, server: MariaDB) -> None:
        database = MariaDatabase(server)
        self.options, self._lines = database.options, server.folder / "lines"
        self.make, self.connected = database.run, database.connected

    def fill(self, table: str, rows: int) -> None:
        self.make(f"INSERT INTO {table} SELECT seq, repeat('x', 80), seq, repeat('y', 80) FROM seq_1_to_{rows}")

    def read(self, session: Any, table: str) -> Iterator[list[Values]]:
        with session.cursor(SSCursor) as cursor:
            cursor.execute(f"SELECT id, a, b, c FROM {table} ORDER BY id")
            while rows := cursor.fetchmany(_AT_ONCE):
                yield rows

    def add(self, session: Any, table: str, rows: Sequence[Values]) -> None:
        self._lines.write_text("".join(f"{one[0]}\t{one[1]}\t{one[2]}\t{one[3]}\n" for one in rows))
        with session.cursor() as cursor:
            cursor.execute(f"LOAD DATA LOCAL INFILE '{self._lines}' INTO TABLE {table} (id, a, b, c)")


_Tables = _Postgresql | _Mariadb


def tables(place: Place, rows: int, repeats: int) -> list[Row]:
    with ExitStack() as opened:
        server = opened.enter_context(mariadb(place))
        postgres = _Postgresql(opened.enter_context(postgresql(place)))
        return [row for one in (postgres, _Mariadb(server)) for row in _of(place, one, rows, repeats)]


def _of(place: Place, database: _Tables, rows: int, repeats: int) -> Iterator[Row]:
    yield _table_to_topic(place, database, rows, repeats)
    topic = f"rows-{next(_numbers)}"
    fill(place, topic, rows, _BYTES, _QUEUES, lambda number: _json((number, "x" * 80, number % 1_000_000, "y" * 80)))
    for mode in ("insert", "upsert"):
        yield _topic_to_table(place, database, topic, rows, mode, repeats)
    forget(place, topic)


def _table_to_topic(place: Place, database: _Tables, rows: int, repeats: int) -> Row:
    table = _made(database)
    database.fill(table, rows)

    def ours() -> Timed:
        name = f"table-out-{next(_numbers)}"
        sink = {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}
        place.apply(name, {database.system: {**database.options, "table": table}}, sink)
        timed = place.run(name)
        forget(place, name)
        return timed

    def bare() -> float:
        name = f"bare-{next(_numbers)}"
        taken = _seconds(partial(_bare_out, place, database, table, name))
        forget(place, name)
        return taken

    what = f"table of {database.name} -> RocketMQ, {rows:,} rows of {_BYTES} bytes"
    return compared(what, rows, ours, bare, repeats)


def _topic_to_table(place: Place, database: _Tables, topic: str, rows: int, mode: str, repeats: int) -> Row:
    """`upsert` goes over rows that are there."""
    full = _made(database)
    database.fill(full, rows + 1)

    def ours() -> Timed:
        name = f"table-in-{next(_numbers)}"
        table = full if mode == "upsert" else _made(database)
        source = {"rocketmq": {"connection": "main", "topics": topic}}
        sink = {database.system: {**database.options, "table": table, "mode": mode}}
        place.apply(name, source, sink, parse={"format": "json", "fields": _FIELDS})
        return place.run(name)

    def bare() -> float:
        return _seconds(partial(_bare_in, place, database, topic, _made(database)))

    words = "upserts over rows that are there" if mode == "upsert" else "inserts"
    what = f"RocketMQ -> table of {database.name}, {rows:,} {words} of {_BYTES} bytes, 2 queues"
    return compared(what, rows, ours, bare, repeats)


def _bare_out(place: Place, database: _Tables, table: str, topic: str) -> None:
    deadline = time.monotonic() + _LIMIT_S
    with _client(place) as client, closing(database.connected()) as session:
        [queue] = client.topics.create(topic, queues=1)
        sender = client.sender(queue)
        for rows in database.read(session, table):
            for batch in encode_batches([_json(one) for one in rows], [PROPERTIES] * len(rows)):
                sender.submit(batch, deadline=deadline)
        sender.finish(deadline=deadline)


def _bare_in(place: Place, database: _Tables, topic: str, table: str) -> None:
    deadline = time.monotonic() + _LIMIT_S
    with _client(place) as client, closing(database.connected()) as session:
        waiting: list[Values] = []
        for queue, bounds in sorted(client.offsets.bounds(topic).items()):
            for part in client.read(queue, bounds.begin, bounds.end, deadline=deadline):
                waiting += [(*orjson.loads(message.body).values(),) for message in part.messages]
                if len(waiting) >= _AT_ONCE:
                    database.add(session, table, waiting)
                    waiting = []
        database.add(session, table, waiting)


def _made(database: _Tables) -> str:
    name = f"rows_{next(_numbers)}"
    database.make(f"CREATE TABLE {name} (id bigint PRIMARY KEY, a varchar(80), b integer, c varchar(80))")
    return name


def _json(row: Values) -> bytes:
    return orjson.dumps(dict(zip(_FIELDS, row, strict=True)))


def _seconds(loop: Callable[[], None]) -> float:
    begun = time.monotonic()
    loop()
    return time.monotonic() - begun


def _client(place: Place) -> Client:
    return Client(ClientOptions(name_servers=tuple(place.name_servers.split(";"))))
