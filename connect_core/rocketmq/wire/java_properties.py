"""The text form of broker settings: Java properties, one `name=value` a line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from connect_core.errors import WireFormatError

_LINE = re.compile(r"\s*((?:[^\\=:\s]|\\.)+)\s*[=:]?\s*(.*)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_SPECIAL = re.compile(r"[\\=:\n\r\t#!]|^ ")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_COMMENTS = ("#", "!")


def decode(body: bytes | memoryview) -> dict[str, str]:
    """Settings in the order of their lines; comments and empty lines are nothing."""
    try:
        lines = bytes(body).decode().splitlines()
    except UnicodeDecodeError as error:
        raise WireFormatError(f"Settings are not UTF-8 at byte {error.start}") from None
    matches = (_LINE.fullmatch(line) for line in lines if not line.lstrip().startswith(_COMMENTS))
    return {_plain(match[1]): _plain(match[2]) for match in matches if match}


def encode(settings: Mapping[str, str]) -> bytes:
    """The text that Java's reader takes for exactly these settings."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items()).encode()


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescape, text)


def _unescape(match: re.Match[str]) -> str:
    sign = match[1]
    if len(sign) > 1:
        return chr(int(sign[1:], 16))
    return _LETTERS.get(sign, sign)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    return "\\" + next((letter for letter, plain in _LETTERS.items() if plain == sign), sign)
