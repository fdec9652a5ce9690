"""Failures as Waybill's own API tells them: `application/problem+json` of RFC 9457. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from connect_core.errors import (
    ConfigError,
    DataError,
    Failure,
    LeaseHeld,
    Refused,
    Retriable,
    Unreachable,
    WaybillError,
)
from connect_core.service.callers import NotAllowed
from connect_core.service.first_answers import KeyInUse, KeyReused
from connect_core.service.flat_connectors import hidden_text
from connect_core.service.native_connectors import RevisionNeeded, Stale
from connect_core.service.offsets import OffsetMoved
from connect_core.service.standing_still import StillRuns
from connect_core.service.visible import NotFound

PREFIX = "/api/v1"
MEDIA_TYPE = "application/problem+json"


class ProblemKind(NamedTuple):
    """`name` ends the `type` of a problem, and does not change; `title` is for people."""

    status: int
    name: str
    title: str


_STALE = ProblemKind(412, "stale", "It was changed since")
_BY_ERROR: tuple[tuple[type[WaybillError], ProblemKind], ...] = (
    (NotAllowed, ProblemKind(403, "not-allowed", "The caller may not do this")),
    (NotFound, ProblemKind(404, "not-found", "It is not there")),
    (Stale, _STALE),
    (OffsetMoved, _STALE),
    (RevisionNeeded, ProblemKind(428, "revision-needed", "The request does not say what it was made from")),
    (KeyReused, ProblemKind(422, "key-reused", "The key was for another request")),
    (KeyInUse, ProblemKind(409, "key-in-use", "The first request is still worked on")),
    (StillRuns, ProblemKind(409, "still-runs", "The connector runs")),
    (ConfigError, ProblemKind(422, "invalid", "What was sent does not hold")),
    (Unreachable, ProblemKind(503, "unreachable", "Something that it needs does not answer")),
    (Retriable, ProblemKind(409, "try-again", "It may work when it is tried again")),
    (LeaseHeld, ProblemKind(409, "busy", "Another run or command works on it")),
    (DataError, ProblemKind(409, "data", "The data is not what it should be")),
    (Refused, ProblemKind(409, "refused", "Another server refuses it")),
)
"""The first that fits."""
_BY_STATUS = {
    400: ProblemKind(400, "malformed", "The request has not the form of this route"),
    401: ProblemKind(401, "no-token", "A token is needed"),
    403: ProblemKind(403, "not-allowed", "The caller may not do this"),
    404: ProblemKind(404, "no-route", "There is no such route"),
    405: ProblemKind(405, "no-method", "The route has no such method"),
    408: ProblemKind(408, "too-slow", "The body did not come in time"),
    413: ProblemKind(413, "too-long", "The body is too long"),
    503: ProblemKind(503, "unreachable", "Something that it needs does not answer"),
}
_UNEXPECTED = ProblemKind(500, "unexpected", "Something went wrong in the server")


def is_below(path: str) -> bool:
    """Whether a request with this path is for these routes."""
    return f"{path}/".startswith(f"{PREFIX}/")


def of_error(error: WaybillError, instance: str) -> Response:
    kind = next((kind for raised, kind in _BY_ERROR if isinstance(error, raised)), _UNEXPECTED)
    faults = error.faults if isinstance(error, ConfigError) else ()
    told = [{"path": one.path, "message": hidden_text(one.message)} for one in faults]
    told_kind = Failure.of(error).family
    return problem(
        kind, error.what, instance, where=error.where, next_step=error.next_step, failure=told_kind, errors=told
    )


def of_status(
    status: int, detail: str, instance: str, headers: Mapping[str, str] | None = None, errors: Sequence[Any] = ()
) -> Response:
    """Of what is refused before any function of ours is called."""
    kind = _BY_STATUS.get(status, _UNEXPECTED._replace(status=status))
    return problem(kind, detail, instance, headers=headers, errors=errors)


def problem(
    kind: ProblemKind,
    detail: str,
    instance: str,
    *,
    where: str = "",
    next_step: str = "",
    failure: str = "",
    errors: Sequence[Any] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    told = body(kind, detail, instance, where=where, next_step=next_step, failure=failure, errors=errors)
    text = json.dumps(told, ensure_ascii=True)
    return Response(text, status_code=kind.status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def body(
    kind: ProblemKind,
    detail: str,
    instance: str,
    *,
    where: str = "",
    next_step: str = "",
    failure: str = "",
    errors: Sequence[Any] = (),
) -> dict[str, Any]:
    """`failure` is its class in the tree of our errors, for which commands have an exit code."""
    told: dict[str, Any] = {
        "type": f"urn:waybill:problem:{kind.name}",
        "title": kind.title,
        "status": kind.status,
        "detail": hidden_text(detail),
        "instance": instance,
    }
    told |= {"where": where} if where else {}
    told |= {"next_step": next_step} if next_step else {}
    told |= {"kind": failure} if failure else {}
    return told | ({"errors": list(errors)} if errors else {})
