"""Which file was at a path between the one that was read and the one that is there now (delivery rule 15).

Several rotations may lie between two plans. What came between is named as the rotation names the file that was seen to
move, was made after that and before the one that is there now, and is no copy of it. Where a symbolic link moved on, it
is a file to which the link may have led in between. A name alone says nothing: another program's log may be called so,
and people make copies, and clocks are set back. Where this does not decide it, nothing is read and nothing is passed
over: the caller is told which file it is.

Of a log that is gone, or that begins after it was gone, no file is there to tell the rotation's names from. Files that
were made since and have one of the usual names (`app.log.1`, `app-1.log`) may have been that log meanwhile. So may
those whose names only resemble that of a file that is there (`app-30-Nov.log` and `app-01-Dec.log`, `app.log.Mon` and
`app.log.Tue`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from connect_core.systems.file.content import compression
from connect_core.systems.file.copies import is_distinct, is_packed, kept_times, was_read
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.former import newest
from connect_core.systems.file.identity import HEAD_BYTES, TAIL_BYTES, Former, OpenFile, Past
from connect_core.systems.file.patterns import Addition, Scheme, without_ending

_BLOCK = 1024 * 1024
_SECOND_NS = 1_000_000_000
_LATE_NS = 60 * _SECOND_NS


@dataclass(frozen=True)
class Next:
    """The path of the next file; or, where that cannot be decided, of one that may be it; or neither."""

    path: str = ""
    undecided: str = ""


@dataclass(frozen=True)
class Left:
    """A file that was read to its end: `key` is the path of its log, `was` where it was when it was read."""

    file: OpenFile
    key: str
    was: str


def next_file(folders: Folders, left: Left, current: OpenFile | None, known: Callable[[OpenFile], bool]) -> Next:
    """What came between `left` and `current`; `known` are files that were read."""
    look = _renamed(folders, left, current) or (_linked(folders, left, current) if current else None)
    if look is None:
        return Next()
    later = list[tuple[int, int, Next]]()
    for path in look.paths:
        if look.name_fits(path) and not folders.names(path):
            with folders.opened(path) as file:
                if file is not None and not (_is_unreadable(file) or known(file)) and look.is_between(file):
                    judged = look.judged(file)
                    since = 0 if look.births_contradict(file) else file.made
                    later += [(since, file.status().st_mtime_ns, judged)] if judged else []
    return min(later, key=lambda one: one[:2])[2] if later else Next()


@dataclass(frozen=True)
class Missed:
    """A file that may have been a log while nobody looked. `unread` is what is kept of it: nothing of it was read."""

    path: str
    born: int
    unread: Former
    compressed: bool


@dataclass(frozen=True)
class Behind:
    """After what files may have been missed: those that were `read` of the log `key`. The last of them `was` at that
    path when it was seen last; `left` is that file, if it is there still."""

    key: str
    read: Past
    was: str
    left: OpenFile | None = None

    def own(self) -> str:
        return os.path.basename(self.key)

    def is_name(self, name: str) -> bool:
        """Whether the log's files may be named so. Beside one that rotation has named, others are named as it is."""
        addition = Addition.of_name(without_ending(name), self.own())
        like = Addition.of_name(os.path.basename(without_ending(self.was)), self.own())
        if addition is None or like is None:
            return addition is not None and addition.is_usual()
        return addition.may_go_with(like) or (self.left is None and addition.is_usual())

    def was_read(self, file: OpenFile) -> bool:
        """Whether all that it holds was read."""
        if was_read(file, self.read.former):
            return True
        left = self.left
        return left is not None and (is_packed(left, file) or (kept_times(file) and _begins(left, file)))


def missed(
    folders: Folders, behind: Behind, before: int, known: Callable[[OpenFile], bool], *, late: bool = True
) -> list[Missed]:
    """The files, by age, that may have been the log after those that were read, and before one that was made at
    `before` (0: nothing is at the path).

    What holds only what was read, as a copy of it that kept its times does, is none of them. Where the file system does
    not say when files were made, nobody can tell them from older ones: then none is found, nor for a link. `late`: one
    that is compressed may have been written to for a while when the next one was there.
    """
    since = newest(behind.read)
    if not since or os.path.islink(behind.key):
        return []
    place = os.path.join(os.path.realpath(os.path.dirname(behind.key)), behind.own())
    found = list[Missed]()
    for path in folders.beside(place, os.path.splitext(behind.own())[0]):
        if path == place or folders.names(path) or not behind.is_name(os.path.basename(path)):
            continue
        with folders.opened(path) as file:
            if file is None or not _was_between(file, since, before, late=late) or known(file):
                continue
            if not behind.was_read(file):
                found.append(Missed(path, file.made, _unread(file), _is_unreadable(file)))
    return sorted(found, key=lambda one: one.born)


def undecided(path: str, *, compressed: bool = False) -> str:
    """The reason of a gap: what a person is asked."""
    unpack = "decompress it, remove the compressed file, and name the other one" if compressed else "name it"
    return (
        f"{path} may be the file that came next, or not: if it is not, move it to another folder; if it is, {unpack} in"
        " the source's path"
    )


def _was_between(file: OpenFile, since: int, before: int, *, late: bool) -> bool:
    """A compressed file bears the times of its log: what was written last before `since` did not come after that."""
    late_ns = _LATE_NS if late and not file.may_be_followed else 0
    if not since < file.born or 0 < before <= file.made - late_ns or not file.size():
        return False
    return file.status().st_mtime_ns >= since or not compression(file)


def _is_unreadable(file: OpenFile) -> bool:
    """Whether it is compressed in a way that is not read."""
    return file.may_be_followed and bool(compression(file))


def _unread(file: OpenFile) -> Former:
    """Without a head: it is never taken for a file that was read, should somebody name it in the source's path; and
    nobody is told what is written to it later, as it may be another program's."""
    return Former(0, file.dev, file.ino, 0, "", file.size(), file.born, folder=os.path.dirname(file.path))


def _renamed(folders: Folders, left: Left, current: OpenFile | None) -> _Look | None:
    """None where nothing in the name of the file changes from one rotation to the next, or where it was no rotation."""
    own = [left.key, os.path.realpath(left.key), *([left.was] if left.was != left.file.path else [])]
    scheme = Scheme.learnt(os.path.basename(without_ending(left.file.path)), [os.path.basename(path) for path in own])
    by_link = os.path.realpath(left.key) != left.key and left.was == left.file.path
    if scheme is None or (scheme.of == "other" and by_link):
        return None
    return _Look(scheme, folders.beside(left.file.path), left.file, current)


def _linked(folders: Folders, left: Left, current: OpenFile) -> _Look | None:
    """Where the link led from one file to another whose path differs in one part: whatever differs there, too."""
    before, now = left.file.path.split("/"), current.path.split("/")
    parts = [number for number, (one, other) in enumerate(zip(before, now, strict=False)) if one != other]
    if len(before) != len(now) or len(parts) != 1:
        return None
    part = parts[0]
    scheme = Scheme.learnt(before[part], [])
    if scheme is None or scheme.numbers(now[part]) is None:
        return None
    others = folders.entries("/".join(before[:part]) or "/")
    paths = ["/".join([*before[:part], name, *before[part + 1 :]]) for name in others]
    return _Look(scheme, filter(os.path.isfile, paths), left.file, current, part)


class _Look:
    """What is known of the two files between which others are looked for. `part` is the part of the path in which the
    files differ to which a link led; None where files were renamed."""

    def __init__(
        self, scheme: Scheme, paths: Iterable[str], left: OpenFile, current: OpenFile | None, part: int | None = None
    ) -> None:
        self.paths = paths
        self._scheme, self._left, self._current, self._part = scheme, left, current, part
        self._from = self._numbers(left.path)
        self._to = self._numbers(current.path) if current and part is not None else None

    def _numbers(self, path: str) -> tuple[int, ...] | None:
        return self._scheme.numbers(without_ending(path.split("/")[-1 if self._part is None else self._part]))

    def name_fits(self, path: str) -> bool:
        """A link is not known to have led anywhere but between its two ends."""
        numbers = self._numbers(path)
        if numbers is None or self._from is None or self._to is None:
            return numbers is not None
        return min(self._from, self._to) < numbers < max(self._from, self._to)

    def is_between(self, file: OpenFile) -> bool:
        """Made after the first, as far as births are known; else written after it."""
        if not file.size() or any(file.is_as(other) for other in (self._left, self._current) if other):
            return False
        if not (file.born and self._left.born):
            return file.status().st_mtime_ns >= self._left.status().st_mtime_ns
        return self._left.made <= file.made or self._clock_went_back()

    def births_contradict(self, file: OpenFile) -> bool:
        """Made before the file that it may follow, or after the one that is there now: a copy, or the clock went back
        between two rotations."""
        if not (file.born and self._left.born):
            return False
        return file.made < self._left.made or bool(self._current and 0 < self._current.born < file.made)

    def _clock_went_back(self) -> bool:
        """While the first file was written, or before the one that is there now was made."""
        written_before_made = self._left.status().st_mtime_ns < self._left.made
        return written_before_made or bool(self._current and 0 < self._current.born < self._left.made)

    def judged(self, file: OpenFile) -> Next | None:
        """None for a copy of one of the two. A copy that did not keep its times looks like a log of equal lines."""
        if not file.may_be_followed:
            return self._judged_packed(file)
        copied = kept_times(file)
        same = _begins(self._left, file)
        if copied and (same or (self._current is not None and _begins(self._current, file))):
            return None
        unsure = copied or same or self.births_contradict(file) or self._may_be_foreign(file)
        return Next(undecided=file.path) if unsure else Next(path=file.path)

    def _judged_packed(self, file: OpenFile) -> Next | None:
        """A compressed file bears the time of the log's last write, whether it is a copy or not. What may be in another
        log, too, is a copy only under the log's own name."""
        written, name = file.status().st_mtime_ns, without_ending(file.path)
        same, distinct = _begins(self._left, file), is_distinct(file, file.size())
        at_once = abs(written - self._left.status().st_mtime_ns) <= _SECOND_NS
        if same and (name == without_ending(self._left.path) or (at_once and distinct)):
            return None
        current = self._current
        if current and 0 < current.born <= written and (distinct or name == current.path) and _begins(current, file):
            return None
        unsure = same or self.births_contradict(file) or self._may_be_foreign(file)
        return Next(undecided=file.path) if unsure else Next(path=file.path)

    def _may_be_foreign(self, file: OpenFile) -> bool:
        """A higher number beside a name that is not wholly the log's own: newer, or another program's."""
        counted = self._part is None and self._scheme.of != "name" and self._scheme.counts()
        numbers = self._numbers(file.path)
        return counted and numbers is not None and self._from is not None and numbers > self._from


def _begins(whole: OpenFile, file: OpenFile) -> bool:
    """Whether `whole` begins with all of `file`. Reads all of it only where both of its ends are there."""
    size = file.size()
    if size > whole.size():
        return False
    ends = min(HEAD_BYTES, size), min(TAIL_BYTES, size)
    if whole.head(ends[0]) != file.head(ends[0]) or whole.tail(size, ends[1]) != file.tail(size, ends[1]):
        return False
    blocks = range(0, size, _BLOCK)
    return all(whole.bytes_at(at, min(_BLOCK, size - at)) == file.bytes_at(at, min(_BLOCK, size - at)) for at in blocks)
