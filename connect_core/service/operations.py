"""Long work for callers of the server: begun, shown, cancelled. Each function asks what the caller may.

A process of its own does each (`operation_runs`), so that it holds up no other call, and ends with the server. How far
it has come is in the ledger, where every server finds it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import BoundedSemaphore, Thread

from connect_core.config import database_url, masked
from connect_core.errors import Retriable, WaybillError
from connect_core.ledger import Ledger, Operation
from connect_core.sdk.values import Json
from connect_core.service import backfills, callers
from connect_core.service.callers import AccessRole
from connect_core.service.first_answers import request_key
from connect_core.service.json_values import fields_of
from connect_core.service.opened import Opened, reading, working
from connect_core.service.operation_kinds import KINDS, continuing
from connect_core.service.pages import ListPage, page, place_of
from connect_core.service.serving_process import is_gone, this_process
from connect_core.service.visible import NotFound, named, without_others

AT_ONCE, MOST_WAITING = 4, 100
_log = logging.getLogger(__name__)
_slots = BoundedSemaphore(AT_ONCE)
_INTERRUPTED = "The server that worked on it has ended"
_DIED = "The process that worked on it has ended without reporting"


def begin(name: str, kind: str, asked: Json) -> Json:
    """Stores it and begins it, behind those that were begun before. Raises NotAllowed, NotFound, and ConfigError for
    words that cannot be followed."""
    callers.require(_needed(kind, asked), name)
    uid = named(name).uid
    KINDS[kind].check(asked)
    if kind == "backfill" and not (asked.get("id") or asked.get("stream")) and (key := request_key()):
        asked = {**asked, "id": f"key-{key}"}  # the same request again, by another process, goes on with it
    with working() as opened:
        if len(opened.ledger.operations(only_open=True)) >= MOST_WAITING:
            raise Retriable(
                f"{MOST_WAITING} operations wait or run already", next_step="Wait for one to end, or cancel one"
            )
        made = opened.ledger.add_operation(uid, kind, asked, who=opened.settings.user, server=this_process(opened.home))
        given = opened.home, made, _environment(opened.home)
        Thread(target=_watched, args=given, name=f"operation {made.id}", daemon=True).start()
    return told_of(made)


def listed(*, limit: int, after: str = "", connector: str = "") -> ListPage[Json]:
    """Of all connectors that the caller may know of, or of one; the newest first."""
    callers.require("viewer")
    place = place_of(after, str)
    with reading() as opened:
        _mark_interrupted(opened)
        known = opened.ledger.connectors(include_deleted=True)
        uids = [one.uid for one in known if callers.sees(one.name) and connector in ("", one.name)]
        found = opened.ledger.operations(uids, limit=limit + 1, behind=place[0] if place else "")
    return page([told_of(one) for one in found], limit, lambda one: [one["id"]])


def shown(number: str) -> Json:
    """Raises NotFound, also for one of a connector that is not there for the caller."""
    callers.require("viewer")
    with reading() as opened:
        _mark_interrupted(opened)
        return told_of(_found(opened, number))


def cancel(number: str) -> Json:
    """Ends it for good: at its next range boundary where it moves records, else at once. One that is over stays as it
    is. Raises NotFound and NotAllowed."""
    with reading() as opened:
        found = _visible(opened, number)
        callers.require("operator", found.connector if found else None)
        found = _found(opened, number)
        callers.require(_needed(found.kind, found.asked), found.connector)
        if opened.ledger.end_operation(number, "cancelled"):
            cancel_streams(opened, found)
        return told_of(_found(opened, number))


def cancel_streams(opened: Opened, operation: Operation) -> None:
    """What it has begun in streams beside the live one."""
    for stream in KINDS[operation.kind].streams(opened, operation):
        backfills.cancel(opened, operation.connector, stream, why=f"operation {operation.id} was cancelled")


def told_of(operation: Operation) -> Json:
    """Without secrets, without the names of connectors of others, and without what is of no use to a caller: where it
    runs, and what the ledger calls its connector."""
    told = {key: value for key, value in fields_of(operation).items() if key not in ("uid", "server")}
    return told | {"asked": masked(operation.asked), "problem": _for_the_caller(operation.problem)}


def _for_the_caller(problem: Json | None) -> Json | None:
    if problem is None:
        return None
    faults = [{**one, "message": without_others(one["message"])} for one in problem.get("errors", ())]
    words = {key: without_others(value) for key, value in problem.items() if isinstance(value, str)}
    return words | ({"errors": faults} if faults else {})


def _needed(kind: str, asked: Json) -> AccessRole:
    """Who gives records up has to be an admin."""
    return "admin" if asked.get("accept_gaps") else KINDS[kind].needs


def _visible(opened: Opened, number: str) -> Operation | None:
    found = opened.ledger.operation(number)
    return found if found is not None and callers.sees(found.connector) else None


def _found(opened: Opened, number: str) -> Operation:
    if (found := _visible(opened, number)) is None:
        raise NotFound(f"There is no operation {number}", next_step="GET /api/v1/operations")
    return found


# --------------------------------------------------------------------------------------------------------- its process


def _watched(home: Path, made: Operation, environment: Mapping[str, str]) -> None:
    """A thread: a process dies with the thread that has started it, so this one stays. What is in the environment may
    change under it, so it is given a copy."""
    try:
        with _slots:
            ended = subprocess.run(
                _command(made.id),
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the server, which ends it
                check=False,
            )
        if ended.returncode:
            _log.warning("Operation %s ended with %s", made.id, ended.returncode)
        with Ledger.open(database_url(home)) as ledger:
            ledger.end_operation(made.id, "interrupted", problem=_why(made, _DIED))
    except (WaybillError, OSError) as error:
        _log.error("Operation %s cannot be watched: %s", made.id, error)


def _command(number: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", "connect_core.jobs.operation", number, "--parent", str(os.getpid()))


def _environment(home: Path) -> Mapping[str, str]:
    return {**os.environ, "WAYBILL_HOME": str(home)}


def _mark_interrupted(opened: Opened) -> None:
    """Those whose server is gone."""
    gone = {one.server: is_gone(opened.home, one.server) for one in opened.ledger.operations(only_open=True)}
    for one in opened.ledger.operations(only_open=True) if any(gone.values()) else ():
        if gone.get(one.server):
            opened.ledger.end_operation(one.id, "interrupted", problem=_why(one, _INTERRUPTED))


def _why(operation: Operation, detail: str) -> Json:
    return {"detail": detail, "where": f"connector {operation.connector}", "next_step": continuing(operation)}
