"""Programs that insert and change rows of a table side by side, each in transactions of its own; and what must have
arrived of that, by what they have written down themselves."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from tests import mariadb, postgres_tables
from tests.side_by_side import side_by_side

Database = mariadb.Database | postgres_tables.Database
WRITERS = 6
ROWS = 300
MOMENTS = {True: "timestamp(6)", False: "timestamptz"}
"""Of MySQL, and of PostgreSQL."""


def make(database: Database, number: str = "bigint", key: str = "id") -> None:
    """Each version of a row that is committed is in `history`. `number` is the type of `id`."""
    kind = MOMENTS[isinstance(database, mariadb.Database)]
    database.run(
        f"CREATE TABLE orders (id {number} NOT NULL, version int NOT NULL, at {kind} NOT NULL, PRIMARY KEY ({key}))",
        "CREATE INDEX by_time ON orders (at)",
        "CREATE TABLE history (id bigint, version int)",
    )


@contextmanager
def writing(database: Database, seeded: random.Random) -> Iterator[None]:
    """They begin, wait, change rows, wait, roll back or commit, until the context is left."""
    with side_by_side(partial(_write, database), WRITERS, seeded):
        yield


def differences(database: Database, arrived: Iterable[tuple[int, int]]) -> list[str]:
    """Of versions of rows, in the order in which they arrived. Knows nothing of positions, passes or receipts."""
    committed = set(database.run("SELECT id, version FROM history"))
    newest = dict(database.run("SELECT id, version FROM orders"))
    seen = defaultdict[int, list[int]](list)
    for row, version in arrived:
        seen[row].append(version)
    times = Counter((row, version) for row, versions in seen.items() for version in versions)
    found = [f"never committed: {one}" for one in times if one not in committed]
    found += [f"more than once: {one}" for one, count in times.items() if count > 1]
    found += [f"out of order: {row} {versions}" for row, versions in seen.items() if versions != sorted(versions)]
    return found + [
        f"row {row} is at version {version}, and what arrived last is {seen[row][-1:]}"
        for row, version in sorted(newest.items())
        if seen[row][-1:] != [version]
    ]


def _write(database: Database, writer: int, seed: float, stop: threading.Event) -> None:
    chosen = random.Random(seed)
    own = range(1 + writer, ROWS, WRITERS)
    more = {} if isinstance(database, mariadb.Database) else {"autocommit": True}
    with closing(database.connected(**more)) as connection, connection.cursor() as session:
        while not stop.is_set():
            session.execute("BEGIN")
            if chosen.random() < 0.2:
                session.execute("SELECT 1")
                _pause(chosen)
            for row in sorted(chosen.choices(own if chosen.random() < 0.7 else range(1, ROWS), k=chosen.randint(1, 4))):
                _change(session, row)
                _pause(chosen)
            session.execute(chosen.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]))


def _change(session: Any, row: int) -> None:
    """PostgreSQL takes the begin of the transaction as the time, MySQL that of the statement."""
    session.execute(f"UPDATE orders SET version = version + 1, at = now() WHERE id = {row}")
    if session.rowcount:
        session.execute(f"INSERT INTO history SELECT id, version FROM orders WHERE id = {row}")


def fill(database: Database, begin: int = 1, end: int = ROWS) -> None:
    values = ", ".join(f"({number}, 0, now())" for number in range(begin, end))
    firsts = ", ".join(f"({number}, 0)" for number in range(begin, end))
    database.run(f"INSERT INTO orders VALUES {values}", f"INSERT INTO history VALUES {firsts}")


def _pause(chosen: random.Random) -> None:
    """Mostly short, and now and then for longer than a time may be late."""
    time.sleep(chosen.choice([0, 0.001, 0.01, 0.05, chosen.uniform(0, 0.8)]))
