r"""The lines of a Java properties file, as `java.util.Properties` reads them. Pure.

`key=value`, `key: value` or `key value` a line; `#` and `!` begin a comment. After `\` at its end a line goes on in the
next one. `\t`, `\n`, `\r`, `\f` and `\u` with four digits are characters; any other that stands behind a `\` is meant
as it is: `\:`, `\=`, `\ ` and `\\`. Otherwise than there, white space at the end of a line counts only behind a `\`,
and a key has a value.
https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html#load(java.io.Reader)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WHITE = " \t\f"
_NATURAL_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])+)(?:[ \t\f]*[=:][ \t\f]*|[ \t\f]+)(.*)")
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def pairs(text: str) -> Iterator[tuple[int, str, str]]:
    """The line, from 1, the key and the value of each. Raises ValueError for a line that is none, without its words."""
    for number, line in _logical_lines(text):
        found = _PAIR.fullmatch(_without_white_end(line))
        if not found:
            raise ValueError(f"line {number}: not of the form key=value")
        try:
            key, value = map(_unescaped, found.groups())
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        yield number, key, value


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    lines = enumerate(_NATURAL_LINE_END.split(text), 1)
    for number, line in lines:
        whole = line.lstrip(_WHITE)
        if not whole or whole[0] in "#!":
            continue
        while _escapes_its_end(whole):
            _, more = next(lines, (0, ""))
            whole = whole[:-1] + more.lstrip(_WHITE)
        yield number, whole


def _escapes_its_end(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _without_white_end(line: str) -> str:
    short = line.rstrip(_WHITE)
    return line[: len(short) + 1] if _escapes_its_end(short) else short


def _unescaped(text: str) -> str:
    """Java writes a character beyond U+FFFF as two."""
    try:
        return _ESCAPED.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("half of a character that Java writes as two, \\uD800 to \\uDFFF") from None


def _character(escaped: re.Match[str]) -> str:
    code, one = escaped.groups()
    if code:
        return chr(int(code, 16))
    if one == "u":
        raise ValueError("\\u is followed by four hexadecimal digits")
    return _CONTROLS.get(one, one)
