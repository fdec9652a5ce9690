"""rmqconnect: the commands of RocketMQ Connect's `connectAdmin`, with its names, options and output, for scripts.

They call a server over HTTP, as there: `waybill serve`, or the `rest` part of the stack. The names and what is printed
are those of `rocketmq-connect-cli` of apache/rocketmq-connect, commit 85da68c.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from connect_core.cli.installation import server_named
from connect_core.errors import ConfigError, Unreachable

if TYPE_CHECKING:
    from connect_core.remote.client import ServerClient

_CONNECTORS = ("%-25s", "%-15s", "%-17s", "%-25s")
_TASKS = ("%-22s", "%-22s", "%-12s", "%-15s", "%-20s", "%-30s")


class _AnyCase(TyperGroup):
    """There the names of commands are matched whatever their case."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = {name.lower(): name for name in self.list_commands(ctx)}
        return super().get_command(ctx, known.get(cmd_name.lower(), cmd_name))


app = typer.Typer(no_args_is_help=True, cls=_AnyCase, help="The commands of RocketMQ Connect's connectAdmin.")

ConnectorName = Annotated[str, typer.Option("--connectorName", "-c", help="Name of the connector.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--configFile", "-s", help="Properties with httpAddr and httpPort of the server.")
]


@app.callback()
def server(ctx: typer.Context, config_file: ConfigFile = None) -> None:
    """The commands of RocketMQ Connect's connectAdmin. They call a server: `waybill serve`, by -s FILE or by the
    options --server, --token-file and --ca before `rmqconnect`."""
    from connect_core.remote.client import ServerClient
    from connect_core.remote.server import server_of
    from connect_core.service.peer_servers import PeerServer, server_in

    named = server_named()
    if named.url and config_file:
        raise ConfigError("Two servers are named", next_step="Leave -s FILE out, or --server and WAYBILL_SERVER")
    known = server_in(config_file) if config_file else PeerServer()
    ctx.obj = ServerClient(
        server_of(named.url or f"http://{known.address}:{known.port}", named.token_file, named.ca_file)
    )


@app.command("createConnector")
def create_connector(
    ctx: typer.Context,
    name: ConnectorName,
    path: Annotated[Path, typer.Option("--path", "-p", help="File with the configuration, JSON.")],
) -> None:
    """Create and start a connector by its configuration."""
    from connect_core.service.peer_servers import text_of

    typer.echo(_answer(ctx, f"{_of(name)}?config={_quoted(text_of(path))}"))


@app.command("stopConnector")
def stop_connector(ctx: typer.Context, name: ConnectorName) -> None:
    """Stop a connector. Its document and its offsets stay."""
    typer.echo(_answer(ctx, f"{_of(name)}/stop"))


@app.command("queryConnectorConfig")
def query_connector_config(ctx: typer.Context, name: ConnectorName) -> None:
    """Show the configuration of a connector."""
    typer.echo(_answer(ctx, f"{_of(name)}/config"))


@app.command("queryConnectorStatus")
def query_connector_status(ctx: typer.Context, name: ConnectorName) -> None:
    """Show what a connector and its tasks do. (There this shows the configuration.)"""
    typer.echo(_answer(ctx, f"{_of(name)}/status"))


@app.command("stopAll")
def stop_all(ctx: typer.Context) -> None:
    """Stop all connectors."""
    typer.echo(_answer(ctx, "/connectors/stop/all"))


@app.command("reloadPlugins")
def reload_plugins(ctx: typer.Context) -> None:
    """Read the plug-ins again. Here each run does."""
    typer.echo(_answer(ctx, "/plugin/reload"))


@app.command("getConfigInfo")
def get_config_info(ctx: typer.Context) -> None:
    """Show the configurations of all connectors and tasks."""
    typer.echo(_answer(ctx, "/getConfigInfo"))


@app.command("getClusterInfo")
def get_cluster_info(ctx: typer.Context) -> None:
    """Show the workers."""
    typer.echo(_answer(ctx, "/getClusterInfo"))


@app.command("getAllocatedInfo")
def get_allocated_info(ctx: typer.Context) -> None:
    """Show the workers, connectors and tasks."""
    typer.echo(_answer(ctx, "/getAllocatedInfo"))


@app.command("getAllocatedConnectors")
def get_allocated_connectors(ctx: typer.Context) -> None:
    """List the connectors."""
    _row(_CONNECTORS, "connectorName", "status", "topic", "update-timestamp")
    for name, one in json.loads(_answer(ctx, "/getAllocatedConnectors")).items():
        told = one["properties"]
        _row(_CONNECTORS, name, "RUNNING", told["topic"], told["update-timestamp"])


@app.command("getAllocatedTasks")
def get_allocated_tasks(ctx: typer.Context) -> None:
    """List the tasks."""
    _row(_TASKS, "taskName", "connectorName", "status", "topic", "update-timestamp", "taskId")
    for tasks in json.loads(_answer(ctx, "/getAllocatedTasks")).values():
        for task in tasks:
            told = task["configs"]["properties"]
            kind = told["task-class"].rpartition(".")[2]
            columns = (told["topic"], told["update-timestamp"], told["task-id"])
            _row(_TASKS, kind, task["connectorName"], task["state"], *columns)


def _row(widths: tuple[str, ...], *columns: str) -> None:
    typer.echo(" ".join(width % column for width, column in zip(widths, columns, strict=True)))


def _answer(ctx: typer.Context, path: str) -> str:
    """What the server says, whatever it says, as there; only no answer, and no token, is a failure."""
    client: ServerClient = ctx.obj
    try:
        return client.text("GET", path)
    except Unreachable as error:
        raise Unreachable(
            error.what,
            where=error.where,
            next_step="Start it with `waybill serve --gets-change`, or name another one with -s FILE or --server URL",
        ) from None


def _quoted(text: str) -> str:
    """In an address. A server may take a slash for one of its path, however it is written."""
    from urllib.parse import quote

    return quote(text, safe="")


def _of(name: str) -> str:
    """Where a connector is."""
    if name.strip(".") == "" or "/" in name:
        raise ConfigError(f"{name!r} is no name of a connector", next_step="See `waybill connectors list`")
    return f"/connectors/{_quoted(name)}"
