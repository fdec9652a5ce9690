"""A LogSink in its suite: the journal of "Write a sink"."""

import sqlite3
from contextlib import closing

import pytest
import waybill_journal
from waybill_journal import Journal, Options

from connect_core.sdk.testing.log_sinks import LogSinkContract
from connect_core.sdk.testing.sinks import SimpleCase

TABLE = """
    CREATE TABLE journal (
        at INTEGER PRIMARY KEY AUTOINCREMENT, mark TEXT, value BLOB CHECK (value <> CAST('refused' AS BLOB))
    )
"""
waybill_journal.PAGE = 7  # a small page: an error at the end of a page is only seen where one ends


class JournalCase(SimpleCase):
    refused = b"refused"

    def __init__(self, folder):
        self.path = folder / "journal.db"
        self._run(TABLE)

    def sink(self):
        return Journal(Options(path=self.path))

    def content(self, behind=0):
        return [value for (value,) in self._run("SELECT value FROM journal ORDER BY at")][behind:]

    def expire(self, records):
        self._run(f"DELETE FROM journal WHERE at IN (SELECT at FROM journal ORDER BY at LIMIT {records})")

    def recreate(self):
        self._run("DROP TABLE journal")
        self._run(TABLE)

    def _run(self, statement):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(statement).fetchall()


class TestTheJournal(LogSinkContract):
    @pytest.fixture
    def target(self, tmp_path):
        return JournalCase(tmp_path)
