"""Which compressed file is a log that was read, wholly or in part, before it was compressed (delivery rule 15).

Compression makes another file: its inode, birth and name are new. What is in it is not: it begins as the log did, and
has before the place that was read what the log had there. Equal files are made by others, too (exports without rows);
so the name has to be one that compression and rotation give to that log, and it bears the time of the log's last write
or a later one. Where the log is still there, only its own name with an ending counts: that is how it is compressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import NamedTuple

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Position
from connect_core.systems.file.copies import is_distinct
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.identity import TAIL_BYTES, Evidence, Former, OpenFile, Past
from connect_core.systems.file.packed import PackedFile
from connect_core.systems.file.patterns import Addition, Scheme, without_ending

_SECOND_NS = 1_000_000_000
"""Some programs keep times by the second."""
_DATE_DIGITS = 6
"""A number with so many digits is a date, or a time."""


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
        """Who has read the log that this file is, or may be once it is whole; or of which it is one more copy. Where
        nobody can say which of several a log is that is being read, a person is asked, and none of them is begun as
        another log meanwhile."""
        perhaps = None
        for one, is_it in self._that_may_be(file):
            if is_it:
                return one.partition
            if isinstance(one.seen, Evidence):
                perhaps = perhaps or one.partition
        return perhaps

    def is_doubtful(self, file: OpenFile) -> bool:
        """Whether it may be a log that was read before the present one, or another that holds the same."""
        return any(is_it is None for _, is_it in self._that_may_be(file))

    def _that_may_be(self, file: OpenFile) -> Iterator[tuple[_Read, bool | None]]:
        """What was read and may be this file; with None where nobody can say whether it is."""
        if not isinstance(file, PackedFile):
            return
        for count in sorted({count for count, _ in self._by_head}):
            for one in self._by_head.get((count, file.head(count)), ()):
                if self._there_or_gone(file, one) and _may_be(file, one.seen, one.names):
                    is_it = self._is_it(file, one)
                    if is_it is not False:
                        yield one, is_it

    def _there_or_gone(self, file: PackedFile, one: _Read) -> bool:
        """Whether the log is gone; or is there still, and this is what it is compressed to."""
        near = (*one.names, file.path)
        with self._folders.moved(one.seen.ino, near, lambda other: _is_plain(other, one.seen)) as log:
            return log is None or without_ending(file.path) == log.path

    def _is_it(self, file: PackedFile, one: _Read) -> bool | None:
        """False for one that another log has left, though it may be this one by all that was seen. None where nobody
        can say which of several it is."""
        with ExitStack() as files:
            there = _all_that_may_be(self._folders, one.seen, one.names, files)
            chosen = _chosen(there, one.seen)
            return None if chosen is None else chosen.is_as(file) or _is_copy(chosen, file)


def _is_plain(file: OpenFile, seen: Evidence | Former) -> bool:
    return not isinstance(file, PackedFile) and file.is_as(seen) and file.begins_as(seen)


@contextmanager
def find_compressed(folders: Folders, seen: Evidence | Former, key: str) -> Iterator[PackedFile | None]:
    """What became of a file that was read and is gone: the compressed one, whole or still being written. None where
    several may be it and nothing says which."""
    with ExitStack() as files:
        there = _all_that_may_be(folders, seen, _names(key, seen), files)
        if (chosen := _chosen(there, seen)) is not None:
            chosen.taken_for(seen)
        yield chosen


def _all_that_may_be(
    folders: Folders, seen: Evidence | Former, names: Sequence[str], files: ExitStack
) -> list[PackedFile]:
    """Open until `files` are closed; each log once, however it is compressed."""
    found: dict[str, PackedFile] = {}
    for path in _candidates(folders, names) if seen.head_bytes and not seen.packed else ():
        file = files.enter_context(folders.opened(path))
        if isinstance(file, PackedFile) and file.begins_as(seen) and _may_be(file, seen, names):
            found.setdefault(without_ending(path), file)
    return [*found.values()]


def _chosen(there: Sequence[PackedFile], seen: Evidence | Former) -> PackedFile | None:
    """Which of them is the log: the one that bears the time of its last write; else the oldest one, where it was
    written to since. What has equal lines, or one line, may be another log that holds the same and no more."""
    exact = [file for file in there if abs(_later_ns(file, seen)) <= _SECOND_NS]
    if len(exact) == 1:
        return exact[0]
    if len(there) > 1 and not _is_order_known(there):
        return None
    if any(not _has_grown(file, seen) and not is_distinct(file, seen.offset) for file in there):
        return None
    return min(there, key=lambda file: file.status().st_mtime_ns, default=None)


def _is_order_known(there: Sequence[PackedFile]) -> bool:
    """Whether their times tell which is older, and numbers at the end of their names say the same."""
    by_age = sorted(there, key=lambda file: file.status().st_mtime_ns)
    times = [file.status().st_mtime_ns for file in by_age]
    numbers = [_rotations(file.path) for file in by_age]
    apart = all(later - earlier > _SECOND_NS for earlier, later in pairwise(times))
    return apart and all(one is None or other is None or one > other for one, other in pairwise(numbers))


def _rotations(path: str) -> int | None:
    """`app.log.2.gz` was rotated twice."""
    _, _, number = without_ending(path).rpartition(".")
    return int(number) if number.isdecimal() and len(number) < _DATE_DIGITS else None


def _has_grown(file: PackedFile, seen: Evidence | Former) -> bool:
    return not file.is_whole() or file.size() > seen.offset


def _is_copy(chosen: PackedFile, file: PackedFile) -> bool:
    """Whether both hold the same, as far as both of its ends say."""
    size = chosen.size()
    if file.size() != size or not is_distinct(chosen, size):
        return False
    return chosen.tail(size, min(TAIL_BYTES, size)) == file.tail(size, min(TAIL_BYTES, size))


def _candidates(folders: Folders, names: Sequence[str]) -> list[str]:
    beside = [path for name in names for path in folders.beside(name)]
    return [path for path in dict.fromkeys([*beside, *folders.matches()]) if _is_named(path, names)]


def _may_be(file: PackedFile, seen: Evidence | Former, names: Sequence[str]) -> bool:
    """Whether all that was seen of the log is in the file, or in as much of it as has been written."""
    if not _is_named(file.path, names) or (file.born and seen.born and file.born < seen.born):
        return False
    later_ns = _later_ns(file, seen)
    if later_ns < -_SECOND_NS or (later_ns > _SECOND_NS and not _is_named(file.path, names, grown=True)):
        return False
    planned = seen.planned_end if isinstance(seen, Evidence) else 0
    if not file.reaches(max(seen.offset, planned)):
        return not file.is_whole()
    if file.tail(seen.offset, seen.tail_bytes) != seen.tail and seen.tail_bytes:
        return False
    return not planned or file.tail(planned, min(TAIL_BYTES, planned)) == _planned_tail(seen)


def _later_ns(file: PackedFile, seen: Evidence | Former) -> int:
    """Than the log's last write, as it was seen."""
    return file.status().st_mtime_ns - seen.written


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
