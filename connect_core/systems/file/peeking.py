"""What stands last in a file, for people. Reads only."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from connect_core.errors import Unreachable
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import OPERATION_NONE
from connect_core.sdk.values import Json
from connect_core.systems.expanding import expanded
from connect_core.systems.file.options import FileSourceOptions

_TAIL_BYTES = 1024 * 1024


def peek(sink: Json, last: int) -> list[Json]:
    return [{"value": line} for line in last_lines(Path(sink["path"]), last)]


def newest(options: FileSourceOptions, last: int) -> pa.Table:
    """Of the file that was written last."""
    paths = sorted(expanded(options.path), key=os.path.getmtime)
    lines = last_lines(Path(paths[-1]), last) if paths else []
    rows = [{"value": line, "offset": n, "operation": OPERATION_NONE} for n, line in enumerate(lines)]
    return pa.Table.from_pylist(rows, schema=RECORD_SCHEMA)


def last_lines(path: Path, last: int) -> list[bytes]:
    """The last lines, of at most the last MiB."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begin = file.seek(max(0, size - _TAIL_BYTES))
            text = file.read()
    except OSError as error:
        raise Unreachable(f"The file cannot be read: {error.strerror}", where=str(path)) from None
    lines = text.split(b"\n")
    lines = lines[1 if begin else 0 : -1 if text.endswith(b"\n") else None]
    return lines[-last:]
