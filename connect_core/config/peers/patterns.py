"""Regular expressions and replacements of Java, as Python and RE2 read them. Pure.

Only what all of them read alike is taken; the rest raises ValueError.
"""

from __future__ import annotations

import re

_UNLIKE = re.compile(r"\\[abce-mo-quvx-zA-CE-RT-VX-Z0-9]|&&|\[\^?\[|\(\?(?:[!=>]|<[!=]|[a-zA-Z])|[*+?}]\+")
"""What one of them reads otherwise, or not at all."""
_NAMED = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\.", re.DOTALL)
_ANY = "[^\\n\\r\u0085\u2028\u2029]"
"""Of Java: `.` ends at each of these."""
_PIECE = re.compile(
    r"\\(?P<plain>.)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|\$(?P<number>\d+)|(?P<wrong>[\\$])", re.DOTALL
)


def java_pattern(text: str) -> re.Pattern[str]:
    if found := _UNLIKE.search(text):
        raise ValueError(f"{text!r}: {found[0]!r} is read by Java in a way of its own")
    named = _NAMED.sub(r"(?P<\1>", text)
    try:
        return re.compile(_TOKEN.sub(lambda one: _ANY if one[0] == "." else one[0], named), re.ASCII)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None


def replaced(pattern: re.Pattern[str], replacement: str, text: str, *, once: bool) -> str:
    """As `replaceFirst` and `replaceAll` of Java."""
    return pattern.sub(lambda found: _filled(replacement, found), text, count=1 if once else 0)


def _filled(replacement: str, found: re.Match[str]) -> str:
    def one(piece: re.Match[str]) -> str:
        if piece["plain"]:
            return piece["plain"]
        if piece["name"]:
            return found[piece["name"]] or ""
        if piece["number"]:
            return _numbered(piece["number"], found)
        raise ValueError(f"{replacement!r} is no replacement: a {piece[0]} alone means nothing")

    try:
        return _PIECE.sub(one, replacement)
    except (IndexError, KeyError):
        raise ValueError(f"{replacement!r} names a group that the pattern does not have") from None


def _numbered(digits: str, found: re.Match[str]) -> str:
    """As many digits as there is a group for, the first in any case; the others are text."""
    length = 1
    while length < len(digits) and int(digits[: length + 1]) <= found.re.groups:
        length += 1
    return (found[int(digits[:length])] or "") + digits[length:]
