"""The login of the REST routes in Airflow's web server: whoever Airflow knows, by its own check of its own tokens."""

from __future__ import annotations

import logging
from asyncio import Semaphore

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from connect_core.airflow.users import AirflowUser
from connect_core.api.guarding import comes_from_its_own_page, refused
from connect_core.api.login import AWAY, address_of
from connect_core.errors import Unreachable
from connect_core.service import callers
from connect_core.service.opened import require_an_answer

_log = logging.getLogger(__name__)
_READS = ("GET", "HEAD", "OPTIONS")
_ASKED_AT_ONCE = 4
"""Airflow has a number of threads for all its own routes: a ledger that lets each wait takes no more than these."""
_WHO = "Log in to Airflow, or send a token of Airflow's: Authorization: Bearer TOKEN. It is had from POST /auth/token"
_FOREIGN = (
    "By the cookie of a login only pages of this server change something: programs send a token of Airflow's, "
    "Authorization: Bearer TOKEN"
)


class LoggedInToAirflow:
    """An ASGI application behind that login. What it does, it does for the user of Airflow."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._asking = app, Semaphore(_ASKED_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        shown = await bearer_scheme(request)
        try:
            user = await get_user(request, None, shown)
        except HTTPException:
            await refused(scope, 401, _WHO, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        if shown is None and scope["method"] not in _READS and not comes_from_its_own_page(Headers(scope=scope)):
            await refused(scope, 403, _FOREIGN)(scope, receive, send)
            return
        try:
            async with self._asking:
                await run_in_threadpool(require_an_answer)
        except Unreachable as error:
            _log.error("The REST routes cannot be answered: %s", error)
            await refused(scope, 503, AWAY)(scope, receive, send)
            return
        with callers.calling(AirflowUser(user, get_auth_manager(), address_of(scope))):
            await self._app(scope, receive, send)
