"""The commands put together. Each group is a module; heavy imports stay inside the commands, so that help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from connect_core import __version__
from connect_core.cli import (
    backfills,
    connectors,
    databases,
    dead_letters,
    documents,
    engines,
    fields,
    groups,
    health,
    history,
    importing,
    logs,
    offsets,
    peeking,
    plugins,
    rmqconnect,
    rules,
    runs,
    serving,
    snapshots,
    stacks,
    tokens,
    tracing,
    trying,
    verifying,
)
from connect_core.cli.errors import Commands
from connect_core.cli.installation import SERVER_VARIABLE, NamedServer, name_server, url_of
from connect_core.log_lines import check_format

app = typer.Typer(
    name="waybill",
    cls=Commands,
    help="Waybill: replication with receipts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"waybill {__version__}")
        raise typer.Exit


@app.callback()
def root(
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", envvar=SERVER_VARIABLE, help="Work on a `waybill serve` elsewhere."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", envvar="WAYBILL_TOKEN_FILE", help="What that server lets in."),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            "--ca", metavar="FILE", envvar="WAYBILL_CA_FILE", help="Authority of its certificate, where it is your own."
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Waybill: replication with receipts."""
    check_format()
    name_server(NamedServer(url_of(server), token_file, ca_file))


for register in (
    health.register,
    documents.register,
    plugins.register,
    runs.register,
    serving.register,
    backfills.register,
    peeking.register,
    snapshots.register,
    fields.register,
    trying.register,
    history.register,
    logs.register,
    verifying.register,
    tracing.register,
):
    register(app)
app.add_typer(stacks.app, name="dev")
app.add_typer(connectors.app, name="connectors")
app.add_typer(backfills.app, name="backfills")
app.add_typer(offsets.app, name="offsets")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(engines.app, name="engine")
app.add_typer(databases.app, name="db")
app.add_typer(tokens.app, name="tokens")
app.add_typer(groups.app, name="groups")
app.add_typer(rules.app, name="rules")
app.add_typer(rmqconnect.app, name="rmqconnect")
app.add_typer(importing.app, name="import")
