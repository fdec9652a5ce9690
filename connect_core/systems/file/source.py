"""The file source: every file that a pattern matches, line by line, through growth, rotation and loss.

A partition is a path (or, with `parallel`, a part of one file); a position is a byte offset with evidence of what the
file looked like there (`identity`). Where reading goes on is `rotation`'s and `parts`' decision, reading `reading`'s.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime

from connect_core import clock
from connect_core.contracts import Bounds, Json, Limit, Position, Range, SourceBatch
from connect_core.errors import ConfigError, Retriable
from connect_core.records import Partition
from connect_core.systems.file.folders import Folders, matching_files
from connect_core.systems.file.following import FollowedFile, Signature, follow, pause_s, signature
from connect_core.systems.file.identity import Evidence, OpenFile, Verdict, open_if_there
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.parts import Part, PartBounds, covered, parts_now
from connect_core.systems.file.reading import RangeReader
from connect_core.systems.file.rotation import Rotation, find_moved


class FileSource:
    """A `contracts.Source`."""

    def __init__(self, options: FileSourceOptions) -> None:
        self._options = options
        self._seen: dict[tuple[Partition, int], Evidence] = {}
        self._looked: dict[Partition, Signature | None] = {}

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """Those known stay: the rest of a file that was renamed or deleted is told of until somebody has seen it."""
        paths = matching_files(self._options.path)
        if self._options.parallel:
            return [*known, *parts_now(paths, known, self._options.sub_partition_bytes)]
        whole = (path for path in paths if Partition(path) not in known and not covered(path, known))
        return [*known, *map(Partition, whole)]

    def topic(self, partition: Partition) -> str:
        return ""

    def bounds(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        self._looked = {partition: signature(_path_of(partition)) for partition in known}
        folders = Folders(self._options.path)
        rotation = Rotation(folders, known, self._options.rotation_quiet_s)
        parts = PartBounds(folders, rotation)
        return {
            partition: parts.bounds(partition, part, position)
            if (part := Part.of(partition))
            else rotation.bounds(partition, position)
            for partition, position in known.items()
        }

    def at_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError(
            "a file does not say when its lines were written",
            where=self._options.path,
            next_step="Choose bytes instead: --range PARTITION:BEGIN-END; `waybill plan` shows both",
        )

    def record_at(self, partition: Partition, seen: Bounds, offset: int) -> int:
        """Lines begin behind a line feed, or where the partition does."""
        if offset <= seen.oldest or offset >= seen.end:
            return offset
        with self._identified(partition, offset, Evidence.of(seen.evidence)) as file:
            return offset if file.bytes_at(offset - 1, 1) == b"\n" else file.next_line(offset, seen.end)

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        key = (wanted.partition, wanted.incarnation)
        with self._identified(wanted.partition, wanted.begin, Evidence.of(wanted.evidence)) as file:
            seen = Evidence.of(wanted.evidence) or file.evidence(wanted.begin)
            reader = RangeReader(file, wanted, seen, limit, self._options.max_line_bytes)
            for batch in reader:
                self._seen[key] = reader.seen
                yield batch

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Looks at the files every few milliseconds; at one that was renamed only by `bounds`."""
        until = clock.monotonic() + limit_s
        looked = {_path_of(partition): self._looked.get(partition) for partition in seen}
        while (left_s := until - clock.monotonic()) > 0:
            if any(signature(path) != before for path, before in looked.items()):
                return
            clock.sleep(min(pause_s(len(looked)), left_s))

    def follow(self, wanted: Sequence[Range], limit: Limit, linger_s: float) -> Iterator[tuple[Range, SourceBatch]]:
        with ExitStack() as files:
            followed = [self._followed(files, one, limit) for one in wanted]
            for file, batch in follow(followed, limit, linger_s):
                self._seen[file.wanted.partition, file.wanted.incarnation] = file.seen
                yield file.wanted, batch

    def _followed(self, files: ExitStack, wanted: Range, limit: Limit) -> FollowedFile:
        planned = Evidence.of(wanted.evidence)
        file = files.enter_context(self._identified(wanted.partition, wanted.begin, planned))
        seen = planned or file.evidence(wanted.begin)
        return FollowedFile(wanted, file, _path_of(wanted.partition), seen, limit, self._options.max_line_bytes)

    def evidence(self, wanted: Range, end: int) -> Json:
        seen = self._seen.get((wanted.partition, wanted.incarnation)) or Evidence.of(wanted.evidence)
        if end == wanted.begin or seen is None:
            return wanted.evidence
        if end == seen.offset:  # seen when the last batch was checked: it holds whatever became of the file since
            return replace(seen, finished=False).as_json()
        with self._identified(wanted.partition, wanted.begin, seen) as file:
            return file.evidence(end, former=seen.former).as_json()

    def confirm(self, positions: Mapping[Partition, Position]) -> None:
        """Nobody to tell: files do not know their readers."""

    @contextmanager
    def _identified(self, partition: Partition, begin: int, seen: Evidence | None) -> Iterator[OpenFile]:
        """The file that was planned, wherever it is now. Raises Retriable when it is not there as it was."""
        path = seen.path if seen else os.path.realpath(_path_of(partition))
        file = open_if_there(path)
        if file is not None:
            with file:
                if seen is None or file.verdict(seen) is Verdict.SAME:
                    yield file
                    return
        if seen is not None:
            with find_moved(Folders(self._options.path), seen, path) as moved:
                if moved is not None:
                    yield moved
                    return
        raise Retriable(
            "The file is not the one that was planned any more",
            where=f"{path}, byte {begin}",
            next_step="The next plan looks at what is there now",
        )


def _path_of(partition: Partition) -> str:
    part = Part.of(partition)
    return part.path if part else partition.key
