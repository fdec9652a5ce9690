"""A TransactionSink in its suite: the SQLite table of the examples."""

import sqlite3
from contextlib import closing

import pytest
from waybill_sqlite import Options, Table

from connect_core.sdk.testing.kits import TransactionContract
from connect_core.sdk.testing.sinks import SimpleCase


class TableCase(SimpleCase):
    refused = b"refused"  # the table forbids this value, so that the suite sees what happens to a refused row

    def __init__(self, folder):
        self.path = folder / "rows.db"
        check = "CHECK (value <> CAST('refused' AS BLOB))"
        self._run(f"CREATE TABLE rows (key TEXT, value BLOB {check}, headers TEXT, stored_at TEXT)")

    def sink(self):
        return Table(Options(path=self.path, table="rows"))

    def content(self, behind=0):
        return [value for (value,) in self._run("SELECT value FROM rows ORDER BY rowid")][behind:]

    def break_(self):
        for path in self.path.parent.glob("rows.db*"):
            path.unlink()
        self.path.mkdir()

    def _run(self, statement):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(statement).fetchall()


class TestTheTable(TransactionContract):
    @pytest.fixture
    def target(self, tmp_path):
        return TableCase(tmp_path)
