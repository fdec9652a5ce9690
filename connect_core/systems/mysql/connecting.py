"""A connection to MySQL or MariaDB with what every statement of ours needs."""

from __future__ import annotations

import re
import ssl
from functools import cache
from typing import Any, NamedTuple

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError
from connect_core.systems.mysql.failures import reached
from connect_core.systems.mysql.options import MysqlOptions, MysqlSinkOptions
from connect_core.systems.mysql.source_options import MysqlSourceOptions

SQL_MODE = (
    "STRICT_ALL_TABLES",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_ENGINE_SUBSTITUTION",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
)
"""What does not fit is an error, 0 is a number as others are, and a backslash a character as others are."""
_MORE_S = 15
"""Seconds for which an answer may be on its way, behind what the server allows itself."""


class MysqlServer(NamedTuple):
    version: str
    is_mariadb: bool
    max_packet: int
    """Bytes of a statement."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of its version."""
        return tuple(map(int, re.findall(r"\d+", self.version)[:3]))

    @property
    def names_new_rows(self) -> bool:
        """Whether a statement that inserts rows may give them a name (AS)."""
        return not self.is_mariadb and self.numbers >= (8, 0, 19)


@cache
def _unchecked() -> ssl.SSLContext:
    """One for all: the driver makes each of its own with all that the host trusts, which takes longer than the rest of
    connecting, and does not check certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def connected(options: MysqlOptions, where: str) -> Connection[Any]:
    """Transactions are begun and ended by the caller's statements alone. Raises Unreachable and ConfigError."""
    waits_s = _patience_s(options)
    try:
        with reached(where):
            database = pymysql.connect(
                **_place(options),
                database=options.database,
                user=options.user,
                password=options.password,
                connect_timeout=options.connect_timeout_s,
                read_timeout=waits_s + _MORE_S,
                write_timeout=waits_s + _MORE_S,
                charset="utf8mb4",
                autocommit=True,
                local_infile=False,
                program_name="waybill",
                ssl=options.tls_files.context() if options.tls else None,
                ssl_disabled=not options.tls,
                defer_connect=True,
            )
            if not options.tls:  # encrypted where the server can
                database.ssl, database.ctx = True, _unchecked()
            database.connect()
            _set_up(database, options)
    except RuntimeError:
        words = "The server's way to check a password needs an encrypted connection"
        raise ConfigError(words, where=where, next_step="Write tls: true") from None
    return database


def server_of(database: Connection[Any]) -> MysqlServer:
    with database.cursor() as asking:
        asking.execute("SELECT VERSION(), @@max_allowed_packet")
        version, most = asking.fetchone() or ("", 0)
    return MysqlServer(version, "mariadb" in version.lower(), int(most))


def server_uid(asking: Cursor) -> str:
    """As the server calls itself: MySQL by a number that its data have, MariaDB by one of its machine and port; empty
    where it does not (MariaDB before 10.6)."""
    asking.execute("SHOW VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid')")
    return next((str(uid) for _, uid in asking.fetchall()), "")


def _place(options: MysqlOptions) -> dict[str, Any]:
    """`host` may be the path of a Unix socket."""
    if options.host.startswith("/"):
        return {"unix_socket": options.host}
    return {"host": options.host, "port": options.port}


def _patience_s(options: MysqlOptions) -> float:
    if isinstance(options, MysqlSinkOptions | MysqlSourceOptions):
        return options.statement_timeout_s + options.lock_timeout_s
    return 30.0


def _set_up(database: Connection[Any], options: MysqlOptions) -> None:
    """Values are kept as they are, or refused; a transaction of a process that stands still is ended by the server,
    where it can (MariaDB). What is set here may be otherwise in the server, and a session begins with that."""
    settings: dict[str, object] = {
        "sql_mode": f"'{','.join(SQL_MODE)}'",
        "time_zone": "'+00:00'",
        "foreign_key_checks": 1,
        "unique_checks": 1,
        "sql_notes": 1,
        "sql_select_limit": 2**64 - 1,  # it would cut lists of columns and writers, too
    }
    if isinstance(options, MysqlSinkOptions | MysqlSourceOptions):
        lock = max(1, round(options.lock_timeout_s))
        settings |= {"innodb_lock_wait_timeout": lock, "lock_wait_timeout": lock}
        if server_of(database).is_mariadb:
            limit = max(1, round(options.statement_timeout_s))
            settings |= {"max_statement_time": options.statement_timeout_s, "idle_transaction_timeout": limit}
            settings |= {"query_cache_type": 0, "check_constraint_checks": 1, "max_error_count": 65535}
        else:
            settings["max_execution_time"] = max(1, round(options.statement_timeout_s * 1000))
            settings["information_schema_stats_expiry"] = 0
    isolation = "REPEATABLE READ, READ ONLY" if isinstance(options, MysqlSourceOptions) else "READ COMMITTED"
    with database.cursor() as setting:
        setting.execute("SET SESSION " + ", ".join(f"{name} = {value}" for name, value in settings.items()))
        setting.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
