"""A LogSource in its suite: the table of "Write a source"."""

import sqlite3
from contextlib import closing

import pytest
from waybill_events import Events, Options

from connect_core.sdk.testing.log_sources import LogSourceCase, LogSourceContract

TABLE = "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY AUTOINCREMENT, body)"


class EventsCase(LogSourceCase):
    def __init__(self, folder):
        self.path = folder / "events.db"
        self._run(TABLE)

    def source(self):
        source = Events(Options(path=self.path, page=7))
        source.every_s = 0.01
        return source

    def append(self, values):
        self._run(TABLE)
        with closing(sqlite3.connect(self.path)) as database, database:
            database.executemany("INSERT INTO events (body) VALUES (?)", [(value,) for value in values])

    def expire(self, records):
        self._run(f"DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT {records})")

    def cut(self, records):
        self._run(
            f"DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id DESC LIMIT {records})",
            "UPDATE sqlite_sequence SET seq = (SELECT max(id) FROM events) WHERE name = 'events'",
        )

    def recreate(self):
        self.remove()
        self._run(TABLE)

    def remove(self):
        self._run("DROP TABLE events")

    def break_(self):
        self.path.unlink()

    def _run(self, *statements):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)


class TestTheEvents(LogSourceContract):
    idle_timeout_s = 0.05

    @pytest.fixture
    def system(self, tmp_path):
        return EventsCase(tmp_path)
