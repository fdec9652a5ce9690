"""Dead letters behind a server: listed, exported, sent again, given up. What is changed is what somebody agreed to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from connect_core.errors import Unreachable
from connect_core.remote.client import ServerClient
from connect_core.remote.operations import done
from connect_core.remote.values import at, pairs, refuse, timed
from connect_core.sdk.values import Json
from connect_core.service.dead_letters import Agree, Count, LettersPreview, Words, end_of_lines, write_out
from connect_core.service.letter_replays import Replay
from connect_core.service.runs import How

_TIMES = ("stored_at", "replayed_at", "discarded_at")
_DONE = {"discard": "discarded", "erase": "erased", "redirect": "redirected"}


def listed(client: ServerClient, name: str, words: Words, last: int) -> list[Json]:
    found: list[Json] = timed(
        client.listed(f"{at(name)}/dead-letters", "dead_letters", last, **_chosen(words)), *_TIMES
    )
    return found


def shown(client: ServerClient, name: str, number: int) -> Json:
    told: Json = timed(client.get(f"{at(name)}/dead-letters/{number}"), *_TIMES)
    return {**told, "original": str(told["original"]).encode()}


def export(client: ServerClient, name: str, words: Words, to: str, out: TextIO) -> int:
    """To a file of this machine, which is there when it is whole, or to `out`; how many there were."""
    return write_out(_until_the_end(client, name, words), to, out)


def replay(client: ServerClient, name: str, wanted: Replay, agree: Agree, how: How) -> Json:
    """Of those that were there when somebody agreed."""
    refuse(how.engine, "--engine")
    asked = {**wanted.words.asked(), "again": wanted.again, "sink": pairs(wanted.sink), "why": wanted.why}
    path = f"{at(name)}/dead-letters/replays/preview"
    seen = client.judged(path, {key: value for key, value in asked.items() if value})
    if not seen["counts"] and not seen["resumed"]:
        return {"connector": name, "left_out": seen["left_out"], "replays": []}
    counts = _counts(seen)
    agree(LettersPreview(name, counts, seen["left_out"], tuple(seen["resumed"]), seen["delivered"]))
    asked["until"] = _until(wanted.words, seen)
    told: Json = timed(done(client, name, "dead-letters/replays", asked, how.listening), "created_at", "ended_at")
    return told


def give_up(client: ServerClient, name: str, verb: str, words: Words | None, agree: Agree, why: str) -> Json:
    """Discards or erases those that were there when somebody agreed; or redirects, which takes no words."""
    path, asked = f"{at(name)}/dead-letters/{verb}", words.asked() if words else {}
    seen = client.judged(path, {**asked, "preview": True})
    if not seen["letters"]:
        return {"connector": name, _DONE[verb]: 0}
    agree(LettersPreview(name, _counts(seen), {}))
    if words and (until := _until(words, seen)):
        asked["until"] = until
    told = client.post(path, {**asked, "why": why})
    return {"connector": name, _DONE[verb]: told[_DONE[verb]]}


def _chosen(words: Words) -> Json:
    query = {key: value for key, value in words.asked().items() if key != "ids"}
    return query | {"state": words.state} | ({"id": list(words.ids)} if words.ids else {})


def _counts(seen: Json) -> tuple[Count, ...]:
    return tuple(Count(**one) for one in seen["counts"])


def _until(words: Words, seen: Json) -> str:
    """What comes while somebody thinks about it was not shown, and is not meant."""
    return words.until or ("" if words.ids else str(seen["until"]))


def _until_the_end(client: ServerClient, name: str, words: Words) -> Iterator[str]:
    """Raises Unreachable where the last line is not the one that counts them: the answer broke off on its way."""
    return _without_end(client.lines(f"{at(name)}/dead-letters/export", **_chosen(words)), client.server.url)


def _without_end(lines: Iterable[str], where: str) -> Iterator[str]:
    held, exported = "", 0
    for line in lines:
        if held:
            yield held
            exported += 1
        held = line
    if held != end_of_lines(exported):
        raise Unreachable(
            f"The answer broke off behind {exported:,} dead letters",
            where=where,
            next_step="Give the command again: an export changes nothing",
        )
