"""The files that were read before the present one of a path: what of them is kept with a position, and for how long.

They matter in two ways. What is written to one after it was read is told as a gap; that is looked for in the last few.
And one that the pattern names under its new name must not be read again: of that a mark of twelve characters is kept.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Gap, Position
from connect_core.systems.file.compressed import Compressed, find_compressed
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.identity import Evidence, Former, OpenFile, Past

KEPT = 8
"""So many files are watched for what is written to them after they were read."""
_MARK = 12
"""Characters of a mark."""


def looked_after(folders: Folders, past: Past, near: str, current: OpenFile | None) -> tuple[Past, tuple[Gap, ...]]:
    """What is to be kept of these files, and what was written to them too late. A file that a link leads to again, as
    `current`, is none that was left."""
    kept, gaps, older = list[Former](), list[Gap](), past.older
    dropped = len(past.former) - KEPT
    for number, entry in enumerate(past.former):
        path = folders.path_of(entry, near)
        if path is None:
            entry = _as_compressed(folders, entry, near)
            path = folders.path_of(entry, near) if entry.packed else None
        named = path is not None and folders.names(path)
        if number < dropped and (entry.born or not named):
            older += _mark(entry.ino, entry.born) if named else ""
            continue
        size = _size(folders, path, entry) if path and not (current and current.is_as(entry)) else entry.offset
        if size > entry.offset:
            gaps.append(Gap(entry.incarnation, entry.offset, size, "written after rotation"))
        kept.append(entry if size <= entry.offset else replace(entry, offset=size, tail_bytes=0, tail=""))
    return Past(tuple(kept), older), tuple(gaps)


def _as_compressed(folders: Folders, entry: Former, near: str) -> Former:
    """What is kept of a file that was compressed since: the one that it is now."""
    with find_compressed(folders, entry, near) as file:
        if file is None or not file.is_whole():
            return entry
        now, folder = file.evidence(entry.offset), os.path.dirname(file.path)
        place = replace(entry, dev=file.dev, ino=file.ino, born=file.born, folder=folder)
        return replace(place, packed=now.packed, tail_bytes=0, tail="")


def owns_named(folders: Folders, past: Past, near: str) -> bool:
    """Whether the pattern names one of these files, which must not be read again."""
    paths = (folders.path_of(entry, near) for entry in past.former)
    return bool(past.older) or any(path and folders.names(path) for path in paths)


def behind(seen: Evidence, past: Past, place: Position) -> Past:
    """`past` with the file that was `seen` last, read to `place`."""
    tail = (seen.tail_bytes, seen.tail) if seen.offset == place.offset else (0, "")
    head, folder = (seen.head_bytes, seen.head), os.path.dirname(seen.path)
    entry = Former(
        place.incarnation, seen.dev, seen.ino, *head, place.offset, seen.born, *tail, folder, seen.written, seen.packed
    )
    return replace(past, former=(*past.former, entry))


def without(past: Past, file: OpenFile) -> Past:
    """For a file that is read again: it is not one of those before itself."""
    return replace(past, former=tuple(entry for entry in past.former if not file.is_as(entry)))


def newest(past: Past) -> int:
    """When the youngest of the files was made; 0 where nobody knows."""
    return max((entry.packed.get("made") or entry.born for entry in past.former), default=0)


def left_at(past: Past, file: OpenFile) -> int:
    """How far this file was read before it was left, for one that comes back, or to which a link leads again; 0 when it
    never was."""
    for entry in past.former:
        if file.was_left(entry):
            return entry.offset if file.reaches(entry.offset) else file.size()
    return 0


class Owners:
    """Which partition reads or has read a file. Several may have had its inode: a file that was deleted, and is still
    among those that were read before, says nothing of the one to which its inode was given. For one look: what a
    partition has taken in it is taken."""

    def __init__(self, folders: Folders, begun: Sequence[tuple[Partition, Position | None]]) -> None:
        self._compressed = Compressed(folders, begun)
        self._reading: dict[int, list[tuple[Partition, Evidence]]] = {}
        self._left: dict[int, list[tuple[Partition, Former]]] = {}
        self._marks: dict[str, Partition] = {}
        self._taken: dict[tuple[int, int], Partition] = {}
        for partition, position in begun:
            evidence = position.evidence if position else {}
            past, seen = Past.of(evidence), Evidence.of(evidence)
            self._marks |= {past.older[at : at + _MARK]: partition for at in range(0, len(past.older), _MARK)}
            if seen:
                self._reading.setdefault(seen.ino, []).append((partition, seen))
            for former in past.former:
                self._left.setdefault(former.ino, []).append((partition, former))

    def take(self, file: OpenFile, partition: Partition) -> bool:
        """Whether this partition has the file: of one that nobody has begun, the first that takes it. It may have
        several names (hard links), or get another one while it is looked."""
        return self.owner(file, partition) == partition

    def owner(self, file: OpenFile, asking: Partition) -> Partition:
        """Who has it: the one that is asking, if nobody has begun it or taken it."""
        return self.of(file, asking) or self._taken.setdefault((file.dev, file.ino), asking)

    def is_doubtful(self, file: OpenFile) -> bool:
        """Whether it is compressed, and may be a log that was read, or another that holds the same."""
        return self._compressed.is_doubtful(file)

    def of(self, file: OpenFile, asking: Partition | None = None) -> Partition | None:
        """None for a file of which nothing was read yet. Of several, as with a snapshot of a file system, it is the one
        that is `asking`."""
        reading = [one for one, seen in self._reading.get(file.ino, ()) if _begins_as(file, seen)]
        owners = reading or [one for one, former in self._left.get(file.ino, ()) if file.was_left(former)]
        if owners:
            return asking if asking in owners else owners[0]
        marked = self._marks.get(_mark(file.ino, file.born)) if self._marks and file.born else None
        return marked or self._taken.get((file.dev, file.ino)) or self._compressed.owner(file)


def _begins_as(file: OpenFile, seen: Evidence) -> bool:
    return bool(seen.head_bytes) and file.is_as(seen) and file.begins_as(seen)


def _size(folders: Folders, path: str, former: Former) -> int:
    """What the file holds; as much as was read where it has been renamed since it was found: another may be there."""
    with folders.opened(path) as file:
        return file.size_since(former) if file and file.is_as(former) else former.offset


def _mark(ino: int, born: int) -> str:
    digest = hashlib.blake2b(b"%d %d" % (ino, born), digest_size=9).digest()
    return base64.urlsafe_b64encode(digest).decode()
