"""A connection to PostgreSQL with what every statement of ours needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
from psycopg2.extensions import connection, cursor
from psycopg2.extras import LogicalReplicationConnection

from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.failures import left_out, reached
from connect_core.systems.postgresql.options import PostgresOptions, PostgresSinkOptions
from connect_core.systems.postgresql.source_options import PostgresSourceOptions

_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
"""Seconds: a server that has vanished is noticed within half a minute."""
_ENDS_WITH_CLIENT = "client_connection_check_interval"
_BEGUN = f"""
SELECT lower(name), CASE WHEN name <> '{_ENDS_WITH_CLIENT}' OR version() ~ '(Visual|mingw|cygwin)' THEN setting
                         ELSE set_config(name, '1000', false) END
FROM pg_settings WHERE lower(name) = ANY(%s)
"""
"""What holds in the session. And a statement ends within a second of the process that waits for it: that of a lane
which was ended would go on, and hold its locks. Servers before 14, and on Windows, cannot do so."""


def connected(options: PostgresOptions, where: str) -> connection:
    """Transactions are begun and ended by the caller's statements alone. Raises Unreachable and ConfigError."""
    with reached(where):
        database = psycopg2.connect(**_access(options), options=_as_words(_settings(options)))
        database.autocommit = True
        with database.cursor() as asking:
            asking.execute(_BEGUN, ([*_settings(options), _ENDS_WITH_CLIENT],))
            holds = dict(asking.fetchall())
    if others := [name for name, value in _settings(options).items() if not holds.get(name, "").startswith(value)]:
        database.close()
        raise left_out(others, where)
    return database


@contextmanager
def transaction(asking: cursor, kind: str = "") -> Iterator[None]:
    """`kind` is what follows BEGIN."""
    asking.execute(f"BEGIN {kind}")
    try:
        yield
        asking.execute("COMMIT")
    except BaseException:
        if not asking.connection.closed:
            asking.execute("ROLLBACK")
        raise


def replicating(options: PostgresChangesOptions, where: str) -> LogicalReplicationConnection:
    """A connection that follows the log. Raises Unreachable and ConfigError."""
    with reached(where):
        return psycopg2.connect(
            **_access(options), options=_as_words(_settings(options)), connection_factory=LogicalReplicationConnection
        )


def _access(options: PostgresOptions) -> dict[str, Any]:
    return {
        "host": options.host,
        "port": options.port,
        "dbname": options.database,
        "user": options.user,
        "password": options.password,
        "connect_timeout": options.connect_timeout_s,
        "application_name": options.application,
        "client_encoding": "UTF8",
        **_KEEPALIVES,
        **_tls(options),
    }


def _settings(options: PostgresOptions) -> dict[str, str]:
    """Values are written in forms that do not depend on settings; a transaction of a process that stands still is
    ended by the server."""
    said = {
        "standard_conforming_strings": "on",
        "timezone": "UTC",
        "datestyle": "ISO",
        "bytea_output": "hex",
        "array_nulls": "on",
        "intervalstyle": "postgres",
        "extra_float_digits": "1",
    }
    if isinstance(options, PostgresSourceOptions):
        said["default_transaction_read_only"] = "on"
    if isinstance(options, PostgresSourceOptions | PostgresChangesOptions):
        said["row_security"] = "off"  # a policy that hides rows is an error: a row that is shown later is never read
    if isinstance(options, PostgresSinkOptions | PostgresSourceOptions | PostgresChangesOptions):
        statement, lock = round(options.statement_timeout_s * 1000), round(options.lock_timeout_s * 1000)
        said |= {
            "statement_timeout": str(max(1, statement)),
            "lock_timeout": str(max(1, lock)),
            "idle_in_transaction_session_timeout": str(max(1, statement)),
        }
    return said


def _as_words(settings: dict[str, str]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _tls(options: PostgresOptions) -> dict[str, Any]:
    if not options.tls:
        return {"sslmode": "prefer"}
    files = options.tls_files
    named = {"sslcert": files.certificate, "sslkey": files.key or files.certificate} if files.certificate else {}
    return {"sslmode": "verify-full", "sslrootcert": files.ca or "system", **named}
