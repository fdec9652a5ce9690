"""The file source: every file that a pattern matches, line by line, through growth, rotation and loss.

A partition is a path (or, with `parallel`, a part of one file); a position is a byte offset with evidence of what the
file looked like there (`identity`). Where reading goes on is `rotation`'s and `parts`' decision, reading `reading`'s.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from connect_core import clock
from connect_core.errors import ConfigError, Failure, PartitionUnreachable, Retriable, Unreachable, WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.values import Bounds, Json, Limit, Position, Range, SourceBatch
from connect_core.systems.file.changes import Signature, pause_s, signature
from connect_core.systems.file.content import require_lines
from connect_core.systems.file.failures import require_folder
from connect_core.systems.file.folders import Folders, as_text, matching_files, still_named
from connect_core.systems.file.identity import Evidence, FileVerdict, OpenFile, open_if_there
from connect_core.systems.file.last import LastFiles
from connect_core.systems.file.line_rules import LineRules
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.packed import PackedFile, opener
from connect_core.systems.file.parts import FilePart, PartBounds, covered, parts_now
from connect_core.systems.file.patterns import first_in
from connect_core.systems.file.rotation import Heights, Rotation, Ways, find_file
from connect_core.systems.file.shared import SharedFolders
from connect_core.systems.file.streams import Streams

if TYPE_CHECKING:
    from connect_core.systems.file.following import FollowedFile

_LOOK_S = 2.0
"""So long one look at all files reads ahead in compressed ones."""


class FileSource:
    """A `sdk.source.Source`."""

    def __init__(self, options: FileSourceOptions) -> None:
        self._options = options
        self._rules = LineRules(options.max_line_bytes, options.line_end == "any", options.binary)
        self._seen: dict[tuple[Partition, int], Evidence] = {}
        self._looked: dict[Partition, Signature | None] = {}
        self._heights: Heights = {}
        self._last = LastFiles()
        self._reached = 0
        self._streams = Streams(options.unfinished_s)
        self._begun: Sequence[tuple[Partition, Position]] = ()

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """What the path names: the files that are there, and those known, the rest of which may still have to be read
        wherever it is now. A document that was changed names others. Raises Unreachable while the folder is missing in
        which the path begins: what it holds is not known then, and nothing of it counts as deleted."""
        require_folder(first_in(self._options.path))
        named = still_named(known, _path_of, self._options.path)
        found = matching_files(self._options.path)
        paths = [as_text(path) for path in found]
        folders = self._folders()
        if self._options.parallel:
            refused = {Partition(text) for path, text in zip(found, paths, strict=True) if path != text} - {*named}
            step = self._options.sub_partition_bytes
            return [*named, *sorted(refused), *parts_now(paths, named, step, folders)]
        same = {os.path.realpath(one.key): one for one in named if os.path.realpath(one.key) == one.key}
        there = (path for path in paths if Partition(path) not in named and os.path.realpath(path) not in same)
        return [*named, *(Partition(path) for path in there if not covered(path, named, folders))]

    def stays(self, partition: Partition) -> bool:
        """A part belongs to its file for ever. Without it a file that comes back would be split anew."""
        return FilePart.of(partition) is not None

    def topic(self, partition: Partition) -> str:
        return ""

    def path_of(self, partition: Partition) -> str:
        """The path under which it was found: what was rotated since keeps it."""
        return _path_of(partition)

    def recognise(self, begun: Sequence[tuple[Partition, Position]]) -> None:
        self._begun = begun

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        self._streams.begin_look(_LOOK_S)
        self._looked = {partition: signature(_path_of(partition)) for partition in known}
        folders, begun = self._folders(), [*known.items(), *self._begun]
        if self._options.shared:
            begun = SharedFolders().positions_here(begun)
        ways = Ways(self._options.rotation_quiet_s, self._options.binary, self._heights, self._last)
        rotation = Rotation(folders, begun, ways)
        parts = PartBounds(folders, rotation, begun)
        return {one: _looked_at(folders, rotation, parts, one, position) for one, position in begun[: len(known)]}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError(
            "A file does not say when its lines were written",
            where=self._options.path,
            next_step="Choose bytes instead: --range PARTITION:BEGIN-END; `waybill plan` shows both",
        )

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        """Lines begin behind a line feed, or where the partition does."""
        if offset <= seen.oldest or offset >= seen.end:
            return offset
        with self._identified(partition, offset, self._here(seen.evidence)) as file:
            return offset if file.bytes_at(offset - 1, 1) == b"\n" else file.next_line(offset, seen.end)

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        """A file that may not be read by now says nothing of the others."""
        try:
            yield from self._read(wanted, limit)
        except Unreachable as error:
            raise PartitionUnreachable.of(error) from error

    def _read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        from connect_core.systems.file.reading import (  # loads Arrow, which looking for records does not need
            RangeReader,
            changed,
        )

        key, planned = (wanted.partition, wanted.incarnation), self._here(wanted.evidence)
        with self._identified(wanted.partition, wanted.begin, planned) as file:
            if isinstance(file, PackedFile):
                there = file.seek(wanted.begin, lambda: limit.quantum_left_s() > 0)
                self._reached = file.reached()
                if not there and limit.quantum_left_s() > 0:
                    raise changed(file, wanted.begin)
                if not there:
                    return
            seen = planned or file.evidence(wanted.begin)
            if isinstance(file, PackedFile) and not seen.packed:  # planned before it was compressed
                seen = file.evidence(wanted.begin, wanted.end, finished=seen.finished, past=seen.past)
            if wanted.begin == 0:
                require_lines(file, binary=self._rules.binary)
            reader = RangeReader(file, wanted, seen, limit, self._rules)
            for batch in reader:
                self._seen[key] = reader.seen
                yield batch

    def reached(self, wanted: Range) -> int:
        """What is in a compressed file is there from its beginning on."""
        return self._reached

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Looks at the files every few milliseconds; at one that was renamed only by `bounds`."""
        until = clock.monotonic() + limit_s
        looked = {_path_of(partition): self._looked.get(partition) for partition in seen}
        while (left_s := until - clock.monotonic()) > 0:
            if any(signature(path) != before for path, before in looked.items()):
                return
            clock.sleep(min(pause_s(len(looked)), left_s))

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        from connect_core.systems.file.following import FollowedFile, follow  # as `_read` does

        shared = SharedFolders()
        files = [
            FollowedFile(one, _path_of(one.partition), self._here(one.evidence, shared), limit, self._rules)
            for one in wanted
        ]
        try:
            for file, batch in follow(files, self._opening, limit, idle_timeout_s):
                self._keep(file)
                yield file.wanted, batch
        finally:
            for file in files:
                self._keep(file)

    def _keep(self, file: FollowedFile) -> None:
        if file.seen:
            self._seen[file.wanted.partition, file.wanted.incarnation] = file.seen

    def _opening(self, wanted: Range, seen: Evidence | None) -> AbstractContextManager[OpenFile]:
        return self._identified(wanted.partition, wanted.begin, seen)

    def evidence(self, wanted: Range, end: int) -> Json:
        seen = self._seen.get((wanted.partition, wanted.incarnation)) or self._here(wanted.evidence)
        if end == wanted.begin or seen is None:
            return wanted.evidence
        if end == seen.offset:  # seen when the last batch was checked: it holds whatever became of the file since
            return self._ahead(wanted, seen).as_json() if seen.packed else replace(seen, size=_held(seen)).as_json()
        with self._identified(wanted.partition, wanted.begin, seen) as file:
            return replace(file.evidence(end, past=seen.past), size=file.held()).as_json()

    def _ahead(self, wanted: Range, seen: Evidence) -> Evidence:
        """With what stands behind it in a compressed file, while its stream is there: who plans next has none."""
        with suppress(WaybillError), self._identified(wanted.partition, wanted.begin, seen) as file:
            return file.looked_ahead(seen) if isinstance(file, PackedFile) else seen
        return seen

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """Nobody to tell: files do not know their readers."""

    def _here(self, evidence: Json, shared: SharedFolders | None = None) -> Evidence | None:
        """What another host may have seen, as this one would have."""
        return Evidence.of((shared or SharedFolders()).as_here(evidence) if self._options.shared else evidence)

    def _folders(self) -> Folders:
        opening = open_if_there if self._options.binary else opener(self._streams)
        return Folders(self._options.path, self._options.roots, opening)

    @contextmanager
    def _identified(self, partition: Partition, begin: int, seen: Evidence | None) -> Iterator[OpenFile]:
        """The file that was planned, wherever it is now. Raises Retriable when it is not there as it was."""
        path = seen.path if seen else _path_of(partition)
        folders = self._folders()
        file = folders.at(path)
        if file is not None:
            with file:
                if seen is None or file.verdict(seen) is FileVerdict.SAME:
                    yield file
                    return
        if seen is not None:
            with find_file(folders, seen, _path_of(partition)) as moved:
                if moved is not None:
                    yield moved
                    return
        raise Retriable(
            "The file is no longer the one that was planned",
            where=f"{path}, byte {begin}",
            next_step="The next plan looks at what is there now",
        )


def _looked_at(
    folders: Folders, rotation: Rotation, parts: PartBounds, partition: Partition, position: Position | None
) -> Bounds:
    """What concerns one file stops no other one, whatever it is."""
    try:
        if "\\x" in partition.key:
            folders.require_text(_path_of(partition))
        part = FilePart.of(partition)
        return parts.bounds(partition, part, position) if part else rotation.bounds(partition, position)
    except MemoryError:
        raise
    except Exception as error:
        return Bounds.unread(position, Failure.unexpected(error, "looking at a file", partition.key))


def _held(seen: Evidence) -> int:
    """The most that the file is known to hold: what was seen of it while it was open, or what it has grown to since,
    if it is where it was."""
    now = signature(seen.path)
    return max(seen.offset, seen.size, now[2] if now and now[:2] == (seen.dev, seen.ino) else 0)


def _path_of(partition: Partition) -> str:
    part = FilePart.of(partition)
    return part.path if part else partition.key
