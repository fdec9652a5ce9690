"""MariaDB: a server for tests that they may kill and start again, and databases on it, looked at with its driver and
nothing of the product. With `--mysql` the same tests meet MySQL instead (tests/mysql.py)."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection

from connect_core.stack import jars, ports, processes
from connect_core.stack.processes import Launch, Process

_READY_S = 30.0
SETTINGS = {
    "bind-address": "127.0.0.1",
    "log-bin": "bin",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "server-id": "1",
    "innodb_buffer_pool_size": "64M",
    "max_connections": "400",
    "skip-name-resolve": "ON",
}
"""Of either server."""
_SETTINGS = {
    "innodb_log_file_size": "16M",
    "innodb_flush_log_at_trx_commit": "2",
    "plugin-load-add": "metadata_lock_info",
}
"""What it has committed survives SIGKILL of the server, if not of the machine."""
_FIRST = """\
SET sql_log_bin = 0;
CREATE USER IF NOT EXISTS tester@'127.0.0.1';
GRANT ALL ON *.* TO tester@'127.0.0.1' WITH GRANT OPTION;
"""
Row = tuple[Any, ...]


@dataclass
class MariaDB:
    """A server on the loopback interface, its files in `folder`."""

    folder: Path
    port: int = field(default_factory=ports.free)
    settings: Mapping[str, str] = field(default_factory=dict)
    process: Process | None = None

    def start(self) -> None:
        """Returns when it answers."""
        if not self._data.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make()
            (self.folder / "first.sql").write_text(_FIRST)
        command = (*self._program(), *as_words({**self._options(), **self._places(), "port": str(self.port)}))
        self.process = processes.start(Launch(command, self._environment(), self.folder / "server.log"))
        if not processes.wait_until(self._answers, _READY_S):
            self.kill()
            raise AssertionError(f"no server:\n{(self.folder / 'server.log').read_text(errors='replace')[-3000:]}")

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        assert self.process is not None
        processes.stop(self.process, sign=processes.signal.SIGKILL)

    @property
    def options(self) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port, "user": "tester"}

    def worded(self, statement: str) -> str:
        """As this server understands it."""
        return statement

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @classmethod
    def programs(cls) -> Path:
        return jars.cache_folder() / "mariadb"

    @classmethod
    def is_there(cls) -> bool:
        return (cls.programs() / "usr/sbin/mariadbd").exists()

    def _program(self) -> tuple[str, ...]:
        return (str(self.programs() / "usr/sbin/mariadbd"), "--no-defaults", f"--user={user()}")

    def _options(self) -> dict[str, str]:
        return {**SETTINGS, **_SETTINGS, **self.settings}

    def _places(self) -> dict[str, str]:
        programs = self.programs()
        return {
            "datadir": str(self._data),
            "socket": str(self.folder / "s.sock"),
            "pid-file": str(self.folder / "m.pid"),
            "tmpdir": str(self.folder),
            "init-file": str(self.folder / "first.sql"),
            "lc-messages-dir": str(programs / "usr/share/mysql"),
            "character-sets-dir": str(programs / "usr/share/mysql/charsets"),
            "plugin-dir": str(programs / "usr/lib/mysql/plugin"),
        }

    def _make(self) -> None:
        programs = self.programs()
        program = str(programs / "usr/bin/mariadb-install-db")
        places = {"basedir": str(programs / "usr"), "datadir": str(self._data), "innodb_log_file_size": "16M"}
        words = as_words({**places, "lc-messages-dir": str(programs / "usr/share/mysql"), "user": user()})
        switches = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
        self._make_by((program, "--no-defaults", *words, *switches))

    def _make_by(self, command: tuple[str, ...]) -> None:
        made = processes.start(Launch(command, self._environment(), self.folder / "made.log"))
        assert processes.wait_until(lambda: not made.is_alive, _READY_S)

    def _environment(self) -> dict[str, str]:
        programs = self.programs()
        libraries = (programs / "usr/lib/x86_64-linux-gnu", programs / "lib/x86_64-linux-gnu")
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}

    def _answers(self) -> bool:
        try:
            pymysql.connect(**self.options, connect_timeout=1, ssl_disabled=True).close()
        except pymysql.Error:
            return False
        return True


class Database:
    """One of its own on the server."""

    def __init__(self, server: MariaDB, name: str = "") -> None:
        self.server, self.name = server, name or f"tables_{uuid.uuid4().hex[:12]}"
        self.options = server.options
        self.run(f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4")
        self.options = {**server.options, "database": self.name}

    @classmethod
    def of(cls, server: MariaDB, name: str) -> Database:
        """One that is there."""
        found = cls.__new__(cls)
        found.server, found.name, found.options = server, name, {**server.options, "database": name}
        return found

    def run(self, *statements: str) -> list[Row]:
        """Rows of the last one."""
        with closing(self.connected()) as database, database.cursor() as cursor:
            for statement in statements:
                cursor.execute(self.server.worded(statement))
            return list(cursor.fetchall())

    def connected(self, **more: Any) -> Connection[Any]:
        """A session of another program."""
        given = {**self.options, **more}
        return pymysql.connect(**given, charset="utf8mb4", autocommit=True, ssl_disabled=True)

    def sink(self, table: str, **more: Any) -> dict[str, Any]:
        return {"mysql": {**self.options, "table": table, **more}}

    def source(self, table: str, **more: Any) -> dict[str, Any]:
        return {"mysql": {**self.options, "table": table, **more}}

    def changes(self, *tables: str, **more: Any) -> dict[str, Any]:
        usual = {"tables": [*tables], "every_s": 0.02, "snapshot": "never", "schemas": False}
        return {"mysql_changes": {**self.options, **usual, **more}}


@pytest.fixture(scope="session")
def mariadb(worker_folder: Path, server_kind: type[MariaDB]) -> Iterator[MariaDB]:
    """One for all tests of a process. Whoever kills it starts it again."""
    yield from running(server_kind(worker_folder / "mariadb"))


@pytest.fixture(scope="module")
def own_mariadb(worker_folder: Path, server_kind: type[MariaDB]) -> Iterator[MariaDB]:
    """One with `performance_schema`, which MySQL has and MariaDB has only when it is told so."""
    named = worker_folder / f"mariadb-{uuid.uuid4().hex[:8]}"
    switches = {"performance_schema": "ON", "performance-schema-instrument": "wait/lock/metadata/sql/mdl=ON"}
    yield from running(server_kind(named, settings=switches))


def running(server: MariaDB) -> Iterator[MariaDB]:
    if not server.is_there():
        pytest.skip(f"{type(server).__name__} is not there: `make ready-for-tests` fetches it (.ci)")
    server.start()
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)


def as_words(options: Mapping[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


def user() -> str:
    return os.environ.get("USER") or ("root" if os.geteuid() == 0 else str(os.geteuid()))
