"""Rejected records that are exported, discarded, erased, and sent to another target of theirs."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import (
    ChosenLetters,
    Given,
    LettersGiven,
    Name,
    Text,
)
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.service import native_letters as native

_log = logging.getLogger(__name__)
_LINES = "application/x-ndjson"


class GivingUp(LettersGiven):
    """Which dead letters: all where nothing is said. With `preview` nothing is changed."""

    why: Text = ""
    preview: bool = False


class RedirectGiven(Given):
    """With `preview` nothing is changed."""

    why: Text = ""
    preview: bool = False


def add(routes: APIRouter) -> None:
    one = "/connectors/{name}/dead-letters"
    exported = "Rejected records, whole: one JSON object a line, the oldest first; the last line counts them"
    line = '{"id": 7, "state": "open", "payload": {"text": "one, two"}}\n{"exported": 1}\n'
    added(routes, "GET", f"{one}/export", export_dead_letters, exported, line, media_type=_LINES)
    for verb, handler, summary, done in (
        ("discard", discard_dead_letters, "Mark rejected records as discarded; none is deleted", "discarded"),
        ("erase", erase_dead_letters, "Take out what rejected records hold, for good", "erased"),
        ("redirect", redirect_dead_letters, "Send to the errors.sink of today what was for a former one", "redirected"),
    ):
        added(routes, "POST", f"{one}/{verb}", handler, summary, examples.GIVEN_UP | {done: 1})


def export_dead_letters(name: Name, words: ChosenLetters) -> Any:
    lines = native.export(name, words)
    return StreamingResponse(lines, media_type=_LINES, headers={"Cache-Control": "no-store"})


def discard_dead_letters(name: Name, given: GivingUp) -> Any:
    return JsonAnswer(native.discard(name, given.words(), why=given.why, preview=given.preview))


def erase_dead_letters(name: Name, given: GivingUp) -> Any:
    return JsonAnswer(native.erase(name, given.words(), why=given.why, preview=given.preview))


def redirect_dead_letters(name: Name, given: RedirectGiven) -> Any:
    return JsonAnswer(native.redirect(name, _log.info, why=given.why, preview=given.preview))
