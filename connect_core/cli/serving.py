"""serve: the HTTP interface, until Ctrl-C."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from connect_core import log_lines
from connect_core.cli import output
from connect_core.errors import ConfigError, Unreachable

PORT = 8082
"""That of RocketMQ Connect."""
_LAST_ANSWERS_S = 5
"""Who follows an operation is cut off then: it ends with the server."""
_File = Path | None


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    host: Annotated[
        str, typer.Option("--host", help="Which address; beyond the loopback interface with --login alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Which port; 0 takes a free one.")] = PORT,
    gets_change: Annotated[
        bool,
        typer.Option("--gets-change", help="Let a GET create, pause, resume and stop, as in RocketMQ Connect."),
    ] = False,
    login: Annotated[
        bool, typer.Option("--login", help="Answer only who shows a token: waybill tokens create.")
    ] = False,
    certificate: Annotated[
        _File, typer.Option("--tls-certificate", metavar="FILE", help="Answer by TLS: the certificates, as PEM.")
    ] = None,
    key: Annotated[_File, typer.Option("--tls-key", metavar="FILE", help="The key of the certificate, as PEM.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Say that a proxy in front of this server does TLS.")
    ] = False,
) -> None:
    """Answer REST calls until Ctrl-C: Waybill's own below /api/v1, those of RocketMQ Connect, below /kc those of Kafka
    Connect, and /metrics for Prometheus. Records are moved by Airflow, `waybill run`, and operations below /api/v1."""
    _check_reach(host, login=login, private=bool(certificate or key) or behind_proxy)
    _check_tls(certificate, key)
    try:
        import uvicorn

        from connect_core.api.app import made
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed", next_step="pip install 'waybill[api]'") from None
    if login:
        _tell_of_tokens()
    application = made(gets_change=gets_change, login=login)
    with _listening(host, port) as listener:
        url = _url(listener, "https" if certificate else "http")
        output.notice(
            f"RocketMQ Connect's REST calls are answered at {url} until Ctrl-C; Kafka Connect's at {url}/kc, and"
            f" Waybill's own at {url}/api/v1"
        )
        # Addresses that a header names are those of callers only where a proxy wrote it: they go into the audit.
        config = uvicorn.Config(
            application,
            log_level="warning",
            log_config=log_lines.of_a_server() if log_lines.is_json() else uvicorn.config.LOGGING_CONFIG,
            proxy_headers=behind_proxy,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
        )
        uvicorn.Server(config).run([listener])


def _check_reach(host: str, *, login: bool, private: bool) -> None:
    """Beyond this machine only with a login, and not in plain text: a token that is read on its way is somebody's."""
    if private and not login:
        raise ConfigError("--tls-certificate and --behind-proxy are for a server with a login", next_step="Add --login")
    if host == "localhost" or _is_loopback(host):
        return
    missing = [] if login else ["--login"]
    if not private:
        missing.append("either --tls-certificate FILE --tls-key FILE or, where a proxy does TLS, --behind-proxy")
    if missing:
        raise ConfigError(
            f"{host} is no address of the loopback interface",
            next_step=f"Leave --host out, or add {' and '.join(missing)}",
        )


def _check_tls(certificate: _File, key: _File) -> None:
    """Raises ConfigError where the two files do not go together: before the port is open."""
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise ConfigError("A certificate and its key go together", next_step="Give --tls-certificate and --tls-key")
    import ssl

    def no_password() -> str:
        raise ValueError("the key is encrypted")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, no_password)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise ConfigError(
            f"The certificate and its key cannot be used: {error.strerror if isinstance(error, OSError) else error}",
            where=f"{certificate}, {key}",
            next_step="Name two PEM files that go together, the key without a password",
        ) from None


def _tell_of_tokens() -> None:
    """Raises ConfigError or Unreachable where there is no ledger that has them."""
    from connect_core.service import access
    from connect_core.service.opened import reading

    with reading() as opened:
        if not access.listed(opened):
            output.notice("There is no token yet, so nobody is answered: waybill tokens create NAME --role viewer")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise Unreachable(
            f"Port {port} of {host} cannot be listened on: {error.strerror}",
            next_step="Stop what listens there, or name another port with --port",
        ) from None
    # Its connections inherit this. asyncio sets it on sockets of its own making only, and an answer's head and body are
    # two writes: the second would wait 40 ms for a client that delays its acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _url(listener: socket.socket, scheme: str) -> str:
    host, port, *_ = listener.getsockname()
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
