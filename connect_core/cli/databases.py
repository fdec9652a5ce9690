"""db upgrade | check: the tables of the ledger."""

from __future__ import annotations

import typer

from connect_core.cli import output
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="The tables of the ledger.")


@app.command()
def upgrade(as_json: JsonFlag = False) -> None:
    """Make the ledger's tables, or bring them up to this version. Makes a home when there is none."""
    from connect_core import ledger
    from connect_core.config import create_home, database_url
    from connect_core.config.ledger_url import shown

    url = database_url(create_home())
    ledger.upgrade(url)
    told = {"ledger": shown(url), "current": True}
    output.emit(as_json, told, lambda: output.line(f"{told['ledger']}: up to date"))


@app.command()
def check(as_json: JsonFlag = False) -> None:
    """Whether the ledger's tables and this version go together. Exit code 2 when not."""
    from connect_core import ledger
    from connect_core.config import database_url, find_home
    from connect_core.config.ledger_url import shown

    url = database_url(find_home())
    faults = ledger.check(url)
    told = {"ledger": shown(url), "current": not faults, "faults": faults}
    output.emit(as_json, told, lambda: output.line(f"{told['ledger']}: {'; '.join(faults) or 'up to date'}"))
    if faults:
        raise typer.Exit(ConfigError.exit_code)
