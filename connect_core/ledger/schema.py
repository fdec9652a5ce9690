"""The version of the ledger's tables: brings them up to date, and says what is behind or ahead.

`upgrade` is called by `waybill db upgrade` and `waybill dev up`, never by a run. Code works with the tables of its own
version and no other.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL

from connect_core.errors import ConfigError
from connect_core.ledger.database import engine_for, parse_url, read, shown, sqlite_path, write

VERSION = "0015"
"""The schema version that this code works with, and that `upgrade` makes."""

_VERSION = sa.table("alembic_version", sa.column("version_num", sa.String))
_UPGRADE_LOCK = 0x57415942  # "WAYB": one upgrade of a PostgreSQL database at a time


def upgrade(url: str) -> None:
    """Makes or migrates the tables, in one transaction; does nothing when they are current. Safe to call at once from
    several processes. Makes the SQLite file when it is missing, never a PostgreSQL database."""
    parsed = parse_url(url)
    engine = engine_for(parsed)
    try:
        with _file_ready(parsed), write(engine) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
            if _version(connection) not in (None, *_known_versions()):
                raise _mismatch(_version(connection), parsed)
            _migrate(connection)
    finally:
        engine.dispose()


def is_made(url: str) -> bool:
    """Whether there is a ledger of any version; not before its tables are whole."""
    parsed = parse_url(url)
    path = sqlite_path(parsed)
    if path is not None and not path.exists():
        return False
    engine = engine_for(parsed)
    try:
        with read(engine) as connection:
            return _version(connection) is not None
    finally:
        engine.dispose()


def check(url: str) -> list[str]:
    """What is wrong with the version of the tables, a sentence each; empty when this code and they go together."""
    parsed = parse_url(url)
    path = sqlite_path(parsed)
    if path is not None and not path.exists():
        return [f"there is no ledger at {path}: run `waybill db upgrade`"]
    engine = engine_for(parsed)
    try:
        with read(engine) as connection:
            version = _version(connection)
    finally:
        engine.dispose()
    return [] if version == VERSION else [_sentence(version)]


def require_current(engine: Engine) -> None:
    """Raises ConfigError when this code cannot work with the version of the tables."""
    require_file(engine.url)
    with read(engine) as connection:
        version = _version(connection)
    if version != VERSION:
        raise _mismatch(version, engine.url)


def require_file(url: URL) -> None:
    """Raises ConfigError when the ledger is SQLite and there is no file: opening one would make it."""
    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise ConfigError("There is no ledger here", where=str(path), next_step="Run `waybill db upgrade`")


def file_identity(url: str) -> object:
    """What tells a SQLite file from another one at its place; nothing does so for a database with a server, nor where
    there is no file."""
    path = sqlite_path(parse_url(url))
    if path is None:
        return ()
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _sentence(version: str | None) -> str:
    if version is None:
        return "The database holds no ledger yet: run `waybill db upgrade`"
    if version > VERSION:
        return f"The ledger's schema is {version}, ahead of this code ({VERSION}): use a newer waybill"
    return f"The ledger's schema is {version}, behind this code ({VERSION}): run `waybill db upgrade`"


def _mismatch(version: str | None, url: URL) -> ConfigError:
    what, _, advice = _sentence(version).partition(": ")
    return ConfigError(what, where=shown(url), next_step=advice[0].upper() + advice[1:])


def _version(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(_VERSION.name):
        return None
    found: str | None = connection.scalar(sa.select(_VERSION.c.version_num))
    return found


def _migrations() -> Path:
    return Path(__file__).parent / "migrations"


def _known_versions() -> list[str]:
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory(str(_migrations())).walk_revisions()]


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_migrations()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, VERSION)


@contextmanager
def _file_ready(url: URL) -> Iterator[None]:
    """For SQLite: the file exists, only its owner may read it, it has a write-ahead log, and nobody else upgrades it.

    The lock is on the folder, because closing any descriptor of the file itself would drop SQLite's own locks.
    """
    path = sqlite_path(url)
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        _make_file(path)
        yield
    finally:
        os.close(folder)


def _make_file(path: Path) -> None:
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()
