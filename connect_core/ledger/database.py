"""The way into the database: engines, transactions, and what their errors mean. Used by this room only.

Two kinds of transaction, `read` and `write`. On SQLite a write begins with BEGIN IMMEDIATE, so that it waits for its
turn at the start and never fails in the middle. Nothing is retried here: whoever asked is tried again from outside. A
ledger must not be carried across a fork.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Connection, Dialect, Engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    OperationalError,
)

from connect_core import clock
from connect_core.errors import ConfigError, DataError, Retriable, Unreachable

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

_BUSY_TIMEOUT_S = 60
_CONNECT_TIMEOUT_S = 5

IDLE_LIMIT_S = 10
"""A driver that was stopped inside a transaction (SIGSTOP, a swapped-out host) would keep its lease row locked for
ever: PostgreSQL ends such a session after this time."""

LOCK_LIMIT_S = 12
"""How long a transaction waits for a lock: longer than a stopped session can keep it."""

_RESTED = "rested"
TRUSTED_S = 1.0
"""For so long a connection that nobody used is taken for alive: to ask it takes as long as to ask for a row."""

_KEPT_OPEN = 10
"""So many connections may rest: whoever is one more opens its own, and closes it. A server asks for as many clients at
once; to connect takes as long as ten requests."""

_WRITES = "ledger_writes"
MANY = 500

_READ_ONLY = "25006"
"""PostgreSQL: a standby, or a server that takes no writes until somebody makes room."""

_PASSING = {"40001", "40P01", "55P03"}
"""PostgreSQL: serialization failure, deadlock, lock not available."""


class CommitUnknown(Retriable):
    """The connection was lost while COMMIT was under way: the transaction may stand or not."""


def now() -> datetime:
    return clock.utc()


def parse_url(url: str) -> URL:
    """A database URL with its driver settled. Raises ConfigError for what is not SQLite in a file or PostgreSQL."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigError("Not a database URL", where="WAYBILL_DATABASE_URL", next_step=_URL_ADVICE) from None
    dialect = parsed.get_backend_name()
    if dialect == "postgresql":
        return parsed.set(drivername="postgresql+psycopg2")
    if dialect == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed
    raise ConfigError("This database cannot hold a ledger", where=shown(parsed), next_step=_URL_ADVICE)


_URL_ADVICE = "Give sqlite:////path/to/ledger.sqlite or postgresql://user@host/database"


def shown(url: URL) -> str:
    """The URL as it may be shown: without its password."""
    return url.render_as_string(hide_password=True)


def sqlite_path(url: URL) -> Path | None:
    """Where the SQLite file is; None for a database with a server."""
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def engine_for(url: URL) -> Engine:
    """A pool of a few connections; nothing is connected yet. No parameter ever appears in an error or a log."""
    if sqlite_path(url) is not None:
        engine = sa.create_engine(
            url, connect_args={"timeout": _BUSY_TIMEOUT_S, "isolation_level": None}, hide_parameters=True
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    timeouts = {"lock_timeout": LOCK_LIMIT_S, "idle_in_transaction_session_timeout": IDLE_LIMIT_S}
    settings = {
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "options": " ".join(f"-c {name}={seconds}s" for name, seconds in timeouts.items()),
        "tcp_user_timeout": IDLE_LIMIT_S * 1000,
        "application_name": "waybill",
    }
    engine = sa.create_engine(
        url,
        connect_args=settings,
        pool_size=_KEPT_OPEN,
        hide_parameters=True,
        executemany_mode="values_plus_batch",
    )
    event.listen(engine, "handle_error", _leave_read_only)
    event.listen(engine, "checkin", _rests)
    event.listen(engine, "checkout", partial(_require_alive, engine.dialect))
    return engine


def _rests(_connection: object, record: Any) -> None:
    record.info[_RESTED] = time.monotonic()


def _require_alive(dialect: Dialect, connection: Any, record: Any, _proxy: object) -> None:
    """A connection that has rested may have lost its server; the pool connects anew then."""
    if time.monotonic() - record.info.get(_RESTED, math.inf) > TRUSTED_S:
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as lost:
            raise DisconnectionError from lost


def _leave_read_only(context: sa.ExceptionContext) -> None:
    """The next transaction connects anew: after a switch-over the primary is another server."""
    if pgcode(context.original_exception) == _READ_ONLY:
        context.is_disconnect = True


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    # FULL: what was settled is still there after a power cut, which NORMAL does not promise with a write-ahead log.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def read(engine: Engine) -> Iterator[Connection]:
    with _told(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def write(engine: Engine) -> Iterator[Connection]:
    """One transaction: committed when the block ends, rolled back when it raises.

    Raises CommitUnknown when the connection was lost while COMMIT was under way.
    """
    with _told(engine), engine.connect().execution_options(**{_WRITES: True}) as connection:
        transaction = connection.begin()
        try:
            yield connection
        except BaseException:
            with suppress(DBAPIError):  # a lost connection rolls back by itself; what went wrong before is the news
                transaction.rollback()
            raise
        try:
            transaction.commit()
        except BaseException as lost:
            connection.invalidate()  # the pool would give it out again with this transaction still open
            if not isinstance(lost, DBAPIError):
                raise
            raise CommitUnknown(
                "The ledger's answer to COMMIT was lost: it is unknown whether the transaction was committed",
                where=shown(engine.url),
                next_step="Try again; work that is already stored is recognised",
            ) from lost


_DAMAGED = ("file is not a database", "disk image is malformed")
"""What SQLite says of such a file."""


@contextmanager
def _told(engine: Engine) -> Iterator[None]:
    """Database errors as errors of our tree. Errors of our own SQL stay what they are: bugs."""
    try:
        yield
    except IntegrityError as broken:
        raise DataError(f"The ledger refused a row: {_words(broken)}", where=shown(engine.url)) from broken
    except (OperationalError, InterfaceError) as failed:
        raise _failure(failed, engine.url) from failed
    except DBAPIError as failed:
        if any(words in str(failed.orig) for words in _DAMAGED):
            step = "Bring it back from a backup"
            raise Unreachable(
                f"The ledger is damaged: {_words(failed)}", where=shown(engine.url), next_step=step
            ) from failed
        if not failed.connection_invalidated:
            raise
        raise _failure(failed, engine.url) from failed


def _failure(failed: DBAPIError, url: URL) -> Retriable:
    if pgcode(failed.orig) in _PASSING or "database is locked" in str(failed.orig):
        return Retriable(f"The ledger was busy: {_words(failed)}", where=shown(url), next_step="Try again")
    if pgcode(failed.orig) == _READ_ONLY:
        advice = "Point WAYBILL_DATABASE_URL at the primary, or check why the server is read-only (a full disk?)"
        return Unreachable(f"The ledger accepts no writes: {_words(failed)}", where=shown(url), next_step=advice)
    advice = "Check that the database runs: waybill status"
    return Unreachable(f"The ledger does not answer: {_words(failed)}", where=shown(url), next_step=advice)


def pgcode(error: BaseException | None) -> str:
    """PostgreSQL's code of an error; empty when it has none."""
    return str(getattr(error, "pgcode", None) or "")


def _words(failed: DBAPIError) -> str:
    """The first line of what the database said: the further ones may quote values."""
    return str(failed.orig).strip().partition("\n")[0]


class Transactions:
    """What every part of the ledger stands on: one engine, and the two kinds of transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _read(self) -> AbstractContextManager[Connection]:
        return read(self._engine)

    def _write(self) -> AbstractContextManager[Connection]:
        return write(self._engine)


def among(column: sa.Column[Any], values: Sequence[str]) -> sa.ColumnElement[bool]:
    """`column IN values`, or no condition when there are too many for a statement: the caller picks what it wants."""
    return column.in_(values) if len(values) <= MANY else sa.true()


def upsert(connection: Connection, table: sa.Table, key: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows of equal columns; where `key` (a unique one) is there already, overwrites the other columns.

    Of rows with an equal key the last one counts: PostgreSQL does not take two of them in one statement.
    """
    if rows:
        statement = _upsert_statement(connection.dialect.name, table, tuple(key), tuple(rows[0]))
        connection.execute(statement, list({tuple(row[name] for name in key): row for row in rows}.values()))


def insert_missing(connection: Connection, table: sa.Table, key: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows of equal columns, but those of which `key` (a unique one) is there already."""
    if rows:
        statement = _insert(connection.dialect.name, table)
        connection.execute(statement.on_conflict_do_nothing(index_elements=list(key)), list(rows))


def _insert(dialect: str, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """Both have the same ways to go on where a row is there already."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # 20 ms, with drivers that nobody here uses

        return postgresql.insert(table)
    return sqlite.insert(table)


@cache
def _upsert_statement(dialect: str, table: sa.Table, key: tuple[str, ...], columns: tuple[str, ...]) -> sa.Insert:
    """Kept, because building one costs more than running it."""
    statement = _insert(dialect, table)
    overwritten = {name: statement.excluded[name] for name in columns if name not in key}
    return statement.on_conflict_do_update(index_elements=list(key), set_=overwritten)
