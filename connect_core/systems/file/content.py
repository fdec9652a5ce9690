"""Whether a file holds lines at all: compressed and binary ones are refused by name, before anything of them is read.

What is looked at are the first bytes of a file that has not been begun.
"""

from __future__ import annotations

import re

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
_MAGIC_BYTES = 10
_BZIP2 = b"1AY&SY", b"\x17rE8P\x90"
"""One of these follows `BZh` and a digit: text may begin with such four characters."""
_PZSTD = b"\x50\x2a\x4d\x18\x04\x00\x00\x00"
"""A frame that says how long the next one is."""
_LEAST_PADDING = 64
_CONTROL = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f]")
"""What no log holds: control characters but for those that move the cursor, ring and begin colours."""


def refusal(file: OpenFile, *, binary: bool) -> str:
    """Why nothing of this file is read, in words; empty for a file of lines, and for any file with `binary`."""
    if binary:
        return ""
    if kind := _compression(file.bytes_at(0, _MAGIC_BYTES)):
        return f"compressed ({kind})"
    head = file.bytes_at(0, LOOKED_AT)
    if b"\0" not in head:
        return ""
    if begin := _padding(head):
        return f"padded with NUL bytes from byte {begin} on, as a crash of the machine may leave a log"
    return "binary (it holds NUL bytes)"


def compression(file: OpenFile) -> str:
    """How it is compressed; empty for a file that is not."""
    return _compression(file.stored_at(0, _MAGIC_BYTES))


def _compression(head: bytes) -> str:
    for name, magic in _COMPRESSIONS.items():
        if head.startswith(magic) and (name != "bzip2" or head[4:10] in _BZIP2):
            return name
    return "zstd" if head.startswith(_PZSTD) else ""


def _padding(head: bytes) -> int:
    """Where a run of NULs begins behind lines of text, when nothing else in `head` is binary; 0 for any other file.
    Blocks that a file system had given to a log, and had not written when it stopped, are read as such a run."""
    runs = list(re.finditer(rb"\0+", head))
    text = head[: runs[0].start()] + head[runs[0].end() :]
    if len(runs) > 1 or b"\n" not in head[: runs[0].start()] or _CONTROL.search(text):
        return 0
    return runs[0].start() if len(runs[0].group()) >= _LEAST_PADDING else 0


def require_lines(file: OpenFile, *, binary: bool) -> None:
    """Raises ContentRefused."""
    if why := refusal(file, binary=binary):
        advice = _WITHOUT_PADDING if why.startswith("padded") else _OTHER_FILES
        raise ContentRefused(
            f"The file is {why}: it has no lines to read" if advice is _OTHER_FILES else f"The file is {why}",
            where=file.path,
            next_step=advice,
        )


_OTHER_FILES = "Unpack it, or narrow the pattern so that it is not named; `binary: true` reads any bytes"
_WITHOUT_PADDING = (
    "Nothing of it was read. Make a copy without them (tr -d '\\000' < LOG > COPY), let the path name that and not the"
    " log; or set `binary: true`: then the line that holds them is delivered with them"
)
