"""The file sink: each record's value as a line of one growing file, exactly once (delivery rule 16).

The ledger knows the settled length; what stands behind it was never settled. The first write of a range moves such
bytes to `NAME.unsettled-EPOCH` and writes at the planned position. One file has one writer: a task holds the lease on
its real path and works in one lane. On network file systems, whose locks and syncs may lie, it is at least once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from connect_core.errors import TargetChanged
from connect_core.sdk.sink import Scan, Targets, Writer
from connect_core.sdk.values import Attempt, Floor, Json, OpenRange, Range
from connect_core.systems.file.failures import require_folder, telling
from connect_core.systems.file.identity import open_if_there
from connect_core.systems.file.leftovers import left_behind, lines_behind
from connect_core.systems.file.names import Settled, settled
from connect_core.systems.file.options import FileSinkOptions, path_of_task
from connect_core.systems.file.target import Beside, Target, TargetPlace, check

if TYPE_CHECKING:
    import pyarrow as pa

    from connect_core.sdk.rereading import Claim, Reread
    from connect_core.sdk.scan import ScanResult

# Arrow and NumPy are loaded where there is something to write: a run with nothing to move asks only where to write it.


class FileSink:
    """A `sdk.sink.Sink`, and `sdk.rereading.Rereadable`. Its floors have no partition: a file has one settled position
    for all of them."""

    scan_tells_records = False

    def __init__(self, options: FileSinkOptions) -> None:
        self._options = options
        self._continues = options.on_replaced == "continue"
        self._reached: dict[str, TargetPlace] = {}
        self._open: dict[str, Target] = {}

    def path_for(self, task: int) -> str:
        return path_of_task(self._options.path, task, self._options.tasks)

    def target_leases(self, task: int) -> tuple[str, ...]:
        return (f"file:{os.path.realpath(self.path_for(task))}",)

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        return (f"file:{os.path.realpath(target['path'])}",)

    def reaches(self, target: Json, name: str) -> bool:
        return bool(target["target"] == name)

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        name = self.path_for(task)
        path = os.path.realpath(name)
        require_folder(path)
        known = self._settled(name, path, floors)
        if known is not None:
            self._checked(path, known.place)
            return Targets({"target": known.name, "path": path, "first": None, "name": name}, single_lane=True)
        end = TargetPlace.end_of(path)
        _check_line_end(path, end)
        first = {"position": end.position, "evidence": end.evidence()}
        return Targets({"target": name, "path": path, "first": first}, single_lane=True)

    def check_held(self, task: int, floors: Sequence[Floor]) -> None:
        """See `sdk.sink.Holding`. Where nothing was settled there is nothing to miss."""
        name = self.path_for(task)
        path = os.path.realpath(name)
        known = self._settled(name, path, floors)
        if known is not None and known.place.offset:
            require_folder(path)
            self._checked(path, known.place)

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """A file that was there before the first run is appended to: its length is the first floor."""
        pins = wanted.pins.target
        standing = [floor for floor in known if floor.target == pins["target"]]
        if restored and not standing and pins["first"]["position"]:
            raise TargetChanged(
                "The ledger was restored from a backup, and does not know the content of this file",
                where=pins["path"],
                next_step="It may hold lines of this connector. Move it away to have them written again, or choose "
                "another path",
            )
        if not standing:
            return (Floor("", pins["target"], **pins["first"]),)
        name = str(pins.get("name", pins["target"]))
        named = next((floor for floor in known if floor.target == name), standing[0]._replace(target=name))
        # Where others look who else writes to a file they look for its name, so each that it has had has a floor.
        return tuple({floor.target: floor for floor in (*standing, named)}.values())

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """Nothing to look for: what is settled is known by its length, anything else is written again. How much that
        is matters where the source cannot give it again, and where nobody writes the file any more."""
        counted: dict[tuple[str, int], tuple[int, int]] = {}
        return {item.id: self._looked(item, counted) for item in wanted.ranges}

    def reread(self, claims: Sequence[Claim]) -> Iterator[Reread]:
        from connect_core.systems.file.rereading import reread

        return reread(claims)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        from connect_core.systems.file.writing import holds_line_feed

        values = records.column("value")
        if not holds_line_feed(values):
            return []
        message = "The value holds a line feed, so it cannot be one line: encode it first"
        rows = (row for row, value in enumerate(values.to_pylist()) if b"\n" in (value or b""))
        return [(row, "EmbeddedNewline", message) for row in rows]

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[Writer]:
        """The ranges of a lane follow each other in the file: each begins where the one before it was flushed. Live
        ones take turns in it."""
        from connect_core.systems.file.writing import LineWriter, MingledWriter

        with self._target(attempt, wanted) as (name, target):
            yield MingledWriter(name, target) if wanted.range.live else LineWriter(name, target)

    @contextmanager
    def _target(self, attempt: Attempt, wanted: OpenRange) -> Iterator[tuple[str, Target]]:
        """The file, open once for all who write to it at the same time, and what its floor is called: since the range
        was planned more may have been settled in it under another name."""
        pins = wanted.range.pins.target
        name, path = pins["target"], pins["path"]
        if name in self._open:
            yield name, self._open[name]
            return
        known = self._settled(name, path, wanted.floors)
        if known is None:
            raise TargetChanged("The range has no floor for this file", where=path, next_step="Plan it again")
        before = self._reached.get(known.name) or known.place
        place = self._checked(path, before)
        with Target.open(path, place, attempt.epoch, continues=self._continues) as target:
            if place is not before and (left := left_behind(path, before)):
                target.beside = Beside(left_in=[[left.file, left.bytes]], repeats=left.lines)
            self._open[name] = target
            try:
                yield known.name, target
            finally:
                del self._open[name]
                if target.flushed != place:
                    self._reached[known.name] = target.flushed

    def _settled(self, name: str, path: str, floors: Sequence[Floor]) -> Settled | None:
        return settled(name, path, floors, continues=self._continues)

    def _checked(self, path: str, place: TargetPlace) -> TargetPlace:
        """Where writing goes on, by the policy when the file is not the one that was written."""
        file = open_if_there(path)
        with file or nullcontext():
            if self._continues and place.lost_in(file):
                return place.begun_anew()
            check(place, path, file)
        return place

    def _looked(self, item: OpenRange, counted: dict[tuple[str, int], tuple[int, int]]) -> ScanResult:
        """`counted`: what stands behind a place of a file, which many ranges have in common."""
        from connect_core.sdk.scan import ScanResult

        pins = item.range.pins.target
        scanned = {floor.target: floor.position for floor in item.floors if self.reaches(pins, floor.target)}
        known = self._settled(pins["target"], pins["path"], item.floors)
        if known is None:
            return ScanResult(scanned, complete=True)
        key = pins["path"], known.place.offset
        if key not in counted:
            counted[key] = _unsettled(pins["path"], known.place)
        size, lines = counted[key]
        return ScanResult(scanned, complete=True, unplaced=size, unplaced_records=lines)


def _unsettled(path: str, place: TargetPlace) -> tuple[int, int]:
    """How many bytes stand behind what was settled, in the file that was written, and at most how many lines."""
    file = open_if_there(path)
    with file or nullcontext():
        if file is None or place.lost_in(file) or file.size() <= place.offset:
            return 0, 0
        return file.size() - place.offset, lines_behind(file, place.offset)


def _check_line_end(path: str, now: TargetPlace) -> None:
    """A file that is appended to for the first time ends with a whole line."""
    if not now.position:
        return
    with telling("cannot be read", path), open(path, "rb") as file:
        file.seek(now.position - 1)
        if file.read(1) != b"\n":
            raise TargetChanged(
                "The existing file does not end with a line feed, so its last line would run into the first new one",
                where=path,
                next_step="End it with a line feed, or choose another path",
            )
