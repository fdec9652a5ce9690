"""engine start | stop | status: the resident engine that lanes run in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from connect_core.cli import output
from connect_core.cli.output import JsonFlag
from connect_core.cli.stacks import described
from connect_core.errors import Unreachable

app = typer.Typer(no_args_is_help=True, help="The resident engine that lanes run in.")


@app.command()
def start(as_json: JsonFlag = False) -> None:
    """Start the engine of this home, and nothing else of the stack."""
    from connect_core import stack
    from connect_core.config import create_home

    home = create_home()
    stack.up(home, parts=(stack.ENGINE,), report=output.notice)
    _show(home, as_json)


@app.command()
def stop(as_json: JsonFlag = False) -> None:
    """Stop the engine. Lanes that run in it end; the next attempt finishes what they left open."""
    from connect_core import stack
    from connect_core.config import require_home

    home = require_home()
    stack.down(home, parts=(stack.ENGINE,), report=output.notice)
    _show(home, as_json)


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """Whether the engine runs. Exit code 3 when it does not."""
    from connect_core.config import require_home

    if _show(require_home(), as_json)["state"] != "running":
        raise typer.Exit(Unreachable.exit_code)


def _show(home: Path, as_json: bool) -> dict[str, Any]:
    from connect_core import stack

    (part,) = stack.status(home, (stack.ENGINE,))
    running = stack.load(home)
    address = running.engine_address if running and part.state != "stopped" else None
    told = {
        **described(part),
        "address": address,
        "token_file": str(running.engine_token_file) if running and address else None,
    }
    output.emit(as_json, told, lambda: output.fields((name, value) for name, value in told.items() if name != "ports"))
    return told
