"""What a stopped attempt wrote into a file that is not at the path any more, because it was rotated or moved under it.

With `on_replaced: continue` the file that took its place gets all of the range: its lines that stand in the former one,
behind what was settled there, are then there twice. They are that file's now, so nothing moves or cuts them; they are
told and counted. A file that left its folder, or was compressed, is not found.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from connect_core.errors import WaybillError
from connect_core.systems.file.folders import with_inodes
from connect_core.systems.file.identity import OpenFile
from connect_core.systems.file.target import TargetPlace

_BLOCK = 1024 * 1024
_COUNTED = 256 * _BLOCK
"""Lines are counted in so many bytes; of more, each byte counts as one. A lane has no time for all of a large file."""


class Leftover(NamedTuple):
    """`lines` are how many there are at most."""

    file: str
    bytes: int
    lines: int


def left_behind(path: str, place: TargetPlace) -> Leftover | None:
    """What stands behind `place` in the file that it is of, if that is beside `path` under another name."""
    with os.scandir(os.path.dirname(path)) as entries:
        names = [entry.path for ino, entry in with_inodes(entries) if ino == place.ino and not entry.is_symlink()]
    for name in sorted(names):
        try:
            with OpenFile(name) as file:
                if name != path and not place.lost_in(file) and file.size() > place.offset:
                    return Leftover(name, file.size() - place.offset, lines_behind(file, place.offset))
        except WaybillError:
            continue  # gone since, or not to be read: nobody can tell what it holds
    return None


def lines_behind(file: OpenFile, begin: int) -> int:
    """At most so many lines stand there."""
    size = file.size()
    counted = min(size, begin + _COUNTED)
    lines = sum(file.bytes_at(at, min(_BLOCK, counted - at)).count(b"\n") for at in range(begin, counted, _BLOCK))
    return lines + size - counted
