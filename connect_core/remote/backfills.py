"""Backfills and replays behind a server: begun, listed, shown, cancelled, gone on with."""

from __future__ import annotations

from collections.abc import Iterable

from connect_core.remote.client import ServerClient
from connect_core.remote.operations import done
from connect_core.remote.values import at, pairs, refuse, timed
from connect_core.sdk.values import Json
from connect_core.service.backfill_runs import Request
from connect_core.service.runs import How

_TIMES = ("created_at", "ended_at")


def begun(client: ServerClient, name: str, request: Request, how: How) -> Json:
    refuse(how.engine, "--engine")
    asked = {**request.asked(), "id": request.id, "accept_gaps": request.accept_gaps, "why": request.why}
    asked["sink"] = pairs(request.sink)
    told: Json = timed(done(client, name, "backfills", asked, how.listening), *_TIMES)
    return told


def resumed(client: ServerClient, name: str, stream: str, how: How) -> Json:
    refuse(how.engine, "--engine")
    path = at(name, "backfills", stream).removeprefix(f"{at(name)}/")
    asked = {"accept_gaps": how.accept_gaps}
    told: Json = timed(done(client, name, f"{path}/resume", asked, how.listening), *_TIMES)
    return told


def in_order(found: Iterable[Json]) -> list[Json]:
    """Those of several connectors, the newest first."""
    told = sorted(timed([*found], *_TIMES), key=lambda one: one["stream"])
    return sorted(told, key=lambda one: one["created_at"], reverse=True)


def shown(client: ServerClient, name: str, stream: str) -> Json:
    told: Json = timed(client.get(at(name, "backfills", stream)), *_TIMES)
    return told


def cancelled(client: ServerClient, name: str, stream: str, why: str) -> tuple[Json, bool]:
    """And whether that changed anything."""
    told: Json = timed(client.post(f"{at(name, 'backfills', stream)}/cancel", {"why": why}), *_TIMES)
    return {key: value for key, value in told.items() if key != "changed"}, told["changed"]
