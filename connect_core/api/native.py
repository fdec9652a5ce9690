"""Waybill's own API, as an application below `/api/v1`: documents in, documents out, and problems of RFC 9457."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from connect_core import __version__
from connect_core.api import (
    native_backfills,
    native_connectors,
    native_documents,
    native_letters,
    native_looks,
    native_offsets,
    native_operations,
    native_reports,
)
from connect_core.api.idempotency import Idempotent
from connect_core.api.native_problems import of_error, of_status
from connect_core.api.native_said import SCHEMAS
from connect_core.errors import WaybillError


class _Described(FastAPI):
    """With the schema of a problem, which no route answers when all is well."""

    def openapi(self) -> dict[str, Any]:
        told = super().openapi()
        told["components"]["schemas"] |= SCHEMAS
        return told


def made() -> FastAPI:
    app = _Described(title="Waybill", version=__version__, docs_url=None, redoc_url=None)
    app.router.redirect_slashes = False
    app.add_middleware(Idempotent)
    for tag, add in (
        ("Connectors", native_connectors.add),
        ("Dead letters", native_letters.add),  # before those of one letter by its number
        ("Looks", native_looks.add),
        ("Reports", native_reports.add),
        ("Offsets", native_offsets.add),
        ("Backfills", native_backfills.add),
        ("Operations", native_operations.add),
        ("Documents and server", native_documents.add),
    ):
        routes = APIRouter(tags=[tag])
        add(routes)
        app.include_router(routes)
    app.add_exception_handler(WaybillError, _failed)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)
    app.add_exception_handler(ClientDisconnect, _gone)
    return app


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, WaybillError)
    return of_error(error, _instance(request))


async def _malformed(request: Request, error: Exception) -> Response:
    """By the place in the query, in a header, or in the body."""
    assert isinstance(error, RequestValidationError)
    faults = [{"path": _place(one["loc"]), "message": str(one["msg"])} for one in error.errors()]
    return of_status(400, "The request has not the form of this route", _instance(request), errors=faults)


def _place(location: Sequence[str | int]) -> str:
    where, *inside = location if location[0] in ("query", "path", "header", "body") else ("", *location)
    parts = [f"[{one}]" if isinstance(one, int) and where == "body" else f".{one}" for one in inside]
    return "".join(parts).lstrip(".") or str(where)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return of_status(error.status_code, str(error.detail), _instance(request), error.headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    """Its words may quote what was sent: they are in the log of the server alone. The server ends the connection behind
    it, and says so: the next request on it would have no answer."""
    closing = {"Connection": "close"}
    return of_status(500, "Unexpected error: the log of the server has it", _instance(request), closing)


async def _gone(request: Request, error: Exception) -> Response:
    """Nobody reads it: the caller has hung up in the middle of a body."""
    return Response(status_code=400)


def _instance(request: Request) -> str:
    return request.url.path
