"""The application that `waybill serve` runs, and Airflow's web server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from connect_core import __version__
from connect_core.api import kafka_connect, metrics, native, native_problems, rocketmq_connect
from connect_core.api.guarding import Guarded, refused
from connect_core.api.login import LoggedIn
from connect_core.api.mounted import path_within
from connect_core.service import kept_ledgers, kept_switches
from connect_core.service.callers import NotAllowed
from connect_core.service.kept_ledgers import KeptLedgers
from connect_core.service.kept_switches import KeptSwitches


def made(*, gets_change: bool = False, login: bool = False, let_in: Callable[[ASGIApp], ASGIApp] = LoggedIn) -> FastAPI:
    """`gets_change`: as RocketMQ Connect, which knows no other method. `login`: `let_in` stands before all routes and
    says who calls; without it each request needs a token."""
    kept = KeptLedgers()
    middleware = [
        Middleware(Keeping, ledgers=kept),
        Middleware(Guarded, login=login),
        Middleware(WithoutTrailingSlash),
    ]
    if login:  # before all that answers: whom nobody knows learns nothing of what there is
        middleware.insert(1, Middleware(let_in))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        kept.close()

    app = FastAPI(
        title="Waybill", version=__version__, docs_url=None, redoc_url=None, middleware=middleware, lifespan=lifespan
    )
    app.router.redirect_slashes = False
    app.include_router(metrics.router())
    app.include_router(rocketmq_connect.router(gets_change=gets_change))
    app.mount(kafka_connect.PREFIX, kafka_connect.made())
    app.mount(native_problems.PREFIX, native.made())
    app.add_exception_handler(404, _not_found)
    app.add_exception_handler(408, _not_taken)
    app.add_exception_handler(413, _not_taken)
    app.add_exception_handler(NotAllowed, _not_allowed)
    app.add_exception_handler(ClientDisconnect, _gone)
    return app


class Keeping:
    """An ASGI application whose requests read from ledgers that stay open, and ask Airflow for each other."""

    def __init__(self, app: ASGIApp, ledgers: KeptLedgers) -> None:
        self._app, self._ledgers, self._switches = app, ledgers, KeptSwitches()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with kept_ledgers.keeping(self._ledgers), kept_switches.keeping(self._switches):
            await self._app(scope, receive, send)


class WithoutTrailingSlash:
    """`/connectors/list/` is `/connectors/list`, as on the server of RocketMQ Connect; `/kc` is `/kc/`, below which
    are the routes of Kafka Connect."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"].rstrip("/") or "/"
            within = path_within({**scope, "path": path})
            scope = {**scope, "path": f"{path}/" if within == kafka_connect.PREFIX else path}
        await self._app(scope, receive, send)


async def _not_found(request: Request, error: Exception) -> Response:
    """As the server of RocketMQ Connect says it; or as the others do, for a line break has no mount."""
    within = path_within(request.scope)
    if kafka_connect.is_below(within):
        return await kafka_connect.as_json(request, error)
    if native_problems.is_below(within):
        return native_problems.of_status(404, "Not found", request.url.path)
    return PlainTextResponse("Not found", status_code=404)


async def _not_allowed(request: Request, error: Exception) -> Response:
    return refused(request.scope, 403, str(error))


async def _not_taken(request: Request, error: Exception) -> Response:
    """A body that is too long or too slow."""
    assert isinstance(error, HTTPException)
    return refused(request.scope, error.status_code, error.detail)


async def _gone(request: Request, error: Exception) -> PlainTextResponse:
    """Nobody reads it: the caller has hung up in the middle of a body."""
    return PlainTextResponse("", status_code=400)
