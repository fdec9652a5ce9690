"""Who calls: the token of a request, as Bearer or as the password of Basic. Without one that holds nothing is answered.

Looked up at each request: what is revoked or has expired is refused at once.
"""

from __future__ import annotations

import logging
from base64 import b64decode
from ipaddress import ip_address

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from connect_core.api.guarding import refused
from connect_core.errors import WaybillError
from connect_core.service import access, callers

_log = logging.getLogger(__name__)
_ASKS = {"WWW-Authenticate": 'Bearer, Basic realm="waybill"'}
_WHO = (
    "This server wants a token that holds: Authorization: Bearer TOKEN, or Basic with the token as the password. "
    "It is made on the host of the server: waybill tokens create NAME --role viewer"
)
AWAY = "Nobody can be let in now, for the ledger does not answer: try again"


class LoggedIn:
    """An ASGI application behind a login. What it does, it does for the caller of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        token = token_of(Headers(scope=scope).getlist("authorization"))
        try:
            caller = await run_in_threadpool(access.caller_of, token, address_of(scope)) if token else None
        except WaybillError as error:
            _log.error("A caller was not let in: %s", error)
            await refused(scope, 503, AWAY)(scope, receive, send)
            return
        if caller is None:
            await refused(scope, 401, _WHO, _ASKS)(scope, receive, send)
            return
        with callers.calling(caller):
            await self._app(scope, receive, send)


def token_of(headers: list[str]) -> str:
    """Of the Authorization headers of a request. Empty where there is none that can be read, or two."""
    if len(headers) != 1:
        return ""
    scheme, _, said = headers[0].partition(" ")
    if scheme.lower() == "bearer":
        return said.strip()
    return _password(said.strip()) if scheme.lower() == "basic" else ""


def _password(said: str) -> str:
    """The user name before it may be anything: clients of Kafka Connect must have one."""
    try:
        return b64decode(said, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def address_of(scope: Scope) -> str:
    """Of the caller. Behind a proxy it is what the proxy says, which goes into the audit: only an address does, without
    the zone of one in IPv6, which may be any text."""
    said = str((scope.get("client") or ("",))[0])
    try:
        return str(ip_address(said.partition("%")[0]))
    except ValueError:
        return "an unknown address"
