"""MySQL: a server for tests, as tests/mariadb.py has one. `--mysql` gives it to every test that asks for MariaDB; those
of what only one of both has say so by a mark."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_core.stack import jars
from tests.mariadb import SETTINGS, MariaDB, running, user

OPTION = "--mysql"
ONLY_MARIADB = pytest.mark.only_mariadb
_SETTINGS = {
    "innodb_flush_log_at_trx_commit": "2",
    "gtid-mode": "ON",
    "enforce-gtid-consistency": "ON",
    "local-infile": "ON",
    "mysqlx": "0",
    "secure-file-priv": "NULL",
    "cte-max-recursion-depth": "1000000",
    "innodb-redo-log-capacity": "16M",
    "innodb-log-buffer-size": "1M",
    "key-buffer-size": "1M",
    **{f"performance-schema-{one}-size": "0" for one in ("digests", "error")},
    **{
        f"performance-schema-events-{one}-history-long-size": "0"
        for one in ("statements", "stages", "transactions", "waits")
    },
}
"""What it has committed survives SIGKILL of the server, if not of the machine: other than MariaDB it writes what a
commit logged only once a second where this is 0."""

_OTHERWISE = {
    "SHOW MASTER STATUS": "SHOW BINARY LOG STATUS",
    "RESET MASTER": "RESET BINARY LOGS AND GTIDS",
}
_NUMBERS = re.compile(r"\bseq_([0-9]+)_to_([0-9]+)\b")


@dataclass
class MySQL(MariaDB):
    """Its programs were built for another release of Debian: they come with the loader and the libraries of that."""

    @classmethod
    def programs(cls) -> Path:
        return jars.cache_folder() / "mysql"

    @classmethod
    def is_there(cls) -> bool:
        return (cls.programs() / "usr/sbin/mysqld").exists()

    def worded(self, statement: str) -> str:
        """The tables of numbers that MariaDB has by themselves are made; its plugins need not be taken away."""
        if statement.startswith("UNINSTALL SONAME IF EXISTS"):
            return "DO 0"
        statement = _OTHERWISE.get(statement, statement)
        return _NUMBERS.sub(_made_numbers, statement)

    def _program(self) -> tuple[str, ...]:
        programs = self.programs()
        libraries = programs / "usr/lib/x86_64-linux-gnu"
        loader = (str(libraries / "ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{libraries}/mysql/private")
        server = (str(programs / "usr/sbin/mysqld"), "--no-defaults", f"--user={user()}")
        return (*loader, *server, f"--basedir={programs}/usr")

    def _options(self) -> dict[str, str]:
        return {**SETTINGS, **_SETTINGS, **self.settings}

    def _make(self) -> None:
        share = f"--lc-messages-dir={self.programs()}/usr/share/mysql"
        self._make_by((*self._program(), "--initialize-insecure", f"--datadir={self._data}", share))

    def _environment(self) -> dict[str, str]:
        return dict(os.environ)


def _made_numbers(found: re.Match[str]) -> str:
    first, last = found.groups()
    following = f"SELECT seq + 1 FROM made WHERE seq < {last}"
    return f"(WITH RECURSIVE made (seq) AS (SELECT {first} UNION ALL {following}) SELECT seq FROM made) numbers"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="tests that ask for MariaDB meet MySQL instead")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What only MariaDB has is not asked of MySQL."""
    if config.getoption(OPTION):
        items[:] = [item for item in items if not item.get_closest_marker(ONLY_MARIADB.name)]


@pytest.fixture(scope="session")
def server_kind(pytestconfig: pytest.Config) -> type[MariaDB]:
    return MySQL if pytestconfig.getoption(OPTION) else MariaDB


@pytest.fixture(scope="module")
def mysql(worker_folder: Path) -> Iterator[MariaDB]:
    """MySQL, whichever option was given, for the tests of a file: it takes as much memory as all else that they need.
    Whoever kills it starts it again."""
    if not MySQL.is_there():
        pytest.skip("MySQL is not there: Debian's unstable suite did not give it to .ci/mysql")
    yield from running(MySQL(worker_folder / "mysql"))
