"""Follows files that grow: hands over whole lines as soon as they are there, until nothing came for a while.

Runs in the worker, for live ranges. A file is looked at every few milliseconds, and now and then whether its path still
leads to it: one that was renamed is read to its last whole line and left to the next plan, which knows about rotation.
Of thousands of files those are kept open that something came into last; another one is opened when something comes, and
is recognised then as at the beginning of a range.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from connect_core import clock
from connect_core.errors import Failure, WaybillError
from connect_core.sdk.values import Limit, Range, SourceBatch
from connect_core.systems.file.changes import pause_s, signature
from connect_core.systems.file.content import compression, require_lines
from connect_core.systems.file.identity import Evidence, OpenFile
from connect_core.systems.file.line_rules import LineRules
from connect_core.systems.file.reading import RangeReader, changed
from connect_core.systems.file.unpacking import MAGIC

MAX_OPEN = 200
"""So many files are open at a time. (A process may often have 1,024 descriptors, and others need some.)"""
NAMES_S = 0.05
"""How often it is looked whether a path still leads to its file."""

Opening = Callable[[Range, Evidence | None], AbstractContextManager[OpenFile]]
"""The file that was planned, wherever it is now; raises Retriable where it is not there as it was."""


class OpenFiles:
    """The files that are open, the one used last at the end. A context manager that closes them."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._open: OrderedDict[FollowedFile, tuple[OpenFile, ExitStack]] = OrderedDict()

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(self, *error: object) -> None:
        while self._open:
            self._close_one()

    def there(self, followed: FollowedFile) -> OpenFile | None:
        """The file, if it is open."""
        return self._open[followed][0] if followed in self._open else None

    def of(self, followed: FollowedFile) -> OpenFile:
        """The file, opened if it is not. Raises what opening it does."""
        if followed not in self._open:
            while len(self._open) >= MAX_OPEN:
                self._close_one()
            with ExitStack() as resources:
                file = resources.enter_context(self._opening(followed.wanted, followed.seen))
                self._open[followed] = (file, resources.pop_all())
        self._open.move_to_end(followed)
        return self._open[followed][0]

    def _close_one(self) -> None:
        _, (_, resources) = self._open.popitem(last=False)
        resources.close()


class FollowedFile:
    """One live range. `seen` is what its file looked like behind the last batch; `path` is where it was planned."""

    def __init__(self, wanted: Range, path: str, seen: Evidence | None, limit: Limit, rules: LineRules) -> None:
        self.wanted, self.seen = wanted, seen
        self._path, self._limit, self._rules = path, limit, rules
        self._offset = wanted.begin
        self._size = -1
        self.left = self.failed = False
        """Whether the next plan must look for it; whether it was said that it cannot be followed."""

    def batches(self, files: OpenFiles) -> Iterator[SourceBatch | Failure]:
        """The whole lines that have come since; or, once, why it cannot be followed: it was cut or written over, or it
        has no lines."""
        if self.left or self.failed or self._held(files) == self._size:
            return
        try:
            yield from self._come_into(files.of(self))
        except WaybillError as error:
            if (self._size >= 0 or self._is_idle(files)) and self.moved():  # it is not where anybody looks for it
                self.left = True
                return
            self.failed = True
            yield Failure.of(error)

    def _come_into(self, file: OpenFile) -> Iterator[SourceBatch]:
        size = file.size()
        if size < self._offset:
            raise changed(file, self._offset)
        if self._offset == 0 and not self._rules.binary and compression(file) in MAGIC:
            self.left = True  # the next plan opens it as what it is
            return
        if self._offset == 0:
            require_lines(file, binary=self._rules.binary)
        seen = self.seen = self.seen or file.evidence(self._offset)
        end = file.end_of_lines(self._offset, size)
        if end > self._offset:
            there = replace(self.wanted, begin=self._offset, end=end)
            reader = RangeReader(file, there, seen, self._limit, self._rules)
            for batch in reader:
                self.seen, self._offset = reader.seen, batch.next_offset
                yield batch
        if self._offset == end:
            self._size = size
            self.seen = replace(self.seen or seen, size=size)  # it may hold the beginning of a line

    def _held(self, files: OpenFiles) -> int:
        """How large it is. One that is not open is looked at under its path; what is there may be another file, which
        is seen when it is opened."""
        file = files.there(self)
        if file is not None:
            return file.size()
        at_path = signature(self._path)
        return at_path[2] if at_path else -2

    def _is_idle(self, files: OpenFiles) -> bool:
        """Whether it was not opened, and the plan saw nothing in it that is not read: nobody knows of more."""
        return files.there(self) is None and self.seen is not None and not self.seen.planned_end

    def moved(self) -> bool:
        """Whether its path leads elsewhere by now."""
        if self.seen is None or self.failed:
            return False
        at_path = signature(self._path)
        return at_path is None or at_path[:2] != (self.seen.dev, self.seen.ino)


def follow(
    files: Sequence[FollowedFile], opening: Opening, limit: Limit, idle_timeout_s: float
) -> Iterator[tuple[FollowedFile, SourceBatch | Failure]]:
    """What comes into any of the files, until the quantum is over, nothing came for that long, or one was moved."""
    came = names = clock.monotonic()
    over = False
    with OpenFiles(opening) as opened:
        while not over and limit.quantum_left_s() > 0:
            now = clock.monotonic()
            if now - names >= NAMES_S:  # before the lines are read: what was written to the old file is taken with them
                names, over = now, any(file.moved() for file in files)
            for file in files:
                for batch in file.batches(opened):
                    yield file, batch
                    came = clock.monotonic()
            over = over or any(file.left for file in files)
            if clock.monotonic() - came >= idle_timeout_s:
                return
            clock.sleep(pause_s(len(files)))
