"""Reads the JSON that RocketMQ servers write, which is not always JSON: keys may be unquoted integers
(`{0:"127.0.0.1:10911"}`) or objects (`{{"queueId":0,...}:{...}}`).

`read` gives dicts, lists and scalars. A dict whose keys are objects becomes a list of (key, value) pairs inside a
`Pairs`, since dicts are no keys. Standard JSON takes the short way through the standard library. Bounded in depth;
raises `WireFormatError` with the position and nothing else.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from connect_core.errors import WireFormatError

MAX_DEPTH = 64

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile("true|false|null")
_MAX_DIGITS = 400
_STANDARD = json.JSONDecoder()


class Pairs(list[tuple[Any, Any]]):
    """An object that has objects as keys."""


def read(data: bytes | memoryview) -> Any:
    """The document in `data` (UTF-8)."""
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError as error:
        raise WireFormatError(f"Document is not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _Reader(text).document()


class _Reader:
    """Recursive descent over one text; `_at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> Any:
        value = self._value(0)
        if self._peek():
            self._fail("something behind the document")
        return value

    def _value(self, depth: int) -> Any:
        first = self._peek()
        if depth > MAX_DEPTH:
            self._fail("nested too deep")
        if first == "{":
            return self._object(depth)
        if first == "[":
            return self._array(depth)
        if first == '"':
            return self._string()
        if match := _WORD.match(self._text, self._at):
            self._at = match.end()
            return _WORDS[match.group()]
        return self._number()

    def _object(self, depth: int) -> Any:
        self._take("{")
        pairs: list[tuple[Any, Any]] = []
        while self._peek() != "}":
            if pairs:
                self._take(",")
            key = self._key(depth)
            self._take(":")
            pairs.append((key, self._value(depth + 1)))
        self._take("}")
        if any(isinstance(key, dict | Pairs) for key, _ in pairs):
            return Pairs(pairs)
        return dict(pairs)

    def _key(self, depth: int) -> Any:
        """A string, an object, or an integer; integers become text, as they are in standard JSON."""
        first = self._peek()
        if first == "{":
            return self._value(depth + 1)
        if first == '"':
            return self._string()
        return str(self._number())

    def _array(self, depth: int) -> list[Any]:
        self._take("[")
        items: list[Any] = []
        while self._peek() != "]":
            if items:
                self._take(",")
            items.append(self._value(depth + 1))
        self._take("]")
        return items

    def _string(self) -> str:
        try:
            value, self._at = _STANDARD.raw_decode(self._text, self._at)
        except ValueError:
            self._fail("broken string")
        return str(value)

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if not match or len(match.group()) > _MAX_DIGITS:
            self._fail("neither a value nor a key")
        self._at = match.end()
        return float(match.group()) if match.group(1) or match.group(2) else int(match.group())

    def _peek(self) -> str:
        """The next character that is no space; empty at the end."""
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            self._fail(f"expected {sign}")
        self._at += 1

    def _fail(self, what: str) -> NoReturn:
        raise WireFormatError(f"Document of {len(self._text)} characters: {what} at {self._at}")
