"""Which compressed file is a log that was read, wholly or in part, before it was compressed (delivery rule 15).

Compression makes another file: its inode, birth and name are new. What is in it is not: it begins as the log did, and
has before the place that was read what the log had there. Equal files are made by others, too (exports without rows);
so the name has to be one that compression and rotation give to that log, and it bears the time of the log's last write
or a later one. Where the log is still there, only its own name with an ending counts: that is how it is compressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Position
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.identity import TAIL_BYTES, Evidence, Former, OpenFile, Past
from connect_core.systems.file.packed import PackedFile
from connect_core.systems.file.patterns import Addition, Scheme, without_ending

_SECOND_NS = 1_000_000_000
"""Some programs keep times by the second."""


class _Read(NamedTuple):
    """A file that was read before it was compressed: by whom, what was seen of it, and under what name last."""

    partition: Partition
    seen: Evidence | Former
    names: tuple[str, ...]


class Compressed:
    """One look. `begun` is what all partitions have read."""

    def __init__(self, folders: Folders, begun: Sequence[tuple[Partition, Position | None]]) -> None:
        self._folders = folders
        self._by_head: dict[tuple[int, str], list[_Read]] = {}
        for partition, position in begun:
            for seen in _seen(position):
                if seen.head_bytes and not seen.packed:
                    read = _Read(partition, seen, _names(partition.key, seen))
                    self._by_head.setdefault((seen.head_bytes, seen.head), []).append(read)

    def owner(self, file: OpenFile) -> Partition | None:
        """Who has read the log that this file is, or may be once it is whole."""
        if not isinstance(file, PackedFile):
            return None
        for count in sorted({count for count, _ in self._by_head}):
            for one in self._by_head.get((count, file.head(count)), ()):
                if self._there_or_gone(file, one) and _may_be(file, one.seen, one.names):
                    return one.partition
        return None

    def _there_or_gone(self, file: PackedFile, one: _Read) -> bool:
        """Whether the log is gone; or is there still, and this is what it is compressed to."""
        near = (*one.names, file.path)
        with self._folders.moved(one.seen.ino, near, lambda other: _is_plain(other, one.seen)) as log:
            return log is None or without_ending(file.path) == log.path


def _is_plain(file: OpenFile, seen: Evidence | Former) -> bool:
    return not isinstance(file, PackedFile) and file.is_as(seen) and file.begins_as(seen)


@contextmanager
def find_compressed(folders: Folders, seen: Evidence | Former, key: str) -> Iterator[PackedFile | None]:
    """What became of a file that was read and is gone: the compressed one, whole or still being written."""
    names = _names(key, seen)
    for path in _candidates(folders, names) if seen.head_bytes and not seen.packed else ():
        with folders.opened(path) as file:
            if isinstance(file, PackedFile) and file.begins_as(seen) and _may_be(file, seen, names):
                file.taken_for(seen)
                yield file
                return
    yield None


def _candidates(folders: Folders, names: Sequence[str]) -> list[str]:
    beside = [path for name in names for path in folders.beside(name)]
    return [path for path in dict.fromkeys([*beside, *folders.matches()]) if _is_named(path, names)]


def _may_be(file: PackedFile, seen: Evidence | Former, names: Sequence[str]) -> bool:
    """Whether all that was seen of the log is in the file, or in as much of it as has been written."""
    if not _is_named(file.path, names) or (file.born and seen.born and file.born < seen.born):
        return False
    later_ns = file.status().st_mtime_ns - seen.written
    if later_ns < -_SECOND_NS or (later_ns > _SECOND_NS and not _is_named(file.path, names, grown=True)):
        return False
    planned = seen.planned_end if isinstance(seen, Evidence) else 0
    if not file.reaches(max(seen.offset, planned)):
        return not file.is_whole()
    if file.tail(seen.offset, seen.tail_bytes) != seen.tail and seen.tail_bytes:
        return False
    return not planned or file.tail(planned, min(TAIL_BYTES, planned)) == _planned_tail(seen)


def _planned_tail(seen: Evidence | Former) -> str:
    return seen.planned_tail if isinstance(seen, Evidence) else ""


def _seen(position: Position | None) -> Iterator[Evidence | Former]:
    evidence = position.evidence if position else {}
    if seen := Evidence.of(evidence):
        yield seen
    yield from Past.of(evidence).former


def _names(key: str, seen: Evidence | Former) -> tuple[str, ...]:
    """Paths under which the log was."""
    folder, own = os.path.split(os.path.realpath(key))
    if isinstance(seen, Evidence):
        return tuple(dict.fromkeys((seen.path, key, os.path.join(folder, own))))
    return tuple(dict.fromkeys((os.path.join(seen.folder or folder, own), key, os.path.join(folder, own))))


def _is_named(path: str, names: Sequence[str], *, grown: bool = False) -> bool:
    """Whether a log of these names may be called so when it is rotated and compressed. One that only differs in a
    number may be the next file of the kind (`day-1.csv`, `day-2.csv`): not if it was written since (`grown`)."""
    name = os.path.basename(without_ending(path))
    return any(_is_rotated(name, os.path.basename(one), grown=grown) for one in names)


def _is_rotated(name: str, own: str, *, grown: bool) -> bool:
    addition, scheme = Addition.of_name(name, own), Scheme.learnt(own, [])
    usual = addition is not None and addition.is_usual()
    return name == own or usual or (not grown and scheme is not None and scheme.numbers(name) is not None)
