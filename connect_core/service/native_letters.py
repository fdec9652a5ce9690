"""Rejected records that are exported, and that are given up, for the routes of Waybill's own API.

Each function asks what the caller may, and raises NotFound for a connector that is not there for it. With `preview` it
says which letters are meant, and changes nothing; `until` is when that was looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from connect_core.sdk.values import Json
from connect_core.service import callers, dead_letters, letter_redirects
from connect_core.service.dead_letters import Count, LettersPreview, Words
from connect_core.service.opened import Say, reading, working
from connect_core.service.visible import named


def export(name: str, words: Words) -> Iterator[str]:
    """Each whole, as a line of JSON, the oldest first, and a last line that counts them: an answer without it broke off
    on its way. For who may read the source as well. Raises ConfigError for words that choose nothing, and where one
    cannot be opened, before the first line."""
    callers.require("admin", name)
    named(name)
    with ExitStack() as resources:
        lines = dead_letters.whole_lines(resources.enter_context(reading()), name, words)
        return _to_the_end(lines, resources.pop_all())


def _to_the_end(lines: Iterator[str], held: ExitStack) -> Iterator[str]:
    """The ledger is held until the last line."""
    exported = 0
    with held:
        for line in lines:
            yield line
            exported += 1
    yield dead_letters.end_of_lines(exported)


def discard(name: str, words: Words, *, why: str, preview: bool) -> Json:
    """Marks them; none is deleted. Raises ConfigError for words that choose nothing."""
    return _given_up(name, words, dead_letters.discard, still_open=True, why=why, preview=preview)


def erase(name: str, words: Words, *, why: str, preview: bool) -> Json:
    """Takes payload, key and headers out of those that were replayed or discarded. Raises as `discard` does."""
    return _given_up(name, words, dead_letters.erase, still_open=False, why=why, preview=preview)


def _given_up(
    name: str, words: Words, give_up: Callable[..., Json], *, still_open: bool, why: str, preview: bool
) -> Json:
    callers.require("admin", name)
    named(name)
    now = datetime.now(UTC)
    with reading() as opened:
        if preview:
            return _meant(name, dead_letters.chosen(opened, name, words, still_open=still_open), now)
        return {"applied": True, **give_up(opened, name, words, _agreed, why=why)}


def redirect(name: str, say: Say, *, why: str, preview: bool) -> Json:
    """Gives up what was begun in a former `errors.sink`: the next run sends it to that of today. Raises LeaseHeld while
    a run sends some."""
    callers.require("admin", name)
    named(name)
    now = datetime.now(UTC)
    with working() as opened:
        if preview:
            return _meant(name, letter_redirects.on_their_way(opened, name), now)
        return {"applied": True, **letter_redirects.redirect(opened, name, _agreed, say, why=why)}


def _agreed(_: LettersPreview) -> None:
    """Who asks for it by a request has agreed."""


def _meant(name: str, counts: Sequence[Count], now: datetime) -> Json:
    told: Json = {"applied": False, "connector": name, "until": now, "letters": sum(one.letters for one in counts)}
    return told | {"counts": [one._asdict() for one in counts]}
