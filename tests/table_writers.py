"""Programs that write a table side by side, each in transactions of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from psycopg2.extensions import cursor

from tests.postgres_tables import Database
from tests.side_by_side import side_by_side

WRITERS = 8
TABLE = "CREATE TABLE orders (id bigserial PRIMARY KEY, writer int, note text)"


@contextmanager
def writing(database: Database, seeded: random.Random) -> Iterator[None]:
    """They draw numbers, insert later, commit later still, roll back, and prepare, until the context is left."""
    with side_by_side(partial(_write, database), WRITERS, seeded):
        yield


def _write(database: Database, writer: int, seed: float, stop: threading.Event) -> None:
    chosen, done = random.Random(seed), 0
    with closing(database.connected(autocommit=True)) as connection, connection.cursor() as session:
        while not stop.is_set():
            done += 1
            session.execute("BEGIN")
            for _ in range(chosen.randint(1, 4)):
                _insert(session, writer, chosen)
                _pause(chosen)
            _end(session, f"{writer}-{done}", chosen)
            _pause(chosen)


def _insert(session: cursor, writer: int, chosen: random.Random) -> None:
    how = chosen.random()
    if how < 0.4:
        session.execute(f"INSERT INTO orders (writer, note) VALUES ({writer}, 'at once')")
        return
    if how < 0.6:
        session.execute("SAVEPOINT one; SELECT nextval('orders_id_seq')")
        [number] = session.fetchone() or (0,)
        session.execute("ROLLBACK TO one")
    else:
        session.execute("SELECT nextval('orders_id_seq')")
        [number] = session.fetchone() or (0,)
    _pause(chosen)
    session.execute(f"INSERT INTO orders VALUES ({number}, {writer}, 'drawn before')")


def _end(session: cursor, name: str, chosen: random.Random) -> None:
    how = chosen.random()
    if how < 0.15:
        session.execute("ROLLBACK")
    elif how < 0.3:
        session.execute(f"PREPARE TRANSACTION '{name}'")
        _pause(chosen)
        session.execute(f"COMMIT PREPARED '{name}'")
    else:
        session.execute("COMMIT")


def _pause(chosen: random.Random) -> None:
    """Mostly short, and now and then as long as a run takes."""
    time.sleep(chosen.choice([0, 0.001, 0.005, 0.02, 0.02, chosen.uniform(0, 0.3)]))
