"""A PostgreSQL and its streaming standby, which may take over: servers of their own, on ports of the loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2

from connect_core.stack import ports, postgresql, processes
from connect_core.stack.processes import Launch, Process
from tests.faults.kit.processes import wait_for
from tests.postgres_tables import Database, Row

_READY_S = 30.0
_SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "wal_level": "logical", "fsync": "off"}
"""What it has committed survives SIGKILL of the server, if not of the machine."""


@dataclass
class PostgresServer:
    folder: Path
    port: int = field(default_factory=ports.free)
    process: Process | None = None

    def made(self) -> None:
        postgresql.own(self.folder)
        postgresql.initialise(self.data)

    def made_from(self, primary: PostgresServer) -> None:
        """Its standby, which takes what comes to it from then on."""
        postgresql.own(self.folder)
        options = ("-D", str(self.data), "-R", "-c", "fast", "--no-sync", "-h", "127.0.0.1", "-U", "postgres")
        program = str(postgresql.binaries() / "pg_basebackup")
        command = (*postgresql.as_account(), program, *options, "-p", str(primary.port))
        subprocess.run(command, env=postgresql.environment(), cwd="/", check=True)

    def start(self) -> None:
        """Returns when it answers."""
        settings = {**postgresql.postgresql_settings(_SETTINGS), "port": str(self.port)}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        program = str(postgresql.binaries() / "postgres")
        command = (*postgresql.as_account(), program, "-D", str(self.data), *options)
        log = self.folder.with_name(f"{self.folder.name}.log")
        self.process = processes.start(Launch(command, postgresql.environment(), log))
        wait_for(self._answers, "PostgreSQL", _READY_S)

    def kill(self) -> None:
        """SIGKILL of all its processes, as a crash."""
        if self.process is not None:
            processes.stop(self.process, sign=processes.signal.SIGKILL)

    def run(self, *statements: str) -> list[Row]:
        """As its administrator; rows of the last one."""
        with closing(self._connected()) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _answers(self) -> bool:
        try:
            self._connected().close()
        except psycopg2.OperationalError:
            return False
        return True

    def _connected(self) -> psycopg2.extensions.connection:
        session = psycopg2.connect(host="127.0.0.1", port=self.port, user="postgres", dbname="postgres")
        session.autocommit = True
        return session


@dataclass
class Pair:
    primary: PostgresServer
    standby: PostgresServer

    def waits_for_the_standby(self) -> None:
        """From now on a COMMIT returns when the standby has it."""
        self.primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        asked = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_for(lambda: bool(self.primary.run(asked)), "the synchronous standby", _READY_S)

    def cut_off(self) -> None:
        """What is committed from now on never comes to the standby."""
        self.standby.run("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        wait_for(lambda: not self.primary.run("SELECT 1 FROM pg_stat_replication"), "the end of the line", _READY_S)

    def promote(self) -> None:
        """Of a standby that waits for no other one."""
        self.standby.run("SELECT pg_promote()")
        self.standby.run("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")

    def database(self, port: int) -> Database:
        """A new one, by this port."""
        return Database(f"postgresql://postgres@127.0.0.1:{port}/postgres")


@contextmanager
def a_pair(folder: Path) -> Iterator[Pair]:
    pair = Pair(PostgresServer(folder / "primary"), PostgresServer(folder / "standby"))
    try:
        pair.primary.made()
        pair.primary.start()
        pair.standby.made_from(pair.primary)
        pair.standby.start()
        yield pair
    finally:
        pair.primary.kill()
        pair.standby.kill()
