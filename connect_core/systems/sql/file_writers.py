"""Whether a program has a file of SQLite as its writer. It has one at a time, from the statement on that begins to
write until the transaction ends and what it did can be seen.

There is no list of these, so the file is taken as a writer itself, for a moment, and nothing is written: whoever had it
before has ended then. `PRAGMA data_version` says less: with a write-ahead log it changes also while a transaction goes
on, when that begins the log anew."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from urllib.parse import quote

from connect_core.errors import Refused, Unreachable
from connect_core.systems.tables.finality import OpenTransaction

_WAITS_S = 0.1
_SOME_TABLE = """
SELECT '"' || replace(name, '"', '""') || '"' FROM sqlite_master
WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' LIMIT 1
"""
_BUSY, _READONLY = "SQLITE_BUSY", "SQLITE_READONLY"


def writers_of_file(path: str, where: str) -> list[OpenTransaction]:
    """One, of which no more is known, where another program has it. Raises Refused where nobody may write it."""
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=_WAITS_S)) as database:
            database.isolation_level = None
            [some] = database.execute(_SOME_TABLE).fetchone() or ("",)
            database.execute("BEGIN IMMEDIATE")
            if some:
                # Of a file that may only be read, BEGIN IMMEDIATE is no more than BEGIN.
                database.execute(f"DELETE FROM {some} WHERE 0")
            database.execute("ROLLBACK")
    except sqlite3.Error as error:
        name = str(getattr(error, "sqlite_errorname", ""))
        if name.startswith(_BUSY):
            return [OpenTransaction("writer", prepared=False)]
        if name.startswith(_READONLY):
            words = "The file, or its folder, may not be written, so nobody can say whether a transaction is open"
            step = "Grant that to the user of this process; nothing is written. Or write bulk: true"
            raise Refused(words, where=where, next_step=step) from None
        raise Unreachable(f"SQLite does not say who writes: {name}", where=where) from None
    return []
