"""A file of SQLite for tests: what they run on it, and other programs' connections."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Database:
    path: Path

    def connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, timeout=30, check_same_thread=False)

    def run(self, *statements: str) -> list[Any]:
        found: list[Any] = []
        with closing(self.connected()) as database:
            for statement in statements:
                found = database.execute(statement).fetchall()
        return found

    def sink(self, table: str, **more: Any) -> dict[str, Any]:
        key = {"key": ["place", "n"]} if more.get("mode") == "upsert" else {}
        return {"sql": {"url": f"sqlite:///{self.path}", "table": table, "lock_timeout_s": 2, **key, **more}}

    def source(self, **more: Any) -> dict[str, Any]:
        return {"sql": {"url": f"sqlite:///{self.path}", **more}}
