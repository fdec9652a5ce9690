"""Offsets that are put back, for the routes of Waybill's own API.

Each function asks what the caller may, and raises NotFound for a connector that is not there for it.
"""

from __future__ import annotations

from connect_core.sdk.values import Json
from connect_core.service import callers, offsets
from connect_core.service.opened import Say, working
from connect_core.service.standing_still import require_still
from connect_core.service.visible import named


def undo(name: str, partition: str, say: Say, *, preview: bool) -> Json:
    """Takes back the last change that a person made to a partition's position; it is a change itself. With `preview`
    it says what that `repeats`, and changes nothing. Raises StillRuns, LeaseHeld while a run works on it, and
    ConfigError where there is nothing to undo."""
    callers.require("admin", name)
    found = named(name)
    with working() as opened:
        if preview:
            return {"applied": False, **offsets.undo_preview(opened, name, partition)}
        require_still(opened, found, say)
        return {"applied": True, **offsets.undo(opened, name, partition, agree=lambda _: None, say=say)}
