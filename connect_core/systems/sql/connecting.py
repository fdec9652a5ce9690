"""A connection by SQLAlchemy, with what every statement of ours needs.

A database of SQLite is opened by ourselves: only a file that is there, with foreign keys, and so that what was
committed is on the disk, its folder included (`synchronous = EXTRA`)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from connect_core.errors import ConfigError, Missing
from connect_core.systems.sql.failures import understood
from connect_core.systems.sql.options import SqlOptions

Opens = Literal["reads", "writes", "makes"]
"""`makes`: the file of SQLite, too, where it is missing."""
_PACKAGES = {
    "clickhouse": "clickhouse-sqlalchemy",
    "cockroachdb": "sqlalchemy-cockroachdb",
    "db2": "ibm_db_sa",
    "firebird": "sqlalchemy-firebird",
    "hana": "sqlalchemy-hana",
    "redshift": "sqlalchemy-redshift",
    "snowflake": "snowflake-sqlalchemy",
    "teradatasql": "teradatasqlalchemy",
    "psycopg2": "psycopg2-binary",
    "ibm_db_dbi": "ibm_db",
}
"""Of a dialect, or of a driver's module, the package of PyPI, where it has another name."""


@contextmanager
def connected(options: SqlOptions, where: str, opens: Opens) -> Iterator[sa.Connection]:
    """One connection, which is closed in the end: what is not committed is rolled back. Raises Unreachable where there
    is no answer, and ConfigError where a package is missing."""
    engine = engine_of(options, where, opens)
    if options.file and opens != "makes":
        _require_file(options.file, where)
    with understood(where):
        connection = engine.connect()
    try:
        yield connection
    finally:
        connection.invalidate()  # no answer is waited for, and no statement of a lost transaction is tried
        connection.close()


def _require_file(path: str, where: str) -> None:
    """SQLite says of one that is gone what it says of one that may not be read."""
    try:
        os.stat(path)
    except FileNotFoundError:
        step = "Bring it back, or name another one; the next attempt looks again"
        raise Missing("The file cannot be opened: it is not there", where=where, next_step=step) from None
    except OSError:
        return


def engine_of(options: SqlOptions, where: str, opens: Opens) -> sa.Engine:
    """Nothing is connected yet."""
    if options.file:
        return _of_file(options, opens)
    url = make_url(options.url).set(username=options.user or None, password=options.password or None)
    try:
        return _of_server(url)
    except exc.NoSuchModuleError:
        raise _missing(options.dialect, f"SQLAlchemy knows no {options.dialect}", where) from None
    except ModuleNotFoundError as error:
        module = (error.name or options.dialect).partition(".")[0]
        raise _missing(module, f"The driver {module} is not installed", where) from None


@lru_cache(maxsize=16)
def _of_server(url: sa.URL) -> sa.Engine:
    """It has no connections of its own, and knows the statements that it has compiled: half of the time that a look at
    a table takes."""
    return sa.create_engine(url, poolclass=NullPool, hide_parameters=True)


def _missing(name: str, words: str, where: str) -> ConfigError:
    package = _PACKAGES.get(name, name)
    step = f"pip install {package}, wherever this connector runs: the driver and the workers"
    return ConfigError(words, where=where, next_step=step)


def _of_file(options: SqlOptions, opens: Opens) -> sa.Engine:
    mode = "rwc" if opens == "makes" else "rw"

    def connect() -> sqlite3.Connection:
        database = sqlite3.connect(
            f"file:{quote(options.file)}?mode={mode}",
            uri=True,
            timeout=options.lock_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        database.text_factory = _text
        database.execute("PRAGMA foreign_keys = ON")
        # FULL would leave the removal of the rollback journal to the file system: a power cut could bring it back, and
        # with it what was before COMMIT.
        database.execute("PRAGMA synchronous = EXTRA")
        if opens == "reads":
            database.execute("PRAGMA query_only = ON")
        return database

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        """A writer has the file from here on: the next one waits, and nothing that it has read changes meanwhile."""
        connection.exec_driver_sql("BEGIN" if opens == "reads" else "BEGIN IMMEDIATE")

    return engine


def _text(value: bytes) -> str:
    """What is no UTF-8 can be told from it: it has halves of surrogate pairs."""
    return value.decode("utf-8", "surrogateescape")


def schema_version(connection: sa.Connection) -> Any:
    """Of SQLite: another number once something was altered. None of a server."""
    if connection.dialect.name != "sqlite":
        return None
    return connection.exec_driver_sql("PRAGMA schema_version").scalar()
