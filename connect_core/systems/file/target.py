"""The file that a sink writes: bytes at planned positions, durable when asked, nothing of anybody else's destroyed.

Positions count over all files that were ever at the path: they never go down, also when a new file is begun; a
position minus `base` is an offset in the present file. Runs in the worker; the driver only looks
(`TargetPlace.end_of`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace

from connect_core.errors import TargetChanged
from connect_core.sdk.values import Floor, Json, Limit
from connect_core.systems.file.aside import set_aside, sync_folder
from connect_core.systems.file.failures import file_error, telling
from connect_core.systems.file.identity import TAIL_BYTES, OpenFile, open_if_there

REPLACED_ADVICE = (
    "Find out who changed it. To continue in the former file, put it back; to write the file that is there now from "
    "its start, set on_replaced: continue"
)
_BEGUN_ANEW_ADVICE = (
    "The next run writes the file that is there then from its start (on_replaced: continue), and writes again what has "
    "no receipt"
)
_WRITTEN_AGAIN_ADVICE = (
    "What was settled before is not touched. Let no other program cut, rename or write this file while a run writes "
    "it; the next run writes again what has no receipt"
)


@dataclass(frozen=True)
class TargetPlace:
    """Where writing goes on, and what is there: `dev` and `ino` are None while there is no file; `tail` is the
    fingerprint of the `tail_bytes` bytes before it."""

    position: int
    base: int = 0
    dev: int | None = None
    ino: int | None = None
    tail_bytes: int = 0
    tail: str = ""

    @property
    def offset(self) -> int:
        return self.position - self.base

    @classmethod
    def of(cls, floor: Floor) -> TargetPlace:
        return cls(floor.position, **floor.evidence)

    @classmethod
    def end_of(cls, path: str) -> TargetPlace:
        """The end of the file that is there now. Raises ConfigError when something else is."""
        file = open_if_there(path)
        if file is None:
            return cls(0)
        with file:
            return cls(file.size()).seen_in(file)

    def seen_in(self, file: OpenFile) -> TargetPlace:
        count = min(TAIL_BYTES, self.offset)
        tail = file.tail(self.offset, count)
        return replace(self, dev=file.dev, ino=file.ino, tail_bytes=count, tail=tail)

    def evidence(self) -> Json:
        return {name: value for name, value in asdict(self).items() if name != "position"}

    def begun_anew(self) -> TargetPlace:
        """The same position, at the start of another file."""
        return TargetPlace(self.position, self.position)

    def is_of(self, file: OpenFile | None) -> bool:
        """Whether it is a place in this file, whatever became of its content."""
        return file is not None and (self.dev, self.ino) == (file.dev, file.ino)

    def lost_in(self, file: OpenFile | None, done: str = "settled") -> str | None:
        """What happened to the bytes before this place, which were `done`; None when they are there."""
        if not self.offset:
            return None
        if file is None:
            return "The file is gone"
        if not self.is_of(file):
            return f"The file is another one than that of which {self.offset} bytes were {done}"
        if file.size() < self.offset:
            return f"The file has {file.size()} bytes, fewer than the {self.offset} that were {done}"
        if file.tail(self.offset, self.tail_bytes) != self.tail:
            return f"The file no longer holds what was {done} before byte {self.offset}"
        return None


def check(place: TargetPlace, path: str, file: OpenFile | None) -> None:
    """Raises TargetChanged when what was written before `place` is not there."""
    if lost := place.lost_in(file):
        raise TargetChanged(lost, where=path, next_step=REPLACED_ADVICE)


@dataclass
class Beside:
    """What stands in other files than the one that is written: `[file, bytes]` of what no receipt covers and was moved
    there (`set_aside`), or what an attempt left in a file that was replaced since (`left_in`), with at most so many
    `repeats`, lines that are there as well as here."""

    set_aside: list[list[str | int]] = field(default_factory=list)
    left_in: list[list[str | int]] = field(default_factory=list)
    repeats: int = 0

    def __iadd__(self, other: Beside) -> Beside:
        self.set_aside += other.set_aside
        self.left_in += other.left_in
        self.repeats += other.repeats
        return self

    def told(self) -> Json:
        """For a receipt's `where`. Lists of pairs, as the stretches beside them: so those of a live range merge."""
        lists: Json = {"set_aside": self.set_aside, "left_in": self.left_in}
        return {name: pairs for name, pairs in lists.items() if pairs}


class _Wrote:
    """The first and the last bytes that were written since `offset`: what the file holds there is compared with them,
    since a file that was cut and has grown again may look like itself everywhere else."""

    def __init__(self, offset: int) -> None:
        self._offset = self._end = offset
        self._first = self._last = b""

    def add(self, data: memoryview) -> None:
        self._first += bytes(data[: TAIL_BYTES - len(self._first)])
        self._last = (self._last + bytes(data[-TAIL_BYTES:]))[-TAIL_BYTES:]
        self._end += len(data)

    def lost_in(self, file: OpenFile) -> str | None:
        """Where the file holds something else; None when it holds what was written."""
        for offset, data in ((self._offset, self._first), (self._end - len(self._last), self._last)):
            if file.bytes_at(offset, len(data)) != data:
                return f"The file no longer holds what was written from byte {offset} on"
        return None


class Target:
    """One file, opened at the first write. `begun` is where writing began, `reached` is behind the last byte written,
    `flushed` behind the last durable one. `continues` says that a file which was replaced is begun anew. `beside` is
    what its receipts are to tell; whoever asks first when something was written does so."""

    def __init__(self, path: str, place: TargetPlace, epoch: int, *, continues: bool = False) -> None:
        self.path = path
        self.begun = self.reached = self.flushed = place
        self._epoch, self._continues = epoch, continues
        self._wrote = _Wrote(place.offset)
        self._file: OpenFile | None = None
        self.beside = Beside()

    @classmethod
    @contextmanager
    def open(cls, path: str, place: TargetPlace, epoch: int, *, continues: bool = False) -> Iterator[Target]:
        target = cls(path, place, epoch, continues=continues)
        try:
            yield target
        finally:
            if target._file is not None:
                target._file.close()

    def append(self, data: memoryview, limit: Limit) -> None:
        """Writes behind `reached`. When it cannot, takes back what was written since the last `sync`."""
        file = self._opened(limit)
        try:
            self._write(file, data)
        except OSError as error:
            self._take_back(file)
            raise file_error(error, "cannot be written", self.path) from error
        self._wrote.add(data)

    def sync(self) -> None:
        """Everything written is durable when this returns, in the file that the path leads to."""
        if self._file is None:
            return
        with telling("cannot be made durable", self.path):
            os.fsync(self._file.fd)
        reached = self.reached.seen_in(self._file)
        there = open_if_there(self.path)
        with there or nullcontext():
            before = self.flushed.lost_in(there)  # what stood there before this range was begun
            if lost := before or reached.lost_in(there, "written") or self._wrote.lost_in(self._file):
                raise self._changed(lost, there)
        self.reached = self.flushed = reached
        self._wrote = _Wrote(reached.offset)

    def claim(self) -> Beside:
        claimed, self.beside = self.beside, Beside()
        return claimed

    def _write(self, file: OpenFile, data: memoryview) -> None:
        """Each time at the end of the file: behind a cut the write would leave a hole, and what came behind ours is
        somebody's."""
        while data:
            size, wanted = file.size(), self.reached.offset
            if size != wanted:
                how = "fewer" if size < wanted else "more"
                raise self._changed(f"The file has {size} bytes, {how} than the {wanted} that were written", file)
            written = os.pwrite(file.fd, data, wanted)
            self.reached = replace(self.reached, position=self.reached.position + written)
            data = data[written:]

    def _take_back(self, file: OpenFile) -> None:
        """Ours and unsettled: the next attempt need not find room to set it aside. In a file that somebody else has
        cut or written there may be none of it."""
        with telling("cannot be cut back after a failed write", self.path):
            if file.size() == self.reached.offset:
                os.ftruncate(file.fd, self.flushed.offset)
        self.reached, self._wrote = self.flushed, _Wrote(self.flushed.offset)

    def _changed(self, lost: str, there: OpenFile | None) -> TargetChanged:
        """Somebody else was at the file under our hands."""
        told = ""
        if unsettled := self.reached.position - self.flushed.position:
            moved = self._file is not None and (there is None or not there.is_as(self._file))
            told = f"; the one that was written holds {unsettled} bytes that no receipt covers" if moved else ""
        advice = _BEGUN_ANEW_ADVICE if self._continues else REPLACED_ADVICE
        if not self.begun.lost_in(there):
            advice = _WRITTEN_AGAIN_ADVICE
        return TargetChanged(f"{lost}{told}", where=self.path, next_step=advice)

    def _opened(self, limit: Limit) -> OpenFile:
        """The planned file; bytes behind the planned position are set aside."""
        if self._file is None:
            self._file = self._open_or_create()
            if lost := self.reached.lost_in(self._file):
                raise self._changed(lost, self._file)
            if self._file.size() > self.reached.offset:
                with telling("has unsettled bytes that cannot be set aside", self.path):
                    name, count = set_aside(self._file, self.path, self.reached.offset, self._epoch, limit)
                self.beside.set_aside.append([name, count])
        return self._file

    def _open_or_create(self) -> OpenFile:
        flags = os.O_RDWR | os.O_NOFOLLOW
        if os.path.lexists(self.path) or self.reached.offset:
            return OpenFile(self.path, flags)
        file = OpenFile(self.path, flags | os.O_CREAT | os.O_EXCL)
        with telling("cannot be made durable in its folder", self.path):
            sync_folder(self.path)
        return file
