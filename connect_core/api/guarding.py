"""What is refused before any route sees it: another name than that of this machine, pages of other sites, large bodies.

Without a login the server listens on the loopback interface alone. A browser on the same machine reaches it all the
same, on behalf of any page: such requests say where they come from. A page whose own name was made to lead to this
machine would be of the same site; so the name that is called has to be one of this machine.

With a login it may be any name: a browser adds no token by itself, but for Basic where a person has typed one, and then
only to the name for which it was typed. That is why pages of other sites stay refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connect_core.api import kafka_connect, native_problems
from connect_core.api.mounted import path_within

MAX_BYTES = 1 << 20
"""Of a body: a configuration has a few kilobytes."""
_TOO_LONG = f"A body has at most {MAX_BYTES:,} bytes"
BODY_S = 30.0
"""Within which a body has to be whole."""
_NAMES = ("localhost", "127.0.0.1", "[::1]")
_OWN = ("", "none", "same-origin")


class Guarded:
    """An ASGI application behind these rules. A slash that is written as %2F would be one of the path behind them: the
    name `a/stop` would stop `a`. `login`: callers have shown a token before."""

    def __init__(self, app: ASGIApp, *, login: bool = False) -> None:
        self._app, self._login = app, login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if why := ("" if self._login else _of_another_name(headers)) or _of_another_site(headers):
            await refused(scope, 403, why)(scope, receive, send)
        elif _has_nul(scope):
            await refused(scope, 400, "No name and no word has the character NUL")(scope, receive, send)
        elif b"%2f" in scope.get("raw_path", b"").lower():
            await refused(scope, 404, "A name has no slash")(scope, receive, send)
        elif (given := headers.get("content-length", "0")).isdecimal() and int(given) > MAX_BYTES:
            await refused(scope, 413, _TOO_LONG)(scope, receive, send)
        else:
            await self._app(scope, _Limited(receive), send)


class _Limited:
    """What is received, up to the limits: a body may be longer than it was said to be, or not say how long it is, or
    come a byte at a time."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._left = receive, MAX_BYTES
        self._ends: float | None = asyncio.get_running_loop().time() + BODY_S

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout_at(self._ends):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"The body was not whole within {BODY_S:g} s") from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise HTTPException(413, _TOO_LONG)
        if not message.get("more_body", False):
            self._ends = None  # what comes behind it is that the caller leaves
        return message


def _has_nul(scope: Scope) -> bool:
    """No database takes it in a text, and PostgreSQL not in a question either."""
    return "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]


def _of_another_name(headers: Headers) -> str:
    """Why nobody answers; empty where nothing is wrong."""
    host = headers.get("host", "")
    if host.removesuffix(f":{host.rpartition(':')[2]}").lower() not in _NAMES and host.lower() not in _NAMES:
        return "This server answers on the loopback interface alone: call it localhost or 127.0.0.1"
    return ""


def _of_another_site(headers: Headers) -> str:
    """Likewise."""
    host, origin = headers.get("host", ""), headers.get("origin", "")
    if headers.get("sec-fetch-site", "") not in _OWN or (origin and origin.partition("://")[2] != host):
        return "Pages of other sites are not answered"
    return ""


def comes_from_its_own_page(headers: Headers) -> bool:
    """Whether a browser says so. One that says nothing of it may be anywhere: each says the origin of a change."""
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    origin = headers.get("origin", "")
    return bool(origin) and origin.partition("://")[2] == headers.get("host", "")


def refused(scope: Scope, code: int, why: str, headers: Mapping[str, str] | None = None) -> Response:
    """In the words of the routes that were called: those of Kafka Connect say `error_code`, ours tell a problem."""
    if native_problems.is_below(path_within(scope)):
        return native_problems.of_status(code, why, scope["path"], headers)
    key = "error_code" if kafka_connect.is_below(path_within(scope)) else "errorCode"
    return JSONResponse({key: code, "message": why}, status_code=code, headers=headers)
