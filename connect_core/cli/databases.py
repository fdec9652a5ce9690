"""db upgrade | check | restored: the ledger's database."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import output
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError
from connect_core.service.opened import working

app = typer.Typer(no_args_is_help=True, help="Create, upgrade and check the ledger's tables; mark a restored ledger.")


@app.command()
def upgrade(as_json: JsonFlag = False) -> None:
    """Create the ledger's tables, or upgrade them to this version. Creates a home if there is none."""
    from connect_core.service import ledgers

    told = ledgers.upgrade()
    output.emit(as_json, told, lambda: output.line(f"{told['ledger']}: up to date"))


@app.command()
def check(as_json: JsonFlag = False) -> None:
    """Check that the ledger's tables fit this version. Exit code 2 if not."""
    from connect_core.service import ledgers

    told = ledgers.check()
    output.emit(as_json, told, lambda: output.line(f"{told['ledger']}: {'; '.join(told['faults']) or 'up to date'}"))
    if told["faults"]:
        raise typer.Exit(ConfigError.exit_code)


@app.command()
def restored(
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the history.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Mark the ledger as restored from a backup: every connector checks its targets before it writes again.

    A home that has used this ledger before notices a restore by itself. Use this command for a home that has not, or
    that was restored together with its ledger. Runs at work lose their leases and are tried again.
    """
    from connect_core.service import ledgers

    with working() as opened:
        told = ledgers.restored(opened, why)
    output.emit(as_json, told, lambda: _show_restored(told))


def _show_restored(told: dict[str, Any]) -> None:
    names = ", ".join(told["connectors"]) or "none"
    output.line(f"{told['ledger']}: marked as restored; every connector checks its targets before it writes again")
    output.line(
        f"Connectors in it: {names}. A missing one was created after the backup: applied again, it is a new connector"
    )
    output.line("and begins at the start of its source.")
