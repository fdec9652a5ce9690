"""A KeyedSink in its suite: the newest rows of "Write a sink"."""

import sqlite3
from contextlib import closing

import pytest
from waybill_latest import Latest, Options

from connect_core.sdk.testing.keyed_sinks import KeyedContract
from connect_core.sdk.testing.sinks import SimpleCase

CHECK = "CHECK (value <> CAST('refused' AS BLOB))"


class LatestCase(SimpleCase):
    refused = b"refused"

    def __init__(self, folder, *, by_key):
        self.path, self._by_key = folder / "latest.db", by_key
        self._run(f"CREATE TABLE latest (id TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB {CHECK})")

    def sink(self):
        return Latest(Options(path=self.path, by_key=self._by_key))

    def content(self, behind=0):
        rows = self._run("SELECT value FROM latest WHERE value IS NOT NULL ORDER BY rowid")
        return [value for (value,) in rows][behind:]

    def _run(self, statement):
        with closing(sqlite3.connect(self.path)) as database:
            return database.execute(statement).fetchall()


class TestTheRows(KeyedContract):
    steps = 40  # each costs three attempts; 200 unless you say otherwise

    @pytest.fixture(params=[False, True], ids=["by-coordinates", "by-key"])
    def target(self, request, tmp_path):
        return LatestCase(tmp_path, by_key=request.param)
