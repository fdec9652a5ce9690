"""What the OpenAPI document says of the routes of Waybill's own API, and how each of them is added."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, StreamingResponse

from connect_core.api.native_problems import MEDIA_TYPE
from connect_core.service.json_values import plain

Said = dict[str, Any]


class JsonAnswer(JSONResponse):
    """With times, bytes and dataclasses in their form in JSON."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, default=plain, ensure_ascii=False, allow_nan=False).encode()


_TEXT: Said = {"type": "string"}
SCHEMAS: Said = {
    "Problem": {
        "type": "object",
        "description": "Why it is not done (RFC 9457)",
        "required": ["type", "title", "status", "detail", "instance"],
        "properties": {
            **dict.fromkeys(("type", "title", "detail", "instance", "where", "next_step", "kind"), _TEXT),
            "status": {"type": "integer"},
            "errors": {
                "type": "array",
                "description": "Everything that is wrong, and where",
                "items": {
                    "type": "object",
                    "required": ["path", "message"],
                    "properties": {"path": _TEXT, "message": _TEXT},
                },
            },
        },
    }
}
_EXAMPLE = {
    "type": "urn:waybill:problem:not-found",
    "title": "It is not there",
    "status": 404,
    "detail": "Connector copy not found",
    "instance": "/api/v1/connectors/copy",
}
_WHY = {
    400: "The request has not the form of this route",
    401: "No token that holds, where the server wants one",
    403: "A caller who may not; another name than this machine's; a page of another site",
    404: "It is not there, or not for the caller",
    405: "The route has another method",
    409: "It does not go with what there is, or what is at work",
    412: "It was changed since the revision that If-Match names",
    408: "The body did not come in time",
    413: "The body is too long",
    422: "What was sent does not hold: all faults are in `errors`",
    428: "It is there, and the request does not say from which revision the change was made",
    500: "Something went wrong in the server: its log has more",
    503: "The ledger, or another server, does not answer",
}
_OF_CHANGES = (412, 428)
"""Of requests that are made from a revision."""


_EMPTY = 204
_KEY: Said = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "The same request with the same key is answered as it was the first time, for a day",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        }
    ]
}


def _failures(method: str) -> dict[int | str, Said]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": _EXAMPLE}}
    return {
        status: {"description": why, "content": content}
        for status, why in _WHY.items()
        if method != "GET" or status not in _OF_CHANGES
    }


def add(
    routes: APIRouter,
    method: str,
    path: str,
    handler: Callable[..., Any],
    summary: str,
    example: Any,
    *,
    status: int = 200,
    also: int | None = None,
    headers: Mapping[str, str] | None = None,
    media_type: str = "application/json",
) -> None:
    """`example` is what it answers when all is well, `headers` what each of these says, `also` another
    status with which it does."""
    said: Said = {"description": summary, "content": {media_type: {"schema": _schema(example), "example": example}}}
    if headers:
        said["headers"] = {name: {"description": why, "schema": {"type": "string"}} for name, why in headers.items()}
    others: dict[int | str, Said] = {also: {"description": summary} if also == _EMPTY else said} if also else {}
    routes.add_api_route(
        path,
        handler,
        methods=[method],
        summary=summary,
        operation_id=handler.__name__,
        status_code=status,
        response_class=JsonAnswer if media_type == JsonAnswer.media_type else StreamingResponse,
        response_model=None,
        responses={**_failures(method), status: said, **others},
        openapi_extra=_KEY if method == "POST" else None,
    )


def _schema(example: Any) -> Said:
    if isinstance(example, dict):
        return {"type": "object", "required": sorted(example)} if example else {"type": "object"}
    return {"type": "string"} if isinstance(example, str) else {}
