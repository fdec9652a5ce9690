"""db upgrade | check | restored: the ledger's database."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError
from connect_core.service.opened import working

app = typer.Typer(no_args_is_help=True, help="The ledger's database: its tables, and its return from a backup.")


@app.command()
def upgrade(as_json: JsonFlag = False) -> None:
    """Make the ledger's tables, or bring them up to this version. Makes a home when there is none."""
    from connect_core.service import ledgers

    told = ledgers.upgrade()
    output.emit(as_json, told, lambda: output.line(f"{told['ledger']}: up to date"))


@app.command()
def check(as_json: JsonFlag = False) -> None:
    """Whether the ledger's tables and this version go together. Exit code 2 when not."""
    from connect_core.service import ledgers

    told = ledgers.check()
    output.emit(as_json, told, lambda: output.line(f"{told['ledger']}: {'; '.join(told['faults']) or 'up to date'}"))
    if told["faults"]:
        raise typer.Exit(ConfigError.exit_code)


@app.command()
def restored(
    why: Annotated[str, typer.Option("--why", help="Kept with the deed.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Say that the ledger was restored from a backup: every connector looks in its targets before it writes again.

    A driver whose home has seen the ledger before notices by itself; this is for a home that has not, or that was
    restored together with its ledger. Runs that are under way lose their leases and are tried again.
    """
    from connect_core.service import ledgers

    with working() as opened:
        told = ledgers.restored(opened, why)
    output.emit(as_json, told, lambda: _show_restored(told))


def _show_restored(told: dict[str, Any]) -> None:
    names = ", ".join(told["connectors"]) or "none"
    output.line(f"{told['ledger']}: marked as restored; every connector looks in its targets before it writes again")
    output.line(
        f"Connectors in it: {names}. One that is missing was made after the backup: applied anew, it is another"
    )
    output.line("connector, which begins at the start of its source.")
