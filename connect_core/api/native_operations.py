"""Long work: begun with a POST that answers at once, then looked at, followed, and cancelled."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import After, Given, LettersGiven, Limit, Name, Text
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.errors import WaybillError
from connect_core.sdk.values import Json
from connect_core.service import native_reports, operations
from connect_core.service.json_values import plain
from connect_core.service.operation_kinds import replay_of

_LOOK_EVERY_S, _BEAT_EVERY_S = 0.5, 10.0
LOCATION = {"Location": "Where the operation is"}
_EVENTS = 'id: 3\nevent: progress\ndata: {"id": "1m8kf4j1q9w38", "state": "running"}\n\n'
Options = Annotated[dict[Text, Text], Field(description="Options of the sink that differ")]


class RunGiven(Given):
    """With `accept_gaps` lost records are recorded as gaps, and the run continues after them."""

    accept_gaps: bool = False


class BackfillGiven(Given):
    """Either times, or ranges (PARTITION:BEGIN-END), or the run that is replayed; or the `id` of one to continue."""

    begin: Annotated[Text, Field(alias="from")] = ""
    to: Text = ""
    ranges: list[Text] = Field(default_factory=list)
    run: Text = ""
    sink: Options = Field(default_factory=dict)
    id: Text = ""
    accept_gaps: bool = False
    why: Text = ""


class VerificationGiven(Given):
    """Of one run, of what was settled within `since` ("2h"), or of all; of these a `share` ("5%")."""

    run: Text = ""
    since: Text = ""
    stream: Text = ""
    share: Text = ""


class ReplayGiven(LettersGiven):
    """Dead letters by their numbers, or by what they have in common; with `again` also what was replayed."""

    again: bool = False
    sink: Options = Field(default_factory=dict)
    why: Text = ""


def add(routes: APIRouter) -> None:
    one = "/connectors/{name}"
    for path, handler, summary in (
        ("/runs", begin_run, "Run a connector now: move what is there"),
        ("/backfills", begin_backfill, "Move a stretch of the source again"),
        ("/verifications", begin_verification, "Compare the target with the receipts"),
        ("/dead-letters/replays", begin_replay, "Send rejected records again"),
    ):
        path = f"{one}{path}"
        added(routes, "POST", path, handler, summary, examples.OPERATION, status=202, headers=LOCATION)
    looked = f"{one}/dead-letters/replays/preview"
    added(routes, "POST", looked, preview_replay, "What such a replay would send; nothing is begun", examples.TO_REPLAY)
    listed = {"operations": [examples.OPERATION], "after": None}
    added(routes, "GET", "/operations", list_operations, "Operations, the newest first", listed)
    of = "/operations/{number}"
    added(routes, "GET", of, show_operation, "How far an operation has come, or how it ended", examples.OPERATION)
    added(routes, "DELETE", of, cancel_operation, "Cancel an operation", examples.OPERATION)
    events = "An operation as it goes on, as server-sent events"
    added(routes, "GET", f"{of}/events", follow_operation, events, _EVENTS, media_type="text/event-stream", also=204)


def begin_run(request: Request, name: Name, given: RunGiven | None = None) -> Any:
    return _begun(request, name, "run", given or RunGiven())


def begin_backfill(request: Request, name: Name, given: BackfillGiven) -> Any:
    return _begun(request, name, "backfill", given)


def begin_verification(request: Request, name: Name, given: VerificationGiven | None = None) -> Any:
    return _begun(request, name, "verification", given or VerificationGiven())


def begin_replay(request: Request, name: Name, given: ReplayGiven | None = None) -> Any:
    return _begun(request, name, "replay", given or ReplayGiven())


def preview_replay(name: Name, given: ReplayGiven | None = None) -> Any:
    asked = (given or ReplayGiven()).model_dump(by_alias=True, exclude_defaults=True)
    return JsonAnswer(native_reports.replay_preview(name, replay_of(asked)))


def list_operations(
    limit: Limit = 100,
    after: After = "",
    connector: Annotated[str, Query(description="Only those of this connector")] = "",
) -> Any:
    return JsonAnswer(operations.listed(limit=limit, after=after, connector=connector).told("operations"))


def show_operation(number: str) -> Any:
    return JsonAnswer(operations.shown(number))


def cancel_operation(number: str) -> Any:
    return JsonAnswer(operations.cancel(number))


def follow_operation(number: str, last_event_id: Annotated[str, Header()] = "") -> Any:
    """A browser that comes back after the last event is told with 204 that there is no more."""
    now, seen = operations.shown(number), int(last_event_id) if last_event_id.isdecimal() else 0
    if _is_over(now) and now["step"] <= seen:
        return Response(status_code=204)
    return StreamingResponse(
        _events(number, seen), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _events(number: str, seen: int) -> AsyncIterator[str]:
    """Each has all that is known; so one who has missed some needs only the last."""
    state, told_at = "", time.monotonic()
    while True:
        try:
            now = await run_in_threadpool(operations.shown, number)
        except WaybillError:
            return  # who follows comes back, and is told why then
        if now["step"] > seen:
            yield _event("state" if now["state"] != state else "progress", now)
            state, seen, told_at = now["state"], now["step"], time.monotonic()
        elif time.monotonic() - told_at >= _BEAT_EVERY_S:
            yield ": nothing new\n\n"
            told_at = time.monotonic()
        if _is_over(now):
            return
        await asyncio.sleep(_LOOK_EVERY_S)


def _event(kind: str, now: Json) -> str:
    return f"id: {now['step']}\nevent: {kind}\ndata: {json.dumps(now, default=plain)}\n\n"


def _is_over(now: Json) -> bool:
    return now["ended_at"] is not None


def _begun(request: Request, name: str, kind: str, given: Given) -> Any:
    """Only what was said is kept of it."""
    return begun_answer(request, operations.begin(name, kind, given.model_dump(by_alias=True, exclude_defaults=True)))


def begun_answer(request: Request, told: Json) -> JsonAnswer:
    """Of an operation that was begun."""
    return JsonAnswer(
        told, status_code=202, headers={"Location": f"{request.scope['root_path']}/operations/{told['id']}"}
    )
