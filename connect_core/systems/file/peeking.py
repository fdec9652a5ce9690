"""What stands last in a file, for people. Reads only."""

from __future__ import annotations

import os
from itertools import accumulate
from pathlib import Path

import pyarrow as pa

from connect_core.errors import Unreachable
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import OPERATION_NONE
from connect_core.sdk.values import Json
from connect_core.systems.expanding import expanded
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.packed import PackedFile, opener
from connect_core.systems.file.streams import Streams

_TAIL_BYTES = 1024 * 1024


def peek(sink: Json, last: int) -> list[Json]:
    return [{"value": line} for line in last_lines(Path(sink["path"]), last)]


def newest(options: FileSourceOptions, last: int) -> pa.Table:
    """Of the file that was written last, and where that is. A log that was rotated a moment ago is empty."""
    paths = sorted(filter(os.path.getsize, expanded(options.path)), key=os.path.getmtime)
    path = str(paths[-1]) if paths else ""
    rows = [
        {"value": line, "offset": offset, "operation": OPERATION_NONE, "path": path}
        for offset, line in (_last_in(path, last, binary=options.binary) if paths else [])
    ]
    return pa.Table.from_pylist(rows, schema=RECORD_SCHEMA.append(pa.field("path", pa.string())))


def last_lines(path: Path, last: int) -> list[bytes]:
    """The last lines, of at most the last MiB."""
    return [line for _, line in _last_lines(path, last)]


def _last_in(path: str, last: int, *, binary: bool) -> list[tuple[int, bytes]]:
    """Of a compressed file the last lines in it: it is read through for that."""
    file = None if binary else opener(Streams())(path)
    if not isinstance(file, PackedFile):
        return _last_lines(Path(path), last)
    with file:
        size = file.size()
        begin = max(0, size - _TAIL_BYTES)
        return _lines(file.bytes_at(begin, size - begin), begin, last)


def _last_lines(path: Path, last: int) -> list[tuple[int, bytes]]:
    """With the place of each one's first byte."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begin = file.seek(max(0, size - _TAIL_BYTES))
            text = file.read()
    except OSError as error:
        raise Unreachable(f"The file cannot be read: {error.strerror}", where=str(path)) from None
    return _lines(text, begin, last)


def _lines(text: bytes, begin: int, last: int) -> list[tuple[int, bytes]]:
    lines = text.split(b"\n")
    offsets = accumulate((len(line) + 1 for line in lines), initial=begin)
    found = list(zip(offsets, lines, strict=False))
    return found[1 if begin else 0 : -1 if text.endswith(b"\n") else None][-last:]
