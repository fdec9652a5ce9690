"""serve: the HTTP interface, until Ctrl-C."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Annotated

import typer

from connect_core.cli import output
from connect_core.errors import ConfigError, Unreachable

PORT = 8082
"""That of RocketMQ Connect."""


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    host: Annotated[str, typer.Option("--host", help="Which address of the loopback interface.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Which port; 0 takes a free one.")] = PORT,
    gets_change: Annotated[
        bool,
        typer.Option("--gets-change", help="Let a GET create, pause, resume and stop, as in RocketMQ Connect."),
    ] = False,
) -> None:
    """Answer the REST calls of RocketMQ Connect, below /kc those of Kafka Connect, and /metrics for Prometheus, until
    Ctrl-C. Records are moved by Airflow or `waybill run`."""
    if host != "localhost" and not _is_loopback(host):
        raise ConfigError(
            f"{host} is no address of the loopback interface, and there is no login yet",
            next_step="Leave --host out, and put a proxy with a login and TLS in front of it",
        )
    try:
        import uvicorn

        from connect_core.api.app import made
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed", next_step="pip install 'waybill[api]'") from None
    with _listening(host, port) as listener:
        url = _url(listener)
        output.notice(f"RocketMQ Connect's REST calls are answered at {url} until Ctrl-C; Kafka Connect's at {url}/kc")
        server = uvicorn.Server(uvicorn.Config(made(gets_change=gets_change), log_level="warning"))
        server.run([listener])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise Unreachable(
            f"Port {port} of {host} cannot be listened on: {error.strerror}",
            next_step="Stop what listens there, or name another port with --port",
        ) from None


def _url(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
