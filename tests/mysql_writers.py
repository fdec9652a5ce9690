"""Programs that write a table of MySQL side by side, each in transactions of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from tests.mariadb import Database
from tests.side_by_side import side_by_side

TABLE = "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, writer int, note text)"


@contextmanager
def writing(database: Database, seeded: random.Random, writers: int = 8) -> Iterator[None]:
    """They insert one row, several, some that come from a SELECT, wait, and commit or roll back, until the context is
    left."""
    with side_by_side(partial(_write, database), writers, seeded):
        yield


def _write(database: Database, writer: int, seed: float, stop: threading.Event) -> None:
    chosen = random.Random(seed)
    with closing(database.connected()) as connection, connection.cursor() as session:
        while not stop.is_set():
            session.execute("BEGIN")
            for _ in range(chosen.randint(1, 3)):
                rows = ", ".join([f"({writer})"] * chosen.randint(1, 5))
                many = f"SELECT {writer} FROM information_schema.COLLATIONS LIMIT 20"
                session.execute(f"INSERT INTO orders (writer) {many if chosen.random() < 0.2 else f'VALUES {rows}'}")
                time.sleep(chosen.choice([0, 0.001, 0.01, chosen.uniform(0, 0.3)]))
            session.execute(chosen.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
            time.sleep(chosen.choice([0, 0.01, 0.05]))
