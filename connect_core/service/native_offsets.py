"""Offsets that are put back, and that another ledger takes over, for the routes of Waybill's own API.

Each function asks what the caller may, and raises NotFound for a connector that is not there for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect_core.sdk.values import Json
from connect_core.service import callers, offset_exports, offsets
from connect_core.service.offset_exports import ExportedOffsets
from connect_core.service.opened import Say, reading, working
from connect_core.service.standing_still import require_still
from connect_core.service.visible import named

Seen = Mapping[str, int | None] | None
"""By partition its offset before, as a preview has told it; None where nobody has said it."""


def undo(name: str, partition: str, say: Say, *, preview: bool, seen: Seen) -> Json:
    """Takes back the last change that a person made to a partition's position; it is a change itself. With `preview`
    it says what that `repeats`, and changes nothing. Raises StillRuns, LeaseHeld while a run works on it,
    OffsetMoved where the offset is another one than was seen, and ConfigError where there is nothing to undo."""
    callers.require("admin", name)
    found = named(name)
    with working() as opened:
        if preview:
            return {"applied": False, **offsets.undo_preview(opened, name, partition)}
        require_still(opened, found, say)
        return {"applied": True, **offsets.undo(opened, name, partition, agree=lambda _: None, say=say, seen=seen)}


def exported(name: str) -> Json:
    """What `taken_over` takes in another installation, as `exported`, and `notices` of what another ledger does not
    know. Raises ConfigError where nothing is committed yet."""
    callers.require("admin", name)
    named(name)
    notices: list[str] = []
    with reading() as opened:
        return {"exported": offset_exports.exported(opened, name, notices.append), "notices": notices}


def taken_over(name: str, taken: ExportedOffsets, say: Say, *, why: str, preview: bool, seen: Seen) -> Json:
    """Commits them, all or none; with `preview` it says what that `repeats`, and commits nothing. Raises as `undo`
    does, and ConfigError where the source is not what it was when they were exported."""
    callers.require("admin", name)
    found = named(name)
    with working() as opened:
        if not preview:
            require_still(opened, found, say)
        told = offset_exports.imported(
            opened, name, taken, why=why, agree=lambda _: None, say=say, preview=preview, seen=seen
        )
    return {"applied": not preview, **told}
