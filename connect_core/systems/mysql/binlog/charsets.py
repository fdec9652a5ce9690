"""Character sets of MySQL -> texts. Pure. Each was compared with the server, character by character
(tests/system/mysql/test_change_types.py)."""

from __future__ import annotations

import codecs
from collections.abc import Callable

Decoder = Callable[[bytes], str]

_CODECS = {
    **dict.fromkeys(("utf8mb4", "utf8mb3", "utf8"), "utf-8"),
    "ascii": "ascii",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "koi8r": "koi8-r",
}


def decoder(charset: str) -> Decoder | None:
    """None where none is known. A decoder raises ValueError for what is no text."""
    if charset == "latin1":
        return _latin1
    codec = _CODECS.get(charset)
    return (lambda data: data.decode(codec)) if codec else None


_LATIN1 = "".join(bytes((one,)).decode("cp1252", "replace").replace("\ufffd", chr(one)) for one in range(256))
"""That of Windows, with control characters where that has none."""


def _latin1(data: bytes) -> str:
    return codecs.charmap_decode(data, "strict", _LATIN1)[0]
