"""Connectors for the routes of Waybill's own API: by their documents, each change made from a revision that the caller
has seen. Each function asks what the caller may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from connect_core.config import masked
from connect_core.config.references import MASK
from connect_core.errors import ConfigError, Fault, Retriable
from connect_core.ledger import Connector
from connect_core.sdk.plugin import SnapshotWish
from connect_core.sdk.values import Json
from connect_core.service import callers, connectors, deletions, documents, rules, snapshots
from connect_core.service.connectors import Wish
from connect_core.service.opened import Say, reading, working
from connect_core.service.pages import ListPage, page, place_of
from connect_core.service.visible import may_write, named, visible, visible_one, without_others

WHY = "by the REST API"


class Stale(ConfigError):
    """The change was made from a revision that is not the newest any more."""


class RevisionNeeded(ConfigError):
    """The change does not say which revision it was made from, and there is one."""


@dataclass(frozen=True)
class MadeFrom:
    """What a caller says of the connector that it changes: it is `new`, or one of these `revisions`, or of any."""

    new: bool = False
    revisions: tuple[int, ...] = ()
    any: bool = False

    def of(self, found: Connector | None, name: str) -> int:
        """The revision that is there, 0 for none. Raises Stale and RevisionNeeded."""
        there = found.revision if found else 0
        if self.new and there:
            raise Stale(f"There is a connector {name} already", next_step=f"GET it, and PUT with If-Match: {there}")
        if (self.any and not there) or (self.revisions and there not in self.revisions):
            raise stale(name, there)
        if there and not (self.revisions or self.any):
            raise RevisionNeeded(
                f"Connector {name} is there: say which revision the change was made from",
                next_step="GET it, change what it answers, and send its ETag as If-Match",
            )
        return there


def stale(name: str, there: int) -> Stale:
    now = f"revision {there} is the newest" if there else "it is not there"
    return Stale(f"Connector {name} was changed since: {now}", next_step="GET it again, and make the change of that")


# --------------------------------------------------------------------------------------------------------- what is read


def listed(say: Say, *, limit: int, after: str = "", name: str = "*", state: str = "") -> ListPage[Json]:
    """By name, with what each does now. `name` is a pattern; `state` a state as they are shown."""
    callers.require("viewer")
    place = place_of(after, str)
    there = [one for key, one in sorted(visible().items()) if fnmatchcase(key, name) and (not place or key > place[0])]
    if not there:
        return ListPage()
    with reading() as opened:
        found = connectors.outlined(opened, there if state else there[: limit + 1], say)
    return page([one for one in found if state in ("", one["state"])], limit, lambda one: [one["name"]])


def document(name: str) -> tuple[Json, int]:
    """As `waybill apply` takes it, without secrets, and its revision. Raises NotFound."""
    callers.require("viewer")
    found = named(name)
    return masked(found.document), found.revision


def status(name: str, say: Say) -> Json:
    """What it does now and why, what it promises, and which partitions do not go on. Raises NotFound."""
    callers.require("viewer")
    found = named(name)
    with reading() as opened:
        told = connectors.shown(opened, found, say)
    return {key: value for key, value in told.items() if key != "document"}


def history(name: str, *, limit: int, after: str = "") -> ListPage[Json]:
    """Revisions of its document with who made them, the newest first. Raises NotFound."""
    callers.require("viewer")
    place, found = place_of(after, int), named(name)
    with reading() as opened:
        told = [
            {"revision": r.revision, "applied_at": r.applied_at, "who": r.who, "why": r.why, "difference": r.difference}
            for r in reversed(opened.ledger.revisions(found.uid))
            if place is None or r.revision < place[0]
        ]
    return page(told, limit, lambda one: [one["revision"]])


def rules_of(name: str) -> tuple[list[Json], int]:
    """Of the newest revision, and its number. Raises NotFound."""
    callers.require("viewer")
    found = named(name)
    return list(masked(found.document.get("rules") or [])), found.revision


# ------------------------------------------------------------------------------------------------------ what is changed


def put(name: str, data: Json, made_from: MadeFrom, say: Say, *, why: str = WHY) -> Json:
    """The whole document of a connector that is there, or is created by it. Raises ConfigError with every fault,
    NotAllowed, Stale and RevisionNeeded."""
    may_write(name)
    there = made_from.of(visible_one(name), name)
    if (said := data.get("name", name)) != name:
        raise ConfigError(
            "The document has another name than its address", faults=(Fault("name", f"is {said!r}, and not {name!r}"),)
        )
    refuse_masks(data)
    with _unless_changed(name, there), in_words_of_documents([f"connector {name}"]):
        return documents.apply_one(name, data, why=why, say=say, made_from=there)


def put_rules(name: str, wanted: Sequence[Json], made_from: MadeFrom, *, why: str = WHY, preview: bool = False) -> Json:
    """All rules of a connector that is there. With `preview` what would change. Raises as `put` does, and NotFound."""
    may_write(name)
    there = made_from.of(named(name), name)
    refuse_masks(list(wanted))
    with _unless_changed(name, there), in_words_of_documents([f"connector {name}"]), reading() as opened:
        told = rules.put(opened, name, list(wanted), revision=there, why=why, dry_run=preview)
    if told is None:
        found = visible_one(name)
        raise stale(name, found.revision if found else 0)
    return told


def set_state(name: str, state: Wish) -> Json:
    """Raises NotFound and NotAllowed."""
    callers.require("operator", name)
    named(name)
    with reading() as opened:
        return connectors.set_state(opened, name, state)


def snapshot(name: str, wish: SnapshotWish) -> Json:
    """Raises NotFound and NotAllowed, and ConfigError where the source has no such thing. A condition is code that the
    server of the source runs, and tells of what rows hold."""
    callers.require("operator" if wish.where is None else "admin", name)
    named(name)
    with reading() as opened:
        return snapshots.ask(opened, name, wish)


def cancel_snapshot(name: str, tables: Sequence[str]) -> Json:
    """Raises as `snapshot` does."""
    callers.require("operator", name)
    named(name)
    with reading() as opened:
        return snapshots.cancel(opened, name, tables)


def delete(name: str, made_from: MadeFrom, say: Say, *, force: bool = False) -> Json:
    """Without a revision it goes whichever is there. Raises NotFound, NotAllowed and Stale; and, where a broker cannot
    be told, the reason: then it stays, stopped. With `force` it goes all the same."""
    callers.require("admin", name)
    if visible_one(name) is None and not deletions.is_left(name):
        named(name)

    def agree(uid: str) -> None:
        if made_from.revisions:
            made_from.of(named(name), name)

    with working() as opened:
        return deletions.delete(opened, name, force=force, agree=agree, say=say)


# ----------------------------------------------------------------------------------------------------- faults and races


@contextmanager
def _unless_changed(name: str, there: int) -> Iterator[None]:
    """Raises Stale in place of the Retriable that a change meets where the connector was changed meanwhile."""
    try:
        yield
    except Retriable:
        found = visible_one(name)
        if (now := found.revision if found else 0) != there:
            raise stale(name, now) from None
        raise


@contextmanager
def in_words_of_documents(written: Sequence[str], *, several: bool = False) -> Iterator[None]:
    """Faults are at a place of the body: there is no file whose name has to be said. Of several documents, by the names
    that they were `written` under, the place begins with `documents[0]`; of one with its key."""
    begins = {f"{one}: ": f"documents[{number}]" if several else "" for number, one in enumerate(written)}
    try:
        yield
    except ConfigError as error:
        if not error.faults:
            raise
        faults = tuple(Fault(_place(one.path, begins), without_others(one.message)) for one in error.faults)
        raise ConfigError(error.what, where=error.where, next_step=error.next_step, faults=faults) from None


def _place(path: str, begins: Mapping[str, str]) -> str:
    for said, begin in begins.items():
        if f"{path}: ".startswith(said):
            return ".".join(filter(None, [begin, path[len(said) :]]))
    return path


def refuse_masks(data: Any) -> None:
    """A document that was shown is sent again: its masks are no values. Raises ConfigError."""
    if faults := tuple(
        Fault(place, f"{MASK} stands for a secret that is not shown: write a reference, ${{env:NAME}} or ${{file:…}}")
        for place in _masks(data)
    ):
        raise ConfigError("A mask is no value", faults=faults)


def _masks(data: Any, place: str = "") -> Iterator[str]:
    if isinstance(data, dict):
        for key, one in data.items():
            yield from _masks(one, f"{place}.{key}".lstrip("."))
    elif isinstance(data, list):
        for number, one in enumerate(data):
            yield from _masks(one, f"{place}[{number}]")
    elif isinstance(data, str) and MASK in data:
        yield place
