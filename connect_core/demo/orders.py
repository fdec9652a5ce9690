"""A table of the demo whose rows are inserted, updated and deleted while its changes are followed, and the table that
they arrive in, both in a database of the local stack's PostgreSQL. What is compared is asked with a plain client."""

from __future__ import annotations

import random
from contextlib import closing
from hashlib import sha256
from threading import Event, Thread
from typing import Any, NamedTuple

import psycopg2
from psycopg2 import sql

ROWS = 20_000
"""That are there before anybody follows their changes."""
_CHANGES = 100
"""In a transaction."""
_PAUSE_S = 0.05
SOURCE, TARGET = "orders", "orders_copy"
FIELDS = {"id": "int64", "customer": "text", "amount": "decimal(12,2)", "changed": "timestamp"}
_TABLES = """
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer text NOT NULL, amount numeric(12, 2) NOT NULL, changed timestamptz NOT NULL);
INSERT INTO orders SELECT n, 'customer ' || n %% 500, n * 1.25, now() FROM generate_series(1, %(rows)s) AS n;
CREATE TABLE orders_copy (LIKE orders INCLUDING ALL);
"""


class Seen(NamedTuple):
    """Of one table."""

    rows: int
    sha256: str


class Orders:
    """`with` ends the writer."""

    def __init__(self, socket_folder: str, database: str) -> None:
        self._where = {"host": socket_folder, "user": "postgres"}
        self._database = database
        self._over = Event()
        self._writer: Thread | None = None
        self._failures: list[Exception] = []
        self.changes = 0
        """Rows that the writer has changed."""

    def create(self) -> None:
        """The database with both tables."""
        with closing(psycopg2.connect(**self._where, dbname="postgres")) as connection:
            connection.autocommit = True
            with connection.cursor() as asking:
                asking.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(self._database)))
        with closing(self._connected()) as connection, connection, connection.cursor() as asking:
            asking.execute(_TABLES, {"rows": ROWS})

    def start(self) -> None:
        """Rows begin to change."""
        self._writer = Thread(target=self._write, name="orders of the demo", daemon=True)
        self._writer.start()

    def stop(self) -> None:
        """Raises what the writer met."""
        self._over.set()
        if self._writer:
            self._writer.join()
        if self._failures:
            raise self._failures[0]

    def seen(self, table: str) -> Seen:
        digest, rows = sha256(), 0
        with closing(self._connected()) as connection, connection.cursor() as asking:
            asking.execute(
                sql.SQL("SELECT id, customer, amount, changed FROM {} ORDER BY id").format(sql.Identifier(table))
            )
            for row in asking:
                digest.update(repr(row).encode())
                rows += 1
        return Seen(rows, digest.hexdigest())

    def __enter__(self) -> Orders:
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()

    def _connected(self) -> Any:
        return psycopg2.connect(**self._where, dbname=self._database)

    def _write(self) -> None:
        chance, newest = random.Random(7), ROWS
        try:
            with closing(self._connected()) as connection:
                while not self._over.wait(_PAUSE_S):
                    with connection, connection.cursor() as asking:
                        for _ in range(_CHANGES):
                            newest += self._change(asking, chance, newest)
        except psycopg2.Error as error:
            self._failures.append(error)

    def _change(self, asking: Any, chance: random.Random, newest: int) -> int:
        """One row; returns how many are new."""
        kind, one = chance.random(), chance.randint(1, newest)
        if kind < 0.4:
            new = (newest + 1, f"customer {one % 500}", one)
            asking.execute("INSERT INTO orders VALUES (%s, %s, %s, clock_timestamp())", new)
        elif kind < 0.9:
            asking.execute(
                "UPDATE orders SET amount = amount + 0.01, changed = clock_timestamp() WHERE id = %s", (one,)
            )
        else:
            asking.execute("DELETE FROM orders WHERE id = %s", (one,))
        self.changes += asking.rowcount
        return 1 if kind < 0.4 else 0
