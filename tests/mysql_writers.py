"""Programs that write a table of MySQL side by side, each in transactions of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

from tests.mariadb import Database

TABLE = "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, writer int, note text)"


@contextmanager
def writing(database: Database, seeded: random.Random, writers: int = 8) -> Iterator[None]:
    """They insert one row, several, some that come from a SELECT, wait, and commit or roll back, until the context is
    left."""
    stop = threading.Event()
    with ThreadPoolExecutor(writers) as pool:
        seeds = [seeded.random() for _ in range(writers)]
        running = [pool.submit(_write, database, number, seed, stop) for number, seed in enumerate(seeds)]
        try:
            yield
        finally:
            stop.set()
    for one in running:
        one.result()


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
