"""Offsets that are put back as they were."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import APIRouter

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import Given, Name, Text
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.service import native_offsets as native

_log = logging.getLogger(__name__)


class UndoGiven(Given):
    """Which partition; with `preview` nothing is changed."""

    partition: Text
    preview: bool = False


def add(routes: APIRouter) -> None:
    one = "/connectors/{name}/offsets"
    undone = "Undo the last change by hand of a partition's offset"
    added(routes, "POST", f"{one}/undo", undo_offset, undone, examples.UNDONE)


def undo_offset(name: Name, given: UndoGiven) -> Any:
    return JsonAnswer(native.undo(name, given.partition, _log.info, preview=given.preview))
