"""Connectors by their documents: listed, shown, stored, deleted, and what each shall do."""

from __future__ import annotations

import logging
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import After, Alone, Document, Given, Limit, Name, Preview, Since, Text, tag
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.sdk.plugin import SnapshotWish
from connect_core.service import native_connectors as native

_log = logging.getLogger(__name__)
_ETAG = {"ETag": "The revision: send it as If-Match with the change that is made from this"}
State = Annotated[
    str, Query(description="running, waiting, failed, blocked, paused, stopped, idle or new; empty for all")
]


Force = Annotated[bool, Query(description="Also where a broker is unreachable: what it keeps stays there")]


class TablesGiven(Given):
    """All tables of the connector where none is named."""

    tables: list[str] = Field(default_factory=list)


class SnapshotGiven(TablesGiven):
    """Of which tables rows are to come; all tables of the connector where none is named. With `where`, of one table,
    those that fulfil this condition in the SQL of the source's server: that needs the role admin."""

    where: Text | None = None


class RulesGiven(Given):
    """All rules of a connector, in their order, as documents have them."""

    rules: list[Document]
    why: str = ""


def add(routes: APIRouter) -> None:
    one = "/connectors/{name}"
    listed = {"connectors": [examples.OUTLINE], "after": None}
    added(routes, "GET", "/connectors", list_connectors, "Connectors, with what each does now", listed)
    added(routes, "GET", one, show_document, "The document of a connector", examples.DOCUMENT, headers=_ETAG)
    added(
        routes,
        "PUT",
        one,
        put_document,
        "Create a connector, or change its document",
        examples.CHANGE,
        also=201,
        headers=_ETAG,
    )
    deleted = {"name": "copy", "uid": "k3v…", "deleted": True, "notes": []}
    added(routes, "DELETE", one, delete_connector, "Delete a connector; what it moved stays", deleted)
    added(routes, "GET", f"{one}/status", show_status, "What a connector does, and what it promises", examples.OUTLINE)
    for verb, handler in (("pause", pause), ("resume", resume), ("stop", stop)):
        changed = {"name": "copy", "uid": "k3v…", "before": "running", "state": "paused"}
        added(routes, "POST", f"{one}/{verb}", handler, f"{verb.capitalize()} a connector", changed)
    asked = {"name": "orders", "tables": ["public.orders"]}
    added(routes, "POST", f"{one}/snapshots", snapshot, "Have rows of tables come among their changes", asked)
    cancel = "Have nothing come of the snapshots that were asked for"
    added(routes, "POST", f"{one}/snapshots/cancel", cancel_snapshot, cancel, asked)
    history = {"revisions": [examples.REVISION], "after": None}
    added(routes, "GET", f"{one}/history", show_history, "Revisions of the document, and who made them", history)
    shown = {"connector": "copy", "rules": [examples.RULE]}
    added(routes, "GET", f"{one}/rules", show_rules, "The rules of a connector", shown, headers=_ETAG)
    stored = {"connector": "copy", "applied": True, "revision": 2, "rules": [examples.RULE]}
    added(routes, "PUT", f"{one}/rules", put_rules, "All rules of a connector", stored, headers=_ETAG)


def list_connectors(
    limit: Limit = 100,
    after: After = "",
    name: Annotated[str, Query(description="A pattern of names, with * ? [abc]")] = "*",
    state: State = "",
) -> Any:
    found = native.listed(_log.info, limit=limit, after=after, name=name, state=state)
    return JsonAnswer(found.told("connectors"))


def show_document(name: Name) -> Any:
    document, revision = native.document(name)
    return JsonAnswer(document, headers=tag(revision))


def put_document(name: Name, document: Document, since: Since, alone: Alone) -> Any:
    told = native.put(name, document, since, _log.info)
    created = told["change"] == "created"
    return JsonAnswer(told, status_code=201 if created else 200, headers=tag(told["revision"]))


def delete_connector(name: Name, since: Since, force: Force = False) -> Any:
    return JsonAnswer(native.delete(name, since, _log.info, force=force))


def show_status(name: Name) -> Any:
    return JsonAnswer(native.status(name, _log.info))


def pause(name: Name) -> Any:
    return JsonAnswer(native.set_state(name, "paused"))


def resume(name: Name) -> Any:
    return JsonAnswer(native.set_state(name, "running"))


def stop(name: Name) -> Any:
    return JsonAnswer(native.set_state(name, "stopped"))


def snapshot(name: Name, given: SnapshotGiven) -> Any:
    return JsonAnswer(native.snapshot(name, SnapshotWish(given.tables, given.where)))


def cancel_snapshot(name: Name, given: TablesGiven) -> Any:
    return JsonAnswer(native.cancel_snapshot(name, given.tables))


def show_history(name: Name, limit: Limit = 100, after: After = "") -> Any:
    return JsonAnswer(native.history(name, limit=limit, after=after).told("revisions"))


def show_rules(name: Name) -> Any:
    rules, revision = native.rules_of(name)
    return JsonAnswer({"connector": name, "rules": rules}, headers=tag(revision))


def put_rules(name: Name, given: RulesGiven, since: Since, alone: Alone, preview: Preview = False) -> Any:
    told = native.put_rules(name, given.rules, since, why=given.why or native.WHY, preview=preview)
    return JsonAnswer(told, headers=tag(told["revision"]))
