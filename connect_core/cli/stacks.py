"""dev up | down | status: the local stack of this home. Loopback only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.errors import ConfigError, Unreachable

if TYPE_CHECKING:
    from connect_core.stack import PartStatus, Stack

app = typer.Typer(no_args_is_help=True, help="The local stack: RocketMQ, PostgreSQL, engine, Airflow, MQTT broker.")

Parts = Annotated[list[str], typer.Option("--only", help="Only this part; may be given several times.", metavar="PART")]


@app.command()
def up(only: Parts = [], as_json: JsonFlag = False) -> None:  # noqa: B006  typer copies it
    """Start what is not running yet, and make the ledger in it. Makes a home when there is none.

    Every part that ran before is started again. The MQTT broker has to be named once: `--only mqtt-broker`.
    """
    from connect_core import stack
    from connect_core.config import create_home

    named = _parts(only)
    home = create_home()
    parts = named or _startable(home)
    _warn_of_a_ledger_left_behind(home, parts)
    had_login = stack.password_file(home).exists()
    running = stack.up(home, parts=parts, report=output.notice)
    if stack.POSTGRESQL in parts:
        _make_ledger(home)
    _show(home, as_json)
    if stack.API_SERVER in parts:
        _tell_login(running, with_password=not had_login)


@app.command()
def down(only: Parts = [], as_json: JsonFlag = False) -> None:  # noqa: B006
    """Stop the stack; its data stay."""
    from connect_core import stack
    from connect_core.config import require_home

    home = require_home()
    stack.down(home, parts=_parts(only) if only else None, report=output.notice)
    _show(home, as_json)


@app.command()
def status(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """What runs, on which ports: every part is asked. Exit code 3 when one that was started is dead or of no use."""
    from connect_core.config import require_home

    home = require_home()
    if any(part.state not in ("running", "stopped") for part in _show(home, as_json, wide)):
        raise typer.Exit(Unreachable.exit_code)


def described(part: PartStatus) -> dict[str, Any]:
    return {
        "part": part.name,
        "state": part.state,
        "pid": part.pid,
        "ports": dict(part.ports),
        "version": part.version,
        "restarts": part.restarts,
        "log": str(part.log),
    }


def _show(home: Path, as_json: bool, wide: bool = False) -> list[PartStatus]:
    from connect_core import stack

    parts = stack.status(home)
    told = [described(part) for part in parts]
    rows = [
        [part["part"], part["state"], str(part["pid"] or ""), _ports(part["ports"]), part["version"], part["log"]]
        for part in told
    ]
    columns = (
        Column("PART", cut="never"),
        Column("STATE"),
        Column("PID", 3),
        Column("PORTS", 2),
        Column("VERSION", 4),
        Column("LOG", 3),
    )
    output.emit(as_json, {"home": str(home), "parts": told}, lambda: output.table(columns, rows, wide=wide))
    return parts


def _ports(ports: dict[str, int]) -> str:
    return ", ".join(f"{name} {port}" for name, port in ports.items())


def _parts(only: list[str]) -> tuple[str, ...]:
    from connect_core import stack

    unknown = [name for name in only if name not in stack.ALL]
    if unknown:
        raise ConfigError(f"the stack has no part {', '.join(unknown)}", next_step=f"It has {', '.join(stack.ALL)}")
    return tuple(only)


def _startable(home: Path) -> tuple[str, ...]:
    from connect_core import stack

    parts = stack.startable(home)
    if not set(stack.AIRFLOW_PARTS) <= set(parts):
        output.notice("note: Airflow is not installed and not started (pip install 'waybill[airflow]')")
    return parts


def _tell_login(running: Stack, with_password: bool) -> None:
    """The password is shown when it was made, and never again: afterwards its file is named."""
    password = f" with the password {running.airflow_password}" if with_password else ""
    output.notice(f"Airflow: {running.airflow_url}, log in as {running.airflow_user}{password}")
    output.notice(f"         (the password is kept in {running.airflow_password_file})")


def _make_ledger(home: Path) -> None:
    from connect_core.config import database_url
    from connect_core.ledger import upgrade

    upgrade(database_url(home))


def _warn_of_a_ledger_left_behind(home: Path, parts: tuple[str, ...]) -> None:
    """A home that began with SQLite gets another ledger with its first PostgreSQL: nobody must be surprised."""
    from connect_core import stack
    from connect_core.config.ledger_url import SQLITE_FILE, had_a_server

    file = home / SQLITE_FILE
    if stack.POSTGRESQL in parts and file.exists() and not had_a_server(home):
        output.notice(
            f"note: from now on the ledger is in PostgreSQL; connectors and offsets in {file} are not carried over"
            f" (WAYBILL_DATABASE_URL=sqlite:///{file} still shows them)"
        )
