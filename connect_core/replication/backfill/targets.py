"""Which targets streams beside the live ones have for themselves, and whether another one may have the same.

A file has one writer: the live stream of a connector, also of one that has not run yet, or a backfill until it is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from connect_core import systems
from connect_core.config import Resolved, Settings, StreamBeside, diverted, taken_files
from connect_core.errors import ConfigError
from connect_core.ledger import Backfill, Ledger, WritersChanged, WritersSeen
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.errors import target_taken

Stored = TypeVar("Stored")


def targets_beside(ledger: Ledger) -> list[StreamBeside]:
    """Of the backfills and replays that are not over, and whose connector is there."""
    names = {one.uid: one.name for one in ledger.connectors()}
    return [
        stream_beside(ledger, one, names[one.uid])
        for one in ledger.backfills(only_unfinished=True)
        if one.sink and one.uid in names
    ]


def stream_beside(ledger: Ledger, stored: Backfill, name: str) -> StreamBeside:
    """With the files of as many tasks as it is moved by."""
    data = diverted(ledger.document(stored.uid, stored.revision), stored.sink)
    tasks = ledger.assignment(stored.uid).tasks
    return StreamBeside(name, stored.stream, {**data, "tasks": tasks} if tasks else data)


def require_free(context: RunContext, draft: Backfill, resolved: Resolved, settings: Settings) -> None:
    """Raises ConfigError when a connector that there is, or a backfill that is not over, writes the file that a
    backfill to be begun would have for itself, or has written there and may again."""
    ledger, name, where = context.ledger, context.connector.name, f"the sink of {draft.stream}"
    written = systems.SYSTEMS[resolved.sink.system].files_written(resolved.sink.options)
    if not written or not draft.sink:
        return
    names = {*written.paths, str(resolved.sink.options[written.option])}
    if others := ledger.other_writers(draft.uid, draft.stream, names):
        raise target_taken(others[0], where)
    standing = {one.name: one.document for one in ledger.connectors()}
    wanted = stream_beside(ledger, draft, name)
    # Another task of the same backfill may have stored it meanwhile.
    beside = [one for one in targets_beside(ledger) if (one.connector, one.stream) != (name, draft.stream)]
    if taken := taken_files(wanted, standing, beside, context.home, settings):
        raise ConfigError(taken[0], where=where, next_step="Name another target with --sink")


def stored_beside(ledger: Ledger, store: Callable[[WritersSeen], Stored]) -> Stored:
    """What `store` stores, once it has checked it. It is called again when others have stored something meanwhile."""
    while True:
        try:
            return store(ledger.writers_seen())
        except WritersChanged:
            continue
