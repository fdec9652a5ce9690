"""Follows files that grow: hands over whole lines as soon as they are there, until nothing came for a while.

Runs in the worker, for live ranges. A file is looked at every few milliseconds through its open descriptor, and now and
then whether its path still leads to it: one that was renamed is read to its last whole line and left to the next plan,
which knows about rotation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from connect_core import clock
from connect_core.contracts import Limit, Range, SourceBatch
from connect_core.systems.file.identity import Evidence, OpenFile
from connect_core.systems.file.reading import RangeReader, changed

LOOK_S = 0.002
LOOK_EACH_S = 0.00004
"""The pause between two looks: the first for few files; the second for each of many, so that looking takes a small part
of a core."""
NAMES_S = 0.05
"""How often it is looked whether a path still leads to its file."""

Signature = tuple[int, int, int, int]


def signature(path: str) -> Signature | None:
    """What changes when something happens to a file; None while there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def pause_s(files: int) -> float:
    return max(LOOK_S, files * LOOK_EACH_S)


class FollowedFile:
    """One live range. `seen` is what its file looked like behind the last batch; `path` is where it was planned."""

    def __init__(
        self, wanted: Range, file: OpenFile, path: str, seen: Evidence, limit: Limit, max_line_bytes: int
    ) -> None:
        self.wanted, self.seen = wanted, seen
        self._file, self._path, self._limit, self._max_line_bytes = file, path, limit, max_line_bytes
        self._offset = wanted.begin
        self._size = -1

    def batches(self) -> Iterator[SourceBatch]:
        """The whole lines that have come since. Raises Retriable when the file was cut or written over."""
        size = self._file.size()
        if size == self._size:
            return
        if size < self._offset:
            raise changed(self._file, self._offset)
        end = self._file.end_of_lines(self._offset, size)
        if end > self._offset:
            there = replace(self.wanted, begin=self._offset, end=end)
            reader = RangeReader(self._file, there, self.seen, self._limit, self._max_line_bytes)
            for batch in reader:
                self.seen, self._offset = reader.seen, batch.next_offset
                yield batch
        if self._offset == end:
            self._size = size

    def moved(self) -> bool:
        """Whether its path leads elsewhere by now."""
        at_path = signature(self._path)
        return at_path is None or at_path[:2] != (self._file.dev, self._file.ino)


def follow(files: Sequence[FollowedFile], limit: Limit, linger_s: float) -> Iterator[tuple[FollowedFile, SourceBatch]]:
    """What comes into any of the files, until the quantum is over, nothing came for that long, or one was moved."""
    came = names = clock.monotonic()
    over = False
    while not over and limit.quantum_left_s() > 0:
        now = clock.monotonic()
        if now - names >= NAMES_S:  # before the lines are read: what was written to the old file is taken with them
            names, over = now, any(file.moved() for file in files)
        for file in files:
            for batch in file.batches():
                yield file, batch
                came = clock.monotonic()
        if clock.monotonic() - came >= linger_s:
            return
        clock.sleep(pause_s(len(files)))
