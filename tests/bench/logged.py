"""Servers whose log is read: how they are filled, and what a bare reader of their log takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from select import select
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg2
import pymysql
from psycopg2.extras import LogicalReplicationConnection

from connect_core import stack
from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.dumping import log_from
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from tests.bench.place import Place, until
from tests.mariadb import MariaDB

ROWS = 300_000
_TABLE = "(id bigint PRIMARY KEY, a text, b integer, c text)"
_VALUES = "repeat('x', 80), n, repeat('y', 80)"
_FORCES = "SET GLOBAL sync_binlog = {0}, GLOBAL innodb_flush_log_at_trx_commit = {0}"
_READER = 77
"""The bare reader's number among replicas."""
_numbers = count(1)


class Database:
    """A PostgreSQL of its own, with logical decoding."""

    name, system, serial = "PostgreSQL", "postgresql_changes", "bigserial"

    def __init__(self, folder: Path) -> None:
        settings = {"wal_level": "logical", "max_wal_size": "4GB"}
        options = stack.Options(well_known_ports=False, postgresql=settings)
        url = stack.up(folder / ".waybill", parts=(stack.POSTGRESQL,), supervise=False, options=options).database_url
        parts = urlsplit(url)
        host = parts.hostname or parse_qs(parts.query)["host"][0]
        self.options: dict[str, Any] = {"host": host, "port": parts.port or 5432, "user": parts.username or "postgres"}
        self.options["database"] = parts.path.removeprefix("/")

    def run(self, *statements: str) -> None:
        with closing(self.connected()) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def connected(self) -> Any:
        session = psycopg2.connect(**self._access())
        session.autocommit = True
        return session

    def made(self, table: str) -> None:
        self.run(f"CREATE TABLE {table} {_TABLE}")

    def filled(self, table: str, each: int) -> None:
        """`ROWS` rows, `each` in a transaction. The last statement has all of them on disk."""
        if each == 1:
            insert = f"INSERT INTO {table} SELECT n, {_VALUES}; COMMIT"
            self.run("SET synchronous_commit = off", f"DO $$ BEGIN FOR n IN 1..{ROWS} LOOP {insert}; END LOOP; END $$")
        else:
            self.run(f"INSERT INTO {table} SELECT n, {_VALUES} FROM generate_series(1, {ROWS}) n")
        self.run(f"CREATE TABLE {table}_filled ()")

    def bare(self, target: Path, each: int) -> float:
        """Seconds in which what is inserted into a table is read from a slot and appended to a file as it is."""
        name = f"bare_{next(_numbers)}"
        self.made(name)
        self.run(f"CREATE PUBLICATION {name} FOR TABLE {name}")
        self.run(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        self.filled(name, each)
        try:
            return self._read(name, target)
        finally:
            self._drop_slot(name)
            self.run(f"DROP PUBLICATION {name}")

    def _read(self, name: str, target: Path) -> float:
        begun, inserts = time.monotonic(), 0
        session = psycopg2.connect(**self._access(), connection_factory=LogicalReplicationConnection)
        with closing(session), session.cursor() as cursor, target.open("wb") as file:
            options = {"proto_version": "1", "publication_names": name}
            cursor.start_replication(slot_name=name, decode=False, options=options)
            while inserts < ROWS:
                message = cursor.read_message()
                if message is None:
                    select([cursor], [], [], 1)
                elif message.payload[:1] == b"I":
                    inserts += 1
                    file.write(message.payload + b"\n")
        return time.monotonic() - begun

    def _access(self) -> dict[str, Any]:
        options = dict(self.options)
        return {"dbname": options.pop("database"), **options}

    def _drop_slot(self, name: str) -> None:
        """Once the server has noticed that its reader is gone."""
        asked = (
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active"
        )
        with closing(self.connected()) as session, session.cursor() as cursor:
            until(lambda: cursor.execute(asked, (name,)) or cursor.rowcount, f"the end of slot {name}", 30.0)


class MariaDatabase:
    """A database of a MariaDB of its own."""

    name, system, serial = "MariaDB", "mysql_changes", "bigint AUTO_INCREMENT"

    def __init__(self, server: MariaDB) -> None:
        self.options: dict[str, Any] = {**server.options, "database": "logged"}
        with closing(pymysql.connect(**server.options, ssl_disabled=True)) as session, session.cursor() as cursor:
            cursor.execute("CREATE DATABASE logged CHARACTER SET utf8mb4")

    def run(self, *statements: str) -> None:
        with closing(self.connected()) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def connected(self) -> Any:
        return pymysql.connect(**self.options, charset="utf8mb4", autocommit=True, local_infile=True, ssl_disabled=True)

    def made(self, table: str) -> None:
        self.run(f"CREATE TABLE {table} {_TABLE}")

    def filled(self, table: str, each: int) -> None:
        """`ROWS` rows, `each` in a transaction. For that long the server forces no commit to the disk."""
        if each == 1:
            insert = f"INSERT INTO {table} SELECT n, {_VALUES}"
            rows = f"BEGIN NOT ATOMIC FOR n IN 1..{ROWS} DO {insert}; END FOR; END"
            self.run(_FORCES.format(0), rows, _FORCES.format(1))
        else:
            self.run(f"INSERT INTO {table} SELECT seq, {_VALUES.replace('n,', 'seq,')} FROM seq_1_to_{ROWS}")

    def bare(self, target: Path, each: int) -> float:
        """Seconds in which events with what is inserted are read from the log and appended to a file as they are."""
        name = f"bare_{next(_numbers)}"
        self.made(name)
        with closing(self.connected()) as session, session.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")
            file, at, *_ = cursor.fetchone()
        self.filled(name, each)
        with closing(self.connected()) as session, session.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")
            last, end, *_ = cursor.fetchone()
        return self._read(file, at, (last, end), target)

    def _read(self, file: str, at: int, end: tuple[str, int], target: Path) -> float:
        begun, options = time.monotonic(), MysqlChangesOptions(**self.options, tables=["*"])
        with target.open("wb") as written, log_from(options, "here", file, at, _READER) as events:
            for event in events:
                if event.kind == log_events.ROTATE:
                    file = log_events.next_file(event)
                elif event.kind in log_events.ROWS:
                    written.write(event.body + b"\n")
                if (file, event.end) >= end:
                    break
        return time.monotonic() - begun


LoggedDatabase = Database | MariaDatabase


@contextmanager
def postgresql(place: Place) -> Iterator[Database]:
    folder = place.folder / "postgresql"
    folder.mkdir()
    folder.chmod(0o711)
    try:
        yield Database(folder)
    finally:
        stack.down(folder / ".waybill")


@contextmanager
def mariadb(place: Place) -> Iterator[MariaDB]:
    server = MariaDB(place.folder / "mariadb")
    server.start()
    try:
        yield server
    finally:
        server.kill()
