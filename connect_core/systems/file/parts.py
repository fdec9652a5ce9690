"""Parts of one large file, read side by side: where they begin and end, and where reading goes on in each.

A part is a partition `PATH#BEGIN-END@INODE.N.FINGERPRINT` (the fingerprint is of the file's first N bytes). Parts are
fixed when a file is first seen and belong to that file for ever, under whatever name; the last one is open and takes
what is appended. A file that takes the place of another gets parts of its own. One that was cut, or that got the inode
of another, and begins as the parts' file did cannot be told from it by a key: the open part reads it from its start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from connect_core.errors import WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Gap, Position
from connect_core.systems.file.folders import Folders, inode_of
from connect_core.systems.file.former import behind
from connect_core.systems.file.identity import HEAD_BYTES, NO_PAST, Evidence, FileVerdict, OpenFile
from connect_core.systems.file.rotation import ENDED, Rotation
from connect_core.systems.file.succession import Behind, missed, undecided

_KEY = re.compile(
    r"(?P<path>.*)#(?P<begin>\d+)-(?P<end>\d*)@(?P<ino>\d+)\.(?P<n>\d+)\.(?P<head>[0-9a-f]{16})", re.DOTALL
)

_OVER = "over"
"""Beside the evidence of a part whose file is gone."""
_ELSEWHERE = "elsewhere"
"""Instead of evidence of a part whose file another partition has."""


@dataclass(frozen=True)
class FilePart:
    """`end` is None for the open part. `head` is the fingerprint of the file's first `head_bytes`."""

    path: str
    begin: int
    end: int | None
    ino: int
    head_bytes: int
    head: str

    @classmethod
    def of(cls, partition: Partition) -> FilePart | None:
        """None when the partition is a whole file."""
        found = _KEY.fullmatch(partition.key)
        if found is None:
            return None
        end = int(found["end"]) if found["end"] else None
        return cls(found["path"], int(found["begin"]), end, int(found["ino"]), int(found["n"]), found["head"])

    def partition(self) -> Partition:
        end = "" if self.end is None else self.end
        return Partition(f"{self.path}#{self.begin}-{end}@{self.ino}.{self.head_bytes}.{self.head}")

    def is_of(self, file: OpenFile) -> bool:
        return file.ino == self.ino and file.head(self.head_bytes) == self.head

    def claims(self, file: OpenFile, folders: Folders) -> bool:
        """Whether the file counts as the one of the part. Of two file systems both may have one of this inode and this
        beginning, as volumes that were cloned: it is the one at the part's path, or beside that."""
        return self.is_of(file) and (file.path == self.path or not self._has_another(file, folders))

    def _has_another(self, file: OpenFile, folders: Folders) -> bool:
        for path in (self.path, *folders.beside_with(self.ino, self.path)):
            with suppress(WaybillError), folders.opened(path) as other:
                if other is not None and other.dev != file.dev and self.is_of(other):
                    return True
        return False


def split_points(next_line: Callable[[int], int], end: int, step_bytes: int) -> list[int]:
    """Where the parts of [0, end) begin: 0, then every line that begins at or behind a multiple of `step_bytes`.

    `next_line(offset)` is the place behind the first line feed at or after `offset`, or `end`.
    """
    points = [0]
    for target in range(step_bytes, end, step_bytes):
        if target > points[-1]:
            point = next_line(target - 1)
            if points[-1] < point < end:
                points.append(point)
    return points


def parts_of(file: OpenFile, path: str, step_bytes: int) -> list[FilePart]:
    """The parts of a file seen for the first time. One without a whole line has one, which says nothing of how it
    begins: it is kept with its position when the file was made."""
    end = file.end_of_lines(0) if file.may_be_followed else file.look(0).lines
    head_bytes = min(HEAD_BYTES, end)
    head = file.head(head_bytes)
    step_bytes = step_bytes if file.may_be_followed else max(step_bytes, end)  # who reads a later part reads it all
    begins = split_points(lambda offset: file.next_line(offset, end), end, step_bytes)
    ends: list[int | None] = [*begins[1:], None]
    return [FilePart(path, *span, file.ino, head_bytes, head) for span in zip(begins, ends, strict=True)]


def parts_now(
    paths: Sequence[str], known: Sequence[Partition], step_bytes: int, folders: Folders
) -> Iterator[Partition]:
    """The parts of every file that none of the known partitions covers already. One that cannot be opened, or is where
    no file may be, is whole: it is refused by name, and read in one part when it can be."""
    parts = [part for partition in known if (part := FilePart.of(partition))]
    whole = {partition.key for partition in known if FilePart.of(partition) is None}
    for path in paths:
        if not folders.holds(path) and path not in whole:
            yield Partition(path)
            continue
        try:
            file = None if path in whole else folders.open_if_there(path)
        except WaybillError:
            if not _may_be_known(path, parts):
                yield Partition(path)
            continue
        if file is None:
            continue
        with file:
            if not any(part.claims(file, folders) for part in parts):
                new = parts_of(file, path, step_bytes)
                parts += new  # it may have another name further on
                yield from (part.partition() for part in new)


def _may_be_known(path: str, parts: Sequence[FilePart]) -> bool:
    """Of a file that cannot be opened."""
    ino = inode_of(path)
    return any(part.path == path or part.ino == ino for part in parts)


def covered(path: str, known: Sequence[Partition], folders: Folders) -> bool:
    """Whether the file at `path` is read in parts already."""
    parts = [part for partition in known if (part := FilePart.of(partition))]
    file = folders.open_if_there(path) if parts else None
    if file is None:
        return False
    with file:
        return any(part.claims(file, folders) for part in parts)


class PartBounds:
    """One look at the parts of one plan. `begun` is what all partitions have read or are about to read."""

    def __init__(
        self, folders: Folders, rotation: Rotation, begun: Sequence[tuple[Partition, Position | None]]
    ) -> None:
        self._folders = folders
        self._rotation = rotation
        parts = [(part, position) for one, position in begun if (part := FilePart.of(one))]
        self._open = [(_is_over(position), part) for part, position in parts if part.end is None]
        self._births = {(part.path, seen.born) for part, position in parts if (seen := _seen(position))}

    def bounds(self, partition: Partition, part: FilePart, position: Position | None) -> Bounds:
        if position is not None and _ELSEWHERE not in position.evidence:
            return self._bounds(part, position)
        return self._elsewhere(part, position) or self._bounds(part, None)

    def _elsewhere(self, part: FilePart, position: Position | None) -> Bounds | None:
        """Nothing, of a file that another partition has: one that is a whole file, begun before the document was
        `parallel` or while it could not be opened, has its file under any name. That it was so is kept for when the
        file is gone. None where it is not."""
        with ExitStack() as files:
            file = self._standing(part, files)
            if file and _all_of(FilePart.of(self._rotation.owner(file, part.partition()))) == _all_of(part):
                return None
            if file is None and position is None:
                return None
        place = Position(0, part.begin, {_ELSEWHERE: True})
        return replace(_nothing(part, place), chosen=position is None)

    def _standing(self, part: FilePart, files: ExitStack) -> OpenFile | None:
        """Its file, wherever it is."""
        file = self._folders.open_if_there(part.path)
        if file and part.is_of(files.enter_context(file)):
            return file
        return files.enter_context(self._folders.moved(part.ino, (part.path,), part.is_of))

    def _bounds(self, part: FilePart, position: Position | None) -> Bounds:
        place, over = position or Position(0, part.begin), _is_over(position)
        if place.offset == part.end or (over and part.end is not None):  # read to its end: its file may go
            return _nothing(part, place)
        found = self._found(part, place)
        found = self._anew(part, place) if over and found.gaps else found
        return found if part.end is not None or found.end > found.begin else self._asking(part, place, found)

    def _asking(self, part: FilePart, place: Position, found: Bounds) -> Bounds:
        """Nothing more is to be read of an open part. When its file has left the path, others may have been there
        before the next one that has parts: a person says whether they were."""
        seen = _seen(place)
        if (
            found.grows or seen is None or any(gap.loses for gap in found.gaps)
        ):  # it grows where it was: nothing came next
            return found
        with self._folders.opened(part.path) as current:
            if current is not None and part.is_of(current):
                return found
            births = [born for path, born in self._births if path == part.path and born > seen.born]
            before = min([*births, *([current.born] if current else [])], default=0)
            last = Evidence.of(found.evidence) or seen
            read = Behind(part.path, behind(seen, seen.past, place), last.path)
            between = missed(self._folders, read, before, self._knows)
        if not between:
            return found
        past = replace(seen.past, former=(*seen.past.former, between[-1].unread))
        gap = Gap(place.incarnation, place.offset, None, undecided(between[0].path, compressed=between[0].compressed))
        evidence = {**found.evidence, **past.as_json()}
        return replace(found, incarnation=place.incarnation + 1, evidence=evidence, gaps=(gap,), grows=False)

    def _knows(self, file: OpenFile) -> bool:
        return self._rotation.knows(file) or any(part.is_of(file) for _, part in self._open)

    def _anew(self, part: FilePart, place: Position) -> Bounds:
        """Of an open part whose loss was told. A file that begins as its file did gets no parts of its own: it is read
        from its start, by one of those that claim it."""
        begin = Position(place.incarnation + 1, 0)
        with ExitStack() as files:
            file = self._claimed(part, Evidence.of(place.evidence), files)
            if file is None or min(self._claims(file), default=(part.partition(),))[-1] != part.partition():
                return _nothing(part, place)
            return self._readable(part, begin, file, renamed=file.path != part.path)

    def _claims(self, file: OpenFile) -> Iterator[tuple[bool, int, Partition]]:
        """Who reads what the open parts of several files claim: the first in this order."""
        return (
            (over, part.head_bytes, part.partition()) for over, part in self._open if part.claims(file, self._folders)
        )

    def _claimed(self, part: FilePart, seen: Evidence | None, files: ExitStack) -> OpenFile | None:
        """The file that begins as that of the part did, whatever became of it."""

        def is_it(file: OpenFile) -> bool:
            born = bool(seen and seen.born and file.is_as(seen) and file.born)
            return part.is_of(file) and (born or self._folders.names(file.path))

        file = self._folders.open_if_there(part.path)
        if file and part.is_of(files.enter_context(file)):
            return file
        return files.enter_context(self._folders.moved(part.ino, _paths(part, seen), is_it))

    def _found(self, part: FilePart, place: Position) -> Bounds:
        seen = Evidence.of(place.evidence)

        def is_it(file: OpenFile) -> bool:
            return part.is_of(file) and (file.verdict(seen) is FileVerdict.SAME if seen else _may_go_on(file, place))

        reason = "deleted"
        file = self._folders.open_if_there(part.path)
        if file is not None:
            with file:
                if is_it(file):
                    return self._readable(part, place, file, renamed=False)
                if not _was_left(seen, file):
                    reason = "truncated" if file.ino == part.ino and file.size() < place.offset else "replaced"
        with self._folders.moved(part.ino, _paths(part, seen), is_it) as moved:
            if moved:
                return self._readable(part, place, moved, renamed=True)
        with ExitStack() as files:
            claimed = self._claimed(part, seen, files) if reason == "deleted" else None
            if claimed and not _was_left(seen, claimed):
                reason = "truncated"
        end = self._rotation.known_end(place, seen) if reason == "deleted" and part.end is None else None
        return _lost(part, place, reason, end)

    def _readable(self, part: FilePart, place: Position, file: OpenFile, *, renamed: bool) -> Bounds:
        if part.end is not None and file.size() < part.end:
            return _lost(part, place, "truncated")
        look = self._rotation.look(file, place.offset)
        quiet = file.may_be_followed and renamed and self._rotation.quiet(file)
        finished = part.end is None and (look.complete or quiet)
        end = part.end or (look.size if finished else look.lines)
        seen = _seen(place)
        past = seen.past if seen else NO_PAST
        evidence = file.evidence(place.offset, end, size=look.size, finished=finished, past=past)
        grows = part.end is None and not renamed and bool(end or not file.born)  # not before it has a name
        waiting = max(look.size - end, 0) if part.end is None and not look.partial else 0
        oldest = 0 if place.incarnation else part.begin  # what is read anew is read from its start
        left = finished and not (seen and seen.finished)  # later nobody can see that it was
        kept = end == place.offset and (seen is None or left)
        found = evidence.as_json()
        there = Bounds(place.incarnation, place.offset, oldest, end, found, grows=grows, waiting=waiting, chosen=kept)
        return replace(there, grows=grows and file.may_be_followed, partial=look.partial)


def _all_of(part: FilePart | None) -> FilePart | None:
    """The same for all parts of one file; None for a whole file."""
    return part and replace(part, begin=0, end=None)


def _paths(part: FilePart, seen: Evidence | None) -> tuple[str, str]:
    return part.path, seen.path if seen else part.path


def _seen(position: Position | None) -> Evidence | None:
    return Evidence.of(position.evidence) if position else None


def _was_left(seen: Evidence | None, file: OpenFile) -> bool:
    """Whether its file was renamed and left alone before this one, another file, came to the path: nothing of it may
    have been lost with that."""
    return seen is not None and seen.finished and not file.is_as(seen)


def _is_over(position: Position | None) -> bool:
    return bool(position and position.evidence.get(_OVER))


def _nothing(part: FilePart, place: Position) -> Bounds:
    return Bounds(place.incarnation, place.offset, part.begin, place.offset, place.evidence, grows=False)


def _may_go_on(file: OpenFile, place: Position) -> bool:
    """Of a file of which nothing is kept but its beginning: whether a line begins there."""
    return file.end_of_lines(max(place.offset - 1, 0), place.offset) == place.offset


def _lost(part: FilePart, place: Position, reason: str, end: int | None = None) -> Bounds:
    """The file is gone, and nothing will follow it in this part, unless it comes back and the part is open: what was
    seen of it is kept for that. `end` is where it ended, if anybody knows."""
    gap = Gap(place.incarnation, place.offset, part.end or end, reason if end is None else ENDED)
    behind = place.offset if part.end is None else part.end
    evidence = place.evidence | {_OVER: True}
    return Bounds(place.incarnation + 1, behind, part.begin, behind, evidence, (gap,), grows=False)
