"""DuckDB in memory, locked: no files, no network, no extensions, no variables of Python, one thread, moments in UTC.

It is loaded with the first statement of a document. One database serves a process, and each question has a connection
of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread
from typing import Any

import pyarrow as pa

from connect_core.errors import VersionMismatch
from connect_core.pipeline.transforms.sql_words import DUCKDB

MEMORY = "512MB"
LIMIT_S = 5.0
"""What a statement may take for one record, of wall time. A lane that works much longer on one is killed by its
deadline."""
SHARED_LIMIT_S = 2.0
"""What it may take for several: there has to be time left for fewer of them."""
_AGAIN_S = 0.05
PART = 64 << 10
"""Bytes of rows that are worked out at once."""
TOO_DEEP = "cannot be read: expressions are too deep in each other (use several steps), or something is no text"
AT_ONCE = 2048
"""Rows that DuckDB works out at once by itself."""

_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
    "async_threads": "0",  # a forked process has none of them, and would wait for them at its end
    "memory_limit": MEMORY,
    "temp_directory": "",
}


def asked(question: str, about: str) -> str:
    """The one text that answers a question of ours about a text. Raises ValueError where DuckDB has none."""
    import duckdb

    with _connection() as connection:
        try:
            [(answer,)] = connection.execute(question, [about]).fetchall()
        except duckdb.Error:
            raise ValueError(TOO_DEEP) from None
        return str(answer)


def types(statement: str, rows: pa.RecordBatch) -> list[Any]:
    """Of its columns, as DuckDB has them. Raises ValueError for what does not fit together."""
    import duckdb

    with _connection() as connection:
        connection.register("records", rows)
        try:
            return list(connection.sql(statement).types)
        except duckdb.Error as error:
            raise ValueError(str(error).split("\n", 1)[0].split(": ", 1)[-1]) from None


def answered(statement: str, rows: pa.RecordBatch, limit_s: float) -> pa.Table:
    """Raises TimeoutError where it takes longer."""
    import duckdb

    with _connection() as connection:
        connection.register("records", pa.Table.from_batches(_parts(rows)))
        done = Event()
        stopper = Thread(target=_interrupt, args=(connection, limit_s, done), daemon=True)
        stopper.start()
        try:
            return connection.sql(statement).to_arrow_table()
        except duckdb.InterruptException:
            raise TimeoutError from None
        finally:
            done.set()
            stopper.join()


def _interrupt(connection: Any, limit_s: float, done: Event) -> None:
    """Again and again: DuckDB forgets it where it has not begun."""
    wait_s = limit_s
    while not done.wait(wait_s):
        connection.interrupt()
        wait_s = _AGAIN_S


def _parts(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    """DuckDB notices that it is to stop between two of them."""
    at_once = min(AT_ONCE, max(1, PART * len(rows) // max(1, rows.nbytes)))
    return [rows.slice(begin, at_once) for begin in range(0, len(rows), at_once)] or [rows]


@contextmanager
def _connection() -> Iterator[Any]:
    """After an error another database is opened: some errors of DuckDB leave one behind that answers nothing more, and
    then each record would seem to be at fault."""
    import duckdb

    try:
        connection = _database(os.getpid()).cursor()
        try:
            yield connection
        finally:
            connection.close()
    except duckdb.Error:
        _database.cache_clear()
        raise


@cache
def _database(process: int) -> Any:
    """Of this process: a forked one has another."""
    import duckdb

    if duckdb.__version__ != DUCKDB:
        raise VersionMismatch(
            f"DuckDB {duckdb.__version__} is installed, and statements of sql steps need {DUCKDB}",
            where=sys.executable,
            next_step=f"Install it there: pip install duckdb=={DUCKDB}",
        )
    database = duckdb.connect(":memory:", config=_LOCKED)
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    database.execute("SET lock_configuration = true")
    return database
