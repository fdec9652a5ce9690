"""Where reading goes on in a file that may have been renamed, cut, replaced or deleted since (delivery rule 15).

A partition is a path; its incarnations are the files that were at that path, one after the other, or to which it led.
Called by the driver before each plan. Reads a few kilobytes of each file, changes nothing. Every way to lose lines
becomes a gap; one that is empty says that a file has gone of which everything was read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Gap, Position
from connect_core.systems.file.compressed import find_compressed
from connect_core.systems.file.content import require_lines
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.former import Owners, behind, left_at, looked_after, owns_named, without
from connect_core.systems.file.identity import NO_PAST, Evidence, FileLook, FileVerdict, OpenFile, Past
from connect_core.systems.file.last import LastFiles
from connect_core.systems.file.packed import was_readable
from connect_core.systems.file.succession import Behind, Left, missed, next_file, undecided

_REASONS = {FileVerdict.SHORTER: "truncated", FileVerdict.DIFFERENT: "replaced", FileVerdict.OTHER: "replaced"}

ENDED = "ended"
"""The reason of a gap without records: a file has gone of which everything was read."""

PERHAPS_READ = (
    "It may be a log that was read before it was compressed, or another one with the same lines. It is read from its"
    " beginning, so its lines may be in the target twice"
)
"""What is noticed where a file begins of which nobody can say whether it was read."""

Heights = dict[tuple[int, int, int], int]
"""By device, inode and birth: the most that a file was seen to hold."""


@dataclass(frozen=True)
class Ways:
    """How files are read, as the document has it, and what this process has seen of them before."""

    quiet_s: float
    binary: bool
    heights: Heights
    last: LastFiles


class Rotation:
    """One look at the files of one plan. `begun` is what all partitions have read or are about to read, those of other
    tasks too: a renamed file that the pattern matches under its new name belongs to the partition that has begun it."""

    def __init__(self, folders: Folders, begun: Sequence[tuple[Partition, Position | None]], ways: Ways) -> None:
        self._folders, self._ways = folders, ways
        self._owners = Owners(folders, begun)

    def bounds(self, partition: Partition, position: Position | None) -> Bounds:
        there = self._bounds(partition, position)
        later = self._ways.last.is_passed(self._folders, partition, there)
        return replace(there, later=later, chosen=_must_be_kept(there, position))

    def _bounds(self, partition: Partition, position: Position | None) -> Bounds:
        place = position or Position(0, 0)
        seen = Evidence.of(place.evidence)
        with ExitStack() as files:
            current = self._file_at(partition, files)
            past, gaps = looked_after(self._folders, Past.of(place.evidence), partition.key, current)
            if seen is None:
                return _with(self._unidentified(partition, place, current, past), gaps)
            verdict = current.verdict(seen) if current else None
            if current and verdict is FileVerdict.SAME:
                return _with(self._growing(place, current, past), gaps)
            moved = files.enter_context(find_file(self._folders, seen, partition.key))
            if moved:
                return _with(self._after_rename(partition, replace(seen, past=past), place, moved, current), gaps)
            if not (place.offset or was_readable(seen)):
                return _with(self._unidentified(partition, place, current, past), gaps)
            cut = files.enter_context(_find_cut(self._folders, seen, partition.key))
            if cut and verdict in (None, FileVerdict.OTHER):
                lost = Gap(place.incarnation, place.offset, None, _REASONS[FileVerdict.SHORTER])
                return _with(self._left(cut, place.incarnation + 1, 0, past), (*gaps, lost))
            return _with(self._after_end(partition, replace(seen, past=past), place, current, verdict), gaps)

    def knows(self, file: OpenFile) -> bool:
        """Whether a partition reads it, or has read it."""
        return self._owners.of(file) is not None

    def owner(self, file: OpenFile, asking: Partition) -> Partition:
        """Who reads it or has read it: the one that is asking, if nobody has begun it or taken it in this look."""
        return self._owners.owner(file, asking)

    def quiet(self, file: OpenFile) -> bool:
        """Whether nobody has written to a renamed file for long enough. The clock that set its time may be another
        host's, and somewhat ahead. A time that is further in the future says nothing, and counts as quiet."""
        return abs(time.time() - file.status().st_mtime) >= self._ways.quiet_s

    def known_end(self, place: Position, seen: Evidence | None) -> int | None:
        """Of a file that has gone: the position when all that was ever seen of it was read; else nobody knows."""
        if seen is None or seen.size < 0:
            return None
        held = max(seen.size, seen.planned_end, self._ways.heights.get((seen.dev, seen.ino, seen.born), 0))
        return place.offset if place.offset >= held else None

    def look(self, file: OpenFile, begin: int) -> FileLook:
        """What the file holds from `begin` on. Raises ContentRefused for a file that is begun and has no lines, and for
        a damaged one."""
        look = file.look(begin)
        self._ways.heights[file.dev, file.ino, file.born] = look.size
        if begin == 0:
            require_lines(file, binary=self._ways.binary)
        return look

    def _after_end(
        self,
        partition: Partition,
        seen: Evidence,
        place: Position,
        current: OpenFile | None,
        verdict: FileVerdict | None,
    ) -> Bounds:
        """Behind a file that is gone. That nothing of it is lost is told and settled first: then a person may answer
        what is asked next also when another file is at the path by then."""
        gone, anew = self._gone(partition, seen, place, current, verdict), place.incarnation + 1
        read, past = Behind(partition.key, behind(seen, seen.past, place), seen.path), seen.past
        # It may come back, as when its volume was not there for a while.
        if seen.head_bytes and verdict in (None, FileVerdict.OTHER):
            past = read.read
            if current is None and not gone.loses and not seen.finished:
                return self._begun(anew, None, past, gone)
        past, perhaps = self._missed(read, place, current, past)
        if gone.loses:
            perhaps = tuple(replace(gone, reason=_both(gone, asked)) for asked in perhaps)
        return self._begun(anew, current, past, *(perhaps or (gone,)))

    def _gone(
        self,
        partition: Partition,
        seen: Evidence,
        place: Position,
        current: OpenFile | None,
        verdict: FileVerdict | None,
    ) -> Gap:
        """One that another took the place of may have grown before that, unless it was seen to be left. A partition to
        which files belong that the pattern names does not end."""
        end = self.known_end(place, seen) if current is None or seen.finished else None
        reason = ENDED if end is not None else _REASONS[verdict] if verdict else "deleted"
        if end is not None and (current or owns_named(self._folders, seen.past, partition.key)):
            return Gap(place.incarnation, place.offset, end, "deleted after it was read", warns=True)
        return Gap(place.incarnation, place.offset, end, reason)

    def _missed(
        self, read: Behind, place: Position, before: OpenFile | None, past: Past, *, late: bool = True
    ) -> tuple[Past, tuple[Gap, ...]]:
        """Behind a file that was read others may have been at the path: a person has to say whether they were. Once
        that is settled, those made before the last of them are asked about no more."""
        between = missed(self._folders, read, before.made if before else 0, self.knows, late=late)
        if not between:
            return past, ()
        last = replace(between[-1].unread, incarnation=place.incarnation)
        gap = Gap(place.incarnation, place.offset, None, undecided(between[0].path, compressed=between[0].compressed))
        return replace(past, former=(*past.former, last)), (gap,)

    def _file_at(self, partition: Partition, files: ExitStack) -> OpenFile | None:
        """The file at the partition's path, unless another partition has begun it, or begins it, under another name."""
        file = self._folders.at(partition.key)
        if file is None:
            return None
        files.enter_context(file)
        if not self._owners.take(file, partition):
            return None
        self._ways.last.at_path(partition, file)
        return file

    def _after_rename(
        self, partition: Partition, seen: Evidence, place: Position, moved: OpenFile, current: OpenFile | None
    ) -> Bounds:
        """Reads the rest of a renamed file; once it is read and left alone, the file that followed it. A file that was
        empty when it was seen last may be another partition's under its new name: nothing in it says whose it is."""
        past, anew = seen.past, place.incarnation + 1
        unsure = not (seen.head_bytes or seen.born) and moved.size() > 0  # an inode alone: another file may have it now
        if not (unsure and self._folders.names(moved.path)) and self._owners.take(moved, partition):
            if unsure:
                asked = Gap(place.incarnation, place.offset, None, undecided(moved.path))
                return self._begun(anew, current, past, asked)
            rest = self._left(moved, place.incarnation, place.offset, past)
            now = Evidence.of(rest.evidence)
            if rest.end > place.offset or now is None or not now.finished:
                return rest
            seen = replace(now, past=past) if not seen.packed and not moved.may_be_followed else seen
            past = behind(seen, past, place)
        following = next_file(self._folders, Left(moved, partition.key, seen.path), current, self.knows)
        if following.undecided:
            lost = Gap(place.incarnation, place.offset, None, undecided(following.undecided))
            return self._begun(anew, current, past, lost)
        with self._folders.opened(following.path) if following.path else nullcontext() as between:
            read = Behind(partition.key, past, moved.path, moved)
            if between:
                self._owners.take(between, partition)
            past, perhaps = self._missed(read, place, between or current, past, late=between is None)
            if between:
                return _with(self._left(between, anew, 0, past), perhaps)
            if current or perhaps:
                return self._begun(anew, current, past, *perhaps)
            return _at_end(place, seen)

    def _left(self, file: OpenFile, incarnation: int, begin: int, past: Past) -> Bounds:
        """Of a file that was renamed: to its end when it was left alone, else its whole lines."""
        quiet = file.may_be_followed and self.quiet(file)
        look = self.look(file, begin)
        finished = look.complete or quiet
        end = look.size if finished else look.lines
        evidence = file.evidence(begin, end, size=look.size, finished=finished, past=past).as_json()
        waiting = 0 if look.partial else max(look.size - end, 0)
        return Bounds(incarnation, begin, 0, end, evidence, grows=False, waiting=waiting, partial=look.partial)

    def _unidentified(self, partition: Partition, place: Position, current: OpenFile | None, past: Past) -> Bounds:
        """A partition whose file was never looked at: new, or moved there by a person, or its file had gone and may be
        back."""
        read = Behind(partition.key, past if place.offset == 0 else NO_PAST, partition.key)
        past, perhaps = self._missed(read, place, current, past)
        if perhaps:
            return self._begun(place.incarnation + 1, current, past, *perhaps)
        if current is None:
            return Bounds(place.incarnation, place.offset, 0, place.offset, past.as_json(), grows=False)
        if not current.reaches(place.offset):
            lost = Gap(place.incarnation, place.offset, None, "truncated")
            return self._begun(place.incarnation + 1, current, past, lost)
        if place.offset == 0 and left_at(past, current):
            return self._begun(place.incarnation + 1, current, past)
        there = self._growing(place, current, past)
        if place.offset == 0 and self._owners.is_doubtful(current):
            return _with(there, (Gap(place.incarnation, 0, 0, PERHAPS_READ, warns=True),))
        return there

    def _growing(self, place: Position, current: OpenFile, past: Past) -> Bounds:
        if not current.may_be_followed:
            return self._left(current, place.incarnation, place.offset, past)
        look = self.look(current, place.offset)
        evidence = current.evidence(place.offset, look.lines, size=look.size, past=past).as_json()
        named = bool(look.lines or not current.born)  # what is followed before it has a name would be written without
        waiting = look.size - look.lines
        return Bounds(place.incarnation, place.offset, 0, look.lines, evidence, grows=named, waiting=waiting)

    def _begun(self, incarnation: int, current: OpenFile | None, past: Past, *gaps: Gap) -> Bounds:
        """The file at the path, from its beginning; one that a link leads to again, from where it was left."""
        if current is None:
            return Bounds(incarnation, 0, 0, 0, past.as_json(), gaps, grows=False)
        place = Position(incarnation, left_at(past, current))
        return replace(self._growing(place, current, without(past, current)), gaps=gaps)


@contextmanager
def find_file(folders: Folders, seen: Evidence, path: str) -> Iterator[OpenFile | None]:
    """The file that was seen: under another name, grown or not, or compressed."""
    with find_moved(folders, seen, path) as moved:
        if moved is not None:
            yield moved
            return
    with find_compressed(folders, seen, path) as packed:
        yield packed


def find_moved(folders: Folders, seen: Evidence, path: str) -> AbstractContextManager[OpenFile | None]:
    """The file that was seen, under another name, grown or not."""
    return folders.moved(seen.ino, (seen.path, path), lambda file: file.verdict(seen) is FileVerdict.SAME)


def _find_cut(folders: Folders, seen: Evidence, path: str) -> AbstractContextManager[OpenFile | None]:
    """The file that was seen, cut and then renamed: what came after the cut was read by nobody. Only its birth tells it
    from another file to which its inode was given. One that the pattern names is another partition's."""

    def is_it(file: OpenFile) -> bool:
        return bool(file.born and seen.born) and file.is_as(seen) and not folders.names(file.path)

    return folders.moved(seen.ino, (seen.path, path), is_it)


def _must_be_kept(there: Bounds, position: Position | None) -> bool:
    """Whether a log is seen first, or begins anew with a file of which nothing can be read yet: when that is renamed,
    only what is kept of it now says that it was this log. What follows a gap is kept with that. Of what can be read
    behind another file, that one leads to it."""
    now = Evidence.of(there.evidence)
    if now is None or there.gaps:
        return False
    before = Evidence.of(position.evidence) if position else None
    if before is None:
        return True
    return there.end == there.begin and (now.dev, now.ino, now.born) != (before.dev, before.ino, before.born)


def _with(bounds: Bounds, gaps: tuple[Gap, ...]) -> Bounds:
    return replace(bounds, gaps=(*gaps, *bounds.gaps))


def _both(gone: Gap, asked: Gap) -> str:
    """The reason of a gap that nothing closes: what is asked can still be answered before."""
    return f"{gone.reason}; before you accept that: {asked.reason}"


def _at_end(place: Position, seen: Evidence) -> Bounds:
    return Bounds(place.incarnation, place.offset, 0, place.offset, seen.as_json(), grows=False)
