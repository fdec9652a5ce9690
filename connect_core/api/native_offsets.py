"""Offsets that are put back as they were, and that another ledger takes over."""

from __future__ import annotations

import logging
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BeforeValidator, Field

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import Given, Name, Offset, OffsetsByPartition, Text, malformed, storable
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.service import native_offsets as native
from connect_core.service.offset_exports import ExportedOffsets

_log = logging.getLogger(__name__)


class UndoGiven(Given):
    """Which partition; with `preview` nothing is changed. `before` is its offset as a preview has told it: nothing is
    changed where it is another now, so that the same request again does not undo the undoing."""

    partition: Text
    before: Offset | None = None
    preview: bool = False


class ImportGiven(Given):
    """`exported` as the export has given it; with `preview` nothing is committed. `before` has the offset of
    each of these partitions as a preview has told it: nothing is committed where one is another now."""

    exported: Annotated[ExportedOffsets, BeforeValidator(storable)]
    before: OffsetsByPartition = Field(default_factory=dict)
    why: Text = ""
    preview: bool = False


def add(routes: APIRouter) -> None:
    one = "/connectors/{name}/offsets"
    undone = "Undo the last change by hand of a partition's offset"
    added(routes, "POST", f"{one}/undo", undo_offset, undone, examples.UNDONE)
    told = {"exported": examples.EXPORTED, "notices": []}
    added(routes, "GET", f"{one}/export", export_offsets, "Committed offsets, for an import with another ledger", told)
    taken = "Commit the offsets that an export has given, all or none"
    added(routes, "POST", f"{one}/import", import_offsets, taken, examples.IMPORTED)


def undo_offset(name: Name, given: UndoGiven) -> Any:
    if not given.preview and "before" not in given.model_fields_set:
        raise malformed("before", "has to be the offset as a preview tells it: asked twice, it is undone once")
    seen = {given.partition: given.before} if "before" in given.model_fields_set else None
    return JsonAnswer(native.undo(name, given.partition, _log.info, preview=given.preview, seen=seen))


def export_offsets(name: Name) -> Any:
    return JsonAnswer(native.exported(name))


def import_offsets(name: Name, given: ImportGiven) -> Any:
    seen = given.said("before")
    told = native.taken_over(name, given.exported, _log.info, why=given.why, preview=given.preview, seen=seen)
    return JsonAnswer(told)
