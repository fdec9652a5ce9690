"""The members of a JSON object as texts, so that no digit of a number is lost. Pure."""

from __future__ import annotations

import json
import re

SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
"""For what has no numbers that matter, and to see where a value ends."""

_BLANKS = r"[ \t\r\n]*"
_SPACE = re.compile(_BLANKS)
_NAME = re.compile(rf'{_BLANKS}([{{,]){_BLANKS}("(?:[^"\\]|\\.)*"){_BLANKS}:{_BLANKS}', re.DOTALL)
"""Of a member, with what is before it."""
_END = re.compile(rf"{_BLANKS}\}}{_BLANKS}")


def members_of(text: str) -> dict[str, str]:
    """By name. Raises ValueError, or RecursionError, for what is no object with members, has a name twice or more
    behind it."""
    found: dict[str, str] = {}
    at, mark = 0, "{"
    while (member := _NAME.match(text, at)) is not None and member[1] == mark:
        name = member[2][1:-1] if "\\" not in member[2] else SCANNER.decode(member[2])
        begin = member.end()
        _, at = SCANNER.raw_decode(text, begin)
        if name in found:
            raise ValueError("twice")
        found[name] = text[begin:at]
        mark = ","
    if not found or not _END.fullmatch(text, at):
        if text.startswith("{", begin := _blanks(text, 0)):
            SCANNER.raw_decode(text, begin)  # raises JSONDecodeError, with the place, for what is no JSON
        raise ValueError("no object with members")
    return found


def after(text: str, word: str, at: int) -> int:
    """Where the next thing begins, if this is what is there. Raises ValueError."""
    at = _blanks(text, at)
    if not text.startswith(word, at):
        raise ValueError(word)
    return _blanks(text, at + len(word))


def _blanks(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
