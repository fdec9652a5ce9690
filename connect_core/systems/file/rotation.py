"""Where reading goes on in a file that may have been renamed, cut, replaced or deleted since (delivery rule 15).

A partition is a path; its incarnations are the files that were at that path, one after the other. Called by the
driver before each plan. Reads a few kilobytes of each file, changes nothing. Every way to lose lines becomes a gap.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from connect_core.contracts import Bounds, Gap, Position
from connect_core.records import Partition
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.identity import Evidence, Former, OpenFile, Verdict, open_if_there

_REASONS = {Verdict.SHORTER: "truncated", Verdict.DIFFERENT: "replaced", Verdict.OTHER: "replaced"}


class Rotation:
    """One look at the files of one plan. `positions` are those of all partitions of the task: a renamed file that
    the pattern matches under its new name belongs to the partition that has begun it. (Other tasks are not seen: a
    connector with several tasks should not match the names of rotated files.)"""

    def __init__(self, folders: Folders, positions: Mapping[Partition, Position | None], quiet_s: float) -> None:
        self._folders = folders
        self._quiet_s = quiet_s
        self._owners = dict(_owners(positions))

    def bounds(self, partition: Partition, position: Position | None) -> Bounds:
        place = position or Position(0, 0)
        seen = Evidence.of(place.evidence)
        with ExitStack() as files:
            current = self._file_at(partition, files)
            if seen is None:
                return _unidentified(place, current)
            former, gaps = self._former(partition, seen)
            seen = replace(seen, former=former)
            verdict = current.verdict(seen) if current else None
            if current and verdict is Verdict.SAME:
                return replace(_growing(place, current, seen), gaps=gaps)
            moved = files.enter_context(find_moved(self._folders, seen, partition.key))
            if moved:
                return replace(self._after_rename(partition, place, seen, moved, current), gaps=gaps)
            lost = Gap(place.incarnation, place.offset, None, _REASONS[verdict] if verdict else "deleted")
            return _begun(place.incarnation + 1, current, former, (*gaps, lost))

    def quiet(self, file: OpenFile) -> bool:
        """Whether nobody has written to a renamed file for long enough. A time in the future counts as quiet."""
        return not 0 <= time.time() - file.status().st_mtime < self._quiet_s

    def _file_at(self, partition: Partition, files: ExitStack) -> OpenFile | None:
        """The file at the partition's path, unless another partition has begun it under its former name."""
        file = open_if_there(os.path.realpath(partition.key))
        if file is None:
            return None
        files.enter_context(file)
        owner, head_bytes, head = self._owners.get((file.dev, file.ino), (partition, 0, ""))
        elsewhere = owner != partition and head_bytes > 0 and file.head(head_bytes) == head
        return None if elsewhere else file

    def _after_rename(
        self, partition: Partition, place: Position, seen: Evidence, moved: OpenFile, current: OpenFile | None
    ) -> Bounds:
        """Reads the rest of a renamed file; once it is read and left alone, the file that followed it."""
        quiet = self.quiet(moved)
        end = moved.size() if quiet else moved.end_of_lines(place.offset)
        if end > place.offset or not quiet:
            evidence = moved.evidence(place.offset, end, finished=quiet, former=seen.former)
            waiting = max(moved.size() - end, 0)
            return Bounds(place.incarnation, place.offset, 0, end, evidence.as_json(), grows=False, waiting=waiting)
        former = (*seen.former, _as_former(place, seen))
        between = self._next_rotated(partition, moved, former)
        if between is None:
            return _begun(place.incarnation + 1, current, former) if current else _at_end(place, seen)
        with between:
            quiet = self.quiet(between)
            end = between.size() if quiet else between.end_of_lines(0)
            evidence = between.evidence(0, end, finished=quiet, former=former)
            return Bounds(place.incarnation + 1, 0, 0, end, evidence.as_json(), grows=False)

    def _next_rotated(self, partition: Partition, moved: OpenFile, former: tuple[Former, ...]) -> OpenFile | None:
        """The file that was at the path after `moved` and has been renamed in its turn: the next one in time."""
        read = {(entry.dev, entry.ino) for entry in former} | set(self._owners)
        since = moved.status().st_mtime_ns
        later: list[tuple[int, str]] = []
        for path in self._folders.siblings(os.path.realpath(partition.key)):
            status = os.stat(path)
            if status.st_size and status.st_mtime_ns >= since and (status.st_dev, status.st_ino) not in read:
                later.append((status.st_mtime_ns, path))
        unread = [path for _, path in sorted(later) if path not in self._folders.matches()]
        return open_if_there(unread[0]) if unread else None

    def _former(self, partition: Partition, seen: Evidence) -> tuple[tuple[Former, ...], tuple[Gap, ...]]:
        """The earlier files that are still there; what was written to one after it had been read is a gap."""
        kept, gaps = [], []
        for entry in seen.former:
            size = self._folders.size_of(entry, partition.key)
            if size is None:
                continue
            if size > entry.offset:
                gaps.append(Gap(entry.incarnation, entry.offset, size, "written after rotation"))
            kept.append(replace(entry, offset=max(size, entry.offset)))
        return tuple(kept), tuple(gaps)


def find_moved(folders: Folders, seen: Evidence, path: str) -> AbstractContextManager[OpenFile | None]:
    """The file that was seen, under another name, grown or not."""
    return folders.moved(seen.ino, (seen.path, path), lambda file: file.verdict(seen) is Verdict.SAME)


def _owners(
    positions: Mapping[Partition, Position | None],
) -> dict[tuple[int, int], tuple[Partition, int, str]]:
    """By device and inode: the partition that reads or has read the file, and the fingerprint of the file's head."""
    owners = {}
    for partition, position in positions.items():
        seen = Evidence.of(position.evidence) if position else None
        entries: tuple[Evidence | Former, ...] = (seen, *seen.former) if seen else ()
        for entry in entries:
            owners[entry.dev, entry.ino] = (partition, entry.head_bytes, entry.head)
    return owners


def _unidentified(place: Position, current: OpenFile | None) -> Bounds:
    """A partition whose file was never looked at: new, or moved there by a person, or its file had gone."""
    if current is None:
        return Bounds(place.incarnation, place.offset, 0, place.offset, grows=False)
    if current.size() < place.offset:
        lost = Gap(place.incarnation, place.offset, None, "truncated")
        return _begun(place.incarnation + 1, current, (), (lost,))
    size, end = _whole_lines(current, place.offset)
    evidence = current.evidence(place.offset, end).as_json()
    return Bounds(place.incarnation, place.offset, 0, end, evidence, waiting=size - end)


def _growing(place: Position, current: OpenFile, seen: Evidence) -> Bounds:
    size, end = _whole_lines(current, place.offset)
    evidence = current.evidence(place.offset, end, former=seen.former)
    return Bounds(place.incarnation, place.offset, 0, end, evidence.as_json(), waiting=size - end)


def _begun(
    incarnation: int, current: OpenFile | None, former: tuple[Former, ...], gaps: tuple[Gap, ...] = ()
) -> Bounds:
    """The file at the path, from its beginning."""
    if current is None:
        return Bounds(incarnation, 0, 0, 0, gaps=gaps, grows=False)
    size, end = _whole_lines(current, 0)
    evidence = current.evidence(0, end, former=former).as_json()
    return Bounds(incarnation, 0, 0, end, evidence, gaps, waiting=size - end)


def _whole_lines(file: OpenFile, begin: int) -> tuple[int, int]:
    """The file's size, and the place behind its last line feed: `begin` when there is none behind that."""
    size = file.size()
    return size, file.end_of_lines(begin, size)


def _at_end(place: Position, seen: Evidence) -> Bounds:
    return Bounds(place.incarnation, place.offset, 0, place.offset, seen.as_json(), grows=False)


def _as_former(place: Position, seen: Evidence) -> Former:
    return Former(place.incarnation, seen.dev, seen.ino, seen.head_bytes, seen.head, place.offset)
