"""engine start | stop | status: the resident engine that lanes run in."""

from __future__ import annotations

from typing import Any

import typer

from connect_core.cli import output
from connect_core.cli.output import JsonFlag
from connect_core.errors import Unreachable

app = typer.Typer(no_args_is_help=True, help="Start, stop and check the resident engine, where workers run.")


@app.command()
def start(as_json: JsonFlag = False) -> None:
    """Start the engine of this home, without the rest of the stack."""
    from connect_core.service import local_stack

    _show(local_stack.start_engine(output.notice), as_json)


@app.command()
def stop(as_json: JsonFlag = False) -> None:
    """Stop the engine and the lanes that run in it. The next attempt finishes their open ranges."""
    from connect_core.service import local_stack

    _show(local_stack.stop_engine(output.notice), as_json)


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """Check that the engine runs. Exit code 3 if it does not."""
    from connect_core.service import local_stack

    told = local_stack.engine()
    _show(told, as_json)
    if told["state"] != "running":
        raise typer.Exit(Unreachable.exit_code)


def _show(told: dict[str, Any], as_json: bool) -> None:
    output.emit(as_json, told, lambda: output.fields((name, value) for name, value in told.items() if name != "ports"))
