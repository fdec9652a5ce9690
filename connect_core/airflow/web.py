"""What Airflow's web server answers below `/waybill`: the page of receipts, and the REST routes of `waybill serve`."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class OnFirstRequest:
    """An ASGI application that is made when it is called first: each process of Airflow loads the plugin, and only the
    web server is ever called. Made in a thread, for the web server has heartbeats of tasks to answer meanwhile."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._made is None:
            self._made = await asyncio.to_thread(self._once)
        await self._made(scope, receive, send)

    def _once(self) -> ASGIApp:
        with self._lock:
            if self._made is None:
                self._made = made()
            return self._made


def made() -> ASGIApp:
    from fastapi import FastAPI

    from connect_core.airflow.login import LoggedInToAirflow
    from connect_core.airflow.receipts_page import routes
    from connect_core.api.app import made as rest

    app = FastAPI(openapi_url=None)
    app.include_router(routes)
    app.mount("", rest(login=True, let_in=LoggedInToAirflow))
    return app
