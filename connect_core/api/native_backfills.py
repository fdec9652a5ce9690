"""Backfills and replays that there are: listed, shown, cancelled, gone on with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import After, Given, Limit, Name, Text
from connect_core.api.native_operations import LOCATION, begun_answer
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.service import native_backfills as native

Number = Annotated[str, Path(description="Its stream, as the list has it, or the id that it was begun with")]


class CancelGiven(Given):
    """`why` is kept with it."""

    why: Text = ""


class ResumeGiven(Given):
    """With `accept_gaps` lost records are recorded as gaps, and it continues after them."""

    accept_gaps: bool = False


def add(routes: APIRouter) -> None:
    every = "/connectors/{name}/backfills"
    one = f"{every}/{{number}}"
    listed = {"backfills": [examples.BACKFILL], "after": None}
    added(routes, "GET", every, list_backfills, "Backfills and replays, the newest first", listed)
    added(routes, "GET", one, show_backfill, "What a backfill moves, and how far it has come", examples.BACKFILL)
    cancelled = examples.BACKFILL | {"state": "cancelled", "changed": True}
    added(routes, "POST", f"{one}/cancel", cancel_backfill, "Cancel a backfill for good", cancelled)
    resumed = "Go on with a backfill that failed or was killed"
    added(routes, "POST", f"{one}/resume", resume_backfill, resumed, examples.OPERATION, status=202, headers=LOCATION)


def list_backfills(name: Name, limit: Limit = 100, after: After = "") -> Any:
    return JsonAnswer(native.listed(name, limit=limit, after=after).told("backfills"))


def show_backfill(name: Name, number: Number) -> Any:
    return JsonAnswer(native.shown(name, number))


def cancel_backfill(name: Name, number: Number, given: CancelGiven | None = None) -> Any:
    return JsonAnswer(native.cancel(name, number, why=given.why if given else ""))


def resume_backfill(request: Request, name: Name, number: Number, given: ResumeGiven | None = None) -> Any:
    return begun_answer(request, native.resume(name, number, accept_gaps=bool(given and given.accept_gaps)))
