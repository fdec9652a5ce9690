"""Documents from files of this machine, judged and stored by a server: all of them or none, and only where nobody else
has changed a connector meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from re import Match, fullmatch, sub
from typing import Any

from connect_core.errors import ConfigError, Fault
from connect_core.remote.client import ServerClient
from connect_core.remote.values import timed
from connect_core.sdk.values import Json
from connect_core.service.documents import Written, WrittenDocuments, read_paths
from connect_core.service.durations import show_count
from connect_core.service.opened import Say
from connect_core.service.trying import too_many


def would_change(client: ServerClient, paths: Sequence[Path], say: Say) -> list[Json]:
    written = read_paths(paths)
    return _said(written, _previewed(client, written), say)


def apply(client: ServerClient, paths: Sequence[Path], why: str, say: Say) -> list[Json]:
    """Looked at first: what is stored then was made from the revisions that were seen."""
    written = read_paths(paths)
    made_from = {change["name"]: change["made_from"] for change in _previewed(client, written)}
    told = _asked(client, "/apply", written, {"why": why, "made_from": made_from})["connectors"]
    return _said(written, timed(told, "deleted_at"), say)


def check(client: ServerClient, paths: Sequence[Path], *, probe: bool) -> list[Json]:
    written = read_paths(paths)
    told = _asked(client, "/check", written, {"probe": probe})["documents"]
    files = [one.where for one in written.documents]
    return [{"name": one["name"], "where": file, **one} for one, file in zip(told, files, strict=True)]


def tried(client: ServerClient, path: Path, asked: Json) -> Json:
    """What the only document of a file would make of records."""
    written = read_paths([path])
    _refuse(written.faults, written)
    if len(written.documents) > 1:
        raise too_many([str(one.data.get("name")) for one in written.documents], str(path))
    [one] = written.documents
    try:
        return client.judged("/try", {"document": one.data, **asked})
    except ConfigError as error:
        if not error.faults:
            raise
        _refuse([_within(one, fault.path, fault.message) for fault in error.faults], written)
        raise


def _previewed(client: ServerClient, written: WrittenDocuments) -> list[Json]:
    told = _asked(client, "/apply", written, {}, preview=True)["connectors"]
    found: list[Json] = timed(told, "deleted_at")
    return found


def _asked(client: ServerClient, path: str, written: WrittenDocuments, more: Json, **query: Any) -> Json:
    """Raises ConfigError with the faults that the server finds, in words of files, and those of files that cannot be
    read: of them it knows nothing."""
    faults, told = list(written.faults), dict[str, Any]()
    try:
        if written.documents:
            asked = {"documents": [one.data for one in written.documents], **more}
            told = client.post(path, asked) if "made_from" in more else client.judged(path, asked, **query)
    except ConfigError as error:
        if not error.faults:
            raise
        faults += [_of_a_file(one, written.documents) for one in error.faults]
    _refuse(faults, written)
    return told


def _refuse(faults: Sequence[Fault], written: WrittenDocuments) -> None:
    if faults:
        documents = len(written.documents) + len(written.faults)
        raise ConfigError(
            f"{show_count(len(faults), 'fault')} in {show_count(documents, 'document')}", faults=tuple(faults)
        )


def _said(written: WrittenDocuments, changes: list[Json], say: Say) -> list[Json]:
    for one, change in zip(written.documents, changes, strict=True):
        for text in change["notices"]:
            say(f"{one.where}: {text}")
    return changes


def _of_a_file(fault: Fault, documents: Sequence[Written]) -> Fault:
    found = fullmatch(r"documents\[(\d+)\]\.?(.*)", fault.path)
    if found is None or int(found[1]) >= len(documents):
        return fault
    return _within(documents[int(found[1])], found[2], _naming_files(fault.message, documents))


def _naming_files(message: str, documents: Sequence[Written]) -> str:
    """What it says of another document, by the file of that."""

    def file(found: Match[str]) -> str:
        number = int(found[1])
        return documents[number].where if number < len(documents) else found[0]

    return sub(r"\bdocuments\[(\d+)\](?![.\[\w])", file, message)


def _within(one: Written, place: str, message: str) -> Fault:
    """At its line of the file."""
    line = one.line(tuple(int(part) if part.isdecimal() else part for part in place.split("."))) if place else None
    path = f"{one.where}: {place}" if place else one.where
    return Fault(path, f"line {line}: {message}" if line else message)
