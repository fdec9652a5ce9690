"""The local stack of a home, and the engine in it: started, stopped, asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from connect_core import stack
from connect_core.config import create_home, database_url, require_home
from connect_core.config.ledger_url import SQLITE_FILE, had_a_server
from connect_core.errors import ConfigError
from connect_core.sdk.values import Json
from connect_core.service.opened import Say
from connect_core.stack import PartStatus, Stack


def up(only: Sequence[str], say: Say, show: Callable[[Json], None]) -> None:
    """Starts the parts that are named, else all that there is to start, and makes the ledger in them, and a home when
    there is none. `show` gets what runs then, before Airflow's login is said."""
    named = _known_parts(only)
    home = create_home()
    parts = named or _startable(home, say)
    _warn_of_a_ledger_left_behind(home, parts, say)
    had_login = stack.password_file(home).exists()
    running = stack.up(home, parts=parts, report=say)
    if stack.POSTGRESQL in parts:
        from connect_core.ledger import upgrade

        upgrade(database_url(home))
    show(_told(home))
    if stack.API_SERVER in parts:
        _say_login(running, say, with_password=not had_login)


def down(only: Sequence[str], say: Say) -> Json:
    """Stops the parts that are named, else all; their data stay."""
    home = require_home()
    stack.down(home, parts=_known_parts(only) if only else None, report=say)
    return _told(home)


def status() -> Json:
    """Every part is asked."""
    return _told(require_home())


def parts_of(home: Path | None) -> list[Json]:
    """What runs in a home; nothing where no stack was ever started."""
    if home is None or stack.load(home) is None:
        return []
    return [_part(part) for part in stack.status(home)]


def start_engine(say: Say) -> Json:
    """The engine, and nothing else of the stack."""
    home = create_home()
    stack.up(home, parts=(stack.ENGINE,), report=say)
    return _engine(home)


def stop_engine(say: Say) -> Json:
    home = require_home()
    stack.down(home, parts=(stack.ENGINE,), report=say)
    return _engine(home)


def engine() -> Json:
    """Whether it runs, and where. Of its token the file is told, never the token."""
    return _engine(require_home())


def engine_remote(home: Path) -> str | None:
    """The Spark Connect URL of the engine as it runs now, with its token: a secret, never to be logged. None while the
    stack of that home has no engine."""
    running = stack.load(home)
    return running.spark_remote if running and stack.ENGINE in running.parts else None


def _engine(home: Path) -> Json:
    (part,) = stack.status(home, (stack.ENGINE,))
    running = stack.load(home)
    address = running.engine_address if running and part.state != "stopped" else None
    return {
        **_part(part),
        "address": address,
        "token_file": str(running.engine_token_file) if running and address else None,
    }


def _told(home: Path) -> Json:
    return {"home": str(home), "parts": [_part(part) for part in stack.status(home)]}


def _part(part: PartStatus) -> Json:
    return {
        "part": part.name,
        "state": part.state,
        "pid": part.pid,
        "ports": dict(part.ports),
        "version": part.version,
        "restarts": part.restarts,
        "log": str(part.log),
    }


def _known_parts(only: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in only if name not in stack.ALL]
    if unknown:
        raise ConfigError(f"The stack has no part {', '.join(unknown)}", next_step=f"It has {', '.join(stack.ALL)}")
    return tuple(only)


def _startable(home: Path, say: Say) -> tuple[str, ...]:
    parts = stack.startable(home)
    if not set(stack.AIRFLOW_PARTS) <= set(parts):
        say("note: Airflow is not installed and not started (pip install 'waybill[airflow]')")
    return parts


def _say_login(running: Stack, say: Say, with_password: bool) -> None:
    """The password is said when it was made, and never again: afterwards its file is named."""
    password = f" with the password {running.airflow_password}" if with_password else ""
    say(f"Airflow: {running.airflow_url}, log in as {running.airflow_user}{password}")
    say(f"         (the password is kept in {running.airflow_password_file})")


def _warn_of_a_ledger_left_behind(home: Path, parts: tuple[str, ...], say: Say) -> None:
    """A home that began with SQLite gets another ledger with its first PostgreSQL: nobody must be surprised."""
    file = home / SQLITE_FILE
    if stack.POSTGRESQL in parts and file.exists() and not had_a_server(home):
        say(
            f"note: from now on the ledger is in PostgreSQL; connectors and offsets in {file} are not carried over"
            f" (WAYBILL_DATABASE_URL=sqlite:///{file} still shows them)"
        )
