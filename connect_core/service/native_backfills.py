"""Backfills and replays that there are, for the routes of Waybill's own API: in pages, cancelled, and gone on with.

Each function asks what the caller may, and raises NotFound for a connector that is not there for it.
"""

from __future__ import annotations

from datetime import datetime

from connect_core.config import masked
from connect_core.errors import ConfigError
from connect_core.ledger import Backfill, Connector
from connect_core.sdk.values import Json
from connect_core.service import backfills, callers, operations
from connect_core.service.opened import Opened, reading
from connect_core.service.pages import ListPage, page, place_of
from connect_core.service.visible import NotFound, named


def listed(name: str, *, limit: int, after: str = "") -> ListPage[Json]:
    """The newest first."""
    callers.require("viewer")
    place, found = place_of(after, datetime, str), named(name)
    with reading() as opened:
        left = [one for one in opened.ledger.backfills(found.uid) if place is None or _is_behind(one, place)]
        told = [_shown(backfills.told_of(opened.ledger, name, one)) for one in left[: limit + 1]]
    return page(told, limit, lambda one: [one["created_at"], one["stream"]])


def shown(name: str, number: str) -> Json:
    """By its stream or its id: what was asked for, its parts, and how far each has come. Raises NotFound."""
    callers.require("viewer")
    found = named(name)
    with reading() as opened:
        return _shown(backfills.told_of(opened.ledger, name, _stored(opened, found, number)))


def cancel(name: str, number: str, *, why: str) -> Json:
    """Ends it for good, at its next range boundary if it runs; `changed` says whether it was not over yet. Raises
    NotFound."""
    callers.require("admin", name)
    found = named(name)
    with reading() as opened:
        stored = _stored(opened, found, number)
        told, changed = backfills.cancel(opened, name, stored.stream, why=why)
    return {**_shown(told), "changed": changed}


def resume(name: str, number: str, *, accept_gaps: bool) -> Json:
    """Begins an operation that goes on with one that failed or was killed. Raises NotFound."""
    callers.require("admin", name)
    found = named(name)
    with reading() as opened:
        stream = _stored(opened, found, number).stream
    return operations.begin(name, "backfill", {"stream": stream} | ({"accept_gaps": True} if accept_gaps else {}))


def _stored(opened: Opened, connector: Connector, number: str) -> Backfill:
    from connect_core.replication.backfill.run import stored_backfill  # brings the driver; a list does without

    try:
        return stored_backfill(opened.ledger, connector, number)
    except ConfigError as error:
        step = f"GET /api/v1/connectors/{connector.name}/backfills"
        raise NotFound(error.what, where=error.where, next_step=step) from None


def _is_behind(one: Backfill, place: tuple[datetime, str]) -> bool:
    assert one.created_at is not None
    return one.created_at < place[0] or (one.created_at == place[0] and one.stream > place[1])


def _shown(told: Json) -> Json:
    """Without secrets."""
    return told | {"asked": masked(told["asked"]), "sink": masked(told["sink"])}
