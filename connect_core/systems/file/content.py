"""Whether a file holds lines at all: compressed and binary ones are refused by name, before anything of them is read.

What is looked at are the first bytes of a file that has not been begun.
"""

from __future__ import annotations

from connect_core.errors import ContentRefused
from connect_core.systems.file.identity import OpenFile

LOOKED_AT = 8 * 1024
"""How many bytes are searched for a NUL, which no text in UTF-8 or a code page of one byte holds."""

_COMPRESSIONS = {
    "gzip": b"\x1f\x8b\x08",
    "zstd": b"\x28\xb5\x2f\xfd",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "lz4": b"\x04\x22\x4d\x18",
    "compress": b"\x1f\x9d",
    "zip": b"PK\x03\x04",
}
_BZIP2 = b"1AY&SY", b"\x17rE8P\x90"
"""One of these follows `BZh` and a digit: text may begin with such four characters."""


def refusal(file: OpenFile, *, binary: bool) -> str:
    """Why nothing of this file is read, in words; empty for a file of lines, and for any file with `binary`."""
    if binary:
        return ""
    head = file.bytes_at(0, LOOKED_AT)
    for name, magic in _COMPRESSIONS.items():
        if head.startswith(magic) and (name != "bzip2" or head[4:10] in _BZIP2):
            return f"compressed ({name})"
    return "binary (it holds NUL bytes)" if b"\0" in head else ""


def require_lines(file: OpenFile, *, binary: bool) -> None:
    """Raises ContentRefused."""
    if why := refusal(file, binary=binary):
        raise ContentRefused(
            f"The file is {why}: it has no lines to read",
            where=file.path,
            next_step="Unpack it, or narrow the pattern so that it is not named; `binary: true` reads any bytes",
        )
