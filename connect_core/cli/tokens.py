"""tokens create | list | revoke: who may call `waybill serve --login`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from connect_core.cli import completing, output
from connect_core.cli.columns import Column
from connect_core.cli.output import JsonFlag, WideFlag
from connect_core.cli.runs import duration
from connect_core.service.opened import reading, storing

app = typer.Typer(no_args_is_help=True, help="Tokens for callers of `waybill serve --login`.")

_TokenName = Annotated[str, typer.Argument(help="Name of the token.", metavar="NAME", autocompletion=completing.tokens)]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is called in lists and in the history.", metavar="NAME")],
    role: Annotated[str, typer.Option("--role", help="viewer, operator or admin.")],
    connectors: Annotated[
        list[str] | None,
        typer.Option(
            "--connectors", metavar="PATTERN", help="For names like this alone, as 'team-a-*'. May be repeated."
        ),
    ] = None,
    expires: Annotated[
        float | None,
        typer.Option(
            "--expires", parser=duration, metavar="TIME", help='For so long, as "90d". Else until it is revoked.'
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a token and print it, once: it is kept nowhere. A viewer reads; an operator also pauses, resumes, stops and
    restarts; an admin also creates, changes and deletes, and sets offsets and levels of loggers."""
    from connect_core.service import access

    with storing() as opened:
        told = access.create(opened, name, role, connectors=connectors or access.EVERY, expires_s=expires)
    output.emit(as_json, told, lambda: output.line(told["token"]))
    until = f"until {output.cell(told['expires_at'])}" if told["expires_at"] else "until it is revoked"
    output.notice(f"Keep it: it is shown this once. It holds {until}; waybill tokens revoke {name}")


@app.command("list")
def list_(wide: WideFlag = False, as_json: JsonFlag = False) -> None:
    """List all tokens that were ever made: for what, by whom, until when. The tokens themselves are kept nowhere."""
    from connect_core.service import access

    with reading() as opened:
        told = access.listed(opened)
    output.emit(as_json, {"tokens": told}, lambda: _show(told, wide))


@app.command()
def revoke(name: _TokenName, as_json: JsonFlag = False) -> None:
    """Refuse a token from now on. Its name stays in the history and is not given again."""
    from connect_core.service import access

    with reading() as opened:
        told = access.revoke(opened, name)
    output.emit(as_json, told, lambda: output.line(f"{name} is revoked since {output.cell(told['revoked_at'])}"))


def _show(told: list[dict[str, Any]], wide: bool) -> None:
    columns = (
        Column("NAME"),
        Column("ROLE"),
        Column("CONNECTORS"),
        Column("MADE", 4),
        Column("BY", 5),
        Column("EXPIRES"),
        Column("REVOKED"),
    )
    rows = [
        (
            *(one["name"], one["role"], " ".join(one["connectors"])),
            *(one["made_at"], one["made_by"], one["expires_at"], one["revoked_at"]),
        )
        for one in told
    ]
    output.table(columns, rows, wide=wide)
