"""The file that a sink writes: bytes at planned positions, durable when asked, nothing of anybody else's destroyed.

Positions count over all files that were ever at the path: they never go down, also when a new file is begun; a
position minus `base` is an offset in the present file. Runs in the worker; the driver only looks (`Place.end_of`).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace

from connect_core.contracts import Floor, Json
from connect_core.errors import TargetChanged
from connect_core.systems.file.failures import file_error, telling
from connect_core.systems.file.identity import TAIL_BYTES, OpenFile, open_if_there

_BLOCK = 1024 * 1024
REPLACED_ADVICE = (
    "Find out who changed it. To go on in the former file, put it back; to begin the one that is there now at its "
    "start, set on_replaced: continue"
)


@dataclass(frozen=True)
class Place:
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
    def of(cls, floor: Floor) -> Place:
        return cls(floor.position, **floor.evidence)

    @classmethod
    def end_of(cls, path: str) -> Place:
        """The end of the file that is there now. Raises ConfigError when something else is."""
        file = open_if_there(path)
        if file is None:
            return cls(0)
        with file:
            return cls(file.size()).seen_in(file)

    def seen_in(self, file: OpenFile) -> Place:
        count = min(TAIL_BYTES, self.offset)
        tail = file.tail(self.offset, count)
        return replace(self, dev=file.dev, ino=file.ino, tail_bytes=count, tail=tail)

    def evidence(self) -> Json:
        return {name: value for name, value in asdict(self).items() if name != "position"}

    def begun_anew(self) -> Place:
        """The same position, at the start of another file."""
        return Place(self.position, self.position)

    def lost_in(self, file: OpenFile | None) -> str | None:
        """What happened to the bytes before this place; None when they are there."""
        if not self.offset:
            return None
        if file is None:
            return "The file is gone"
        if (self.dev, self.ino) != (file.dev, file.ino):
            return f"The file is another one than that of which {self.offset} bytes were settled"
        if file.size() < self.offset:
            return f"The file has {file.size()} bytes, fewer than the {self.offset} that were settled"
        if file.tail(self.offset, self.tail_bytes) != self.tail:
            return f"The file does not hold any more what was settled before byte {self.offset}"
        return None


def check(place: Place, path: str, file: OpenFile | None) -> None:
    """Raises TargetChanged when what was written before `place` is not there."""
    if lost := place.lost_in(file):
        raise TargetChanged(lost, where=path, next_step=REPLACED_ADVICE)


class Target:
    """One file, opened at the first write. `begun` is where writing began, `reached` is behind the last byte written,
    `flushed` behind the last durable one."""

    def __init__(self, path: str, place: Place, epoch: int) -> None:
        self.path = path
        self.begun = self.reached = self.flushed = place
        self._epoch = epoch
        self._file: OpenFile | None = None
        self._aside: list[list[str | int]] = []

    @classmethod
    @contextmanager
    def open(cls, path: str, place: Place, epoch: int) -> Iterator[Target]:
        target = cls(path, place, epoch)
        try:
            yield target
        finally:
            if target._file is not None:
                target._file.close()

    def append(self, data: memoryview) -> None:
        """Writes behind `reached`. When it cannot, takes back what was written since the last `sync`."""
        file = self._opened()
        try:
            self._write(file.fd, data)
        except OSError as error:
            self._take_back(file.fd)
            raise file_error(error, "cannot be written", self.path) from error

    def sync(self) -> None:
        """Everything written is durable when this returns, in the file that the path leads to."""
        if self._file is None:
            return
        with telling("cannot be made durable", self.path):
            os.fsync(self._file.fd)
        reached = self.reached.seen_in(self._file)
        there = open_if_there(self.path)
        with there or nullcontext():
            check(self.flushed, self.path, there)  # what stood there before this range was begun
            check(reached, self.path, there)
        self.reached = self.flushed = reached

    def claim_aside(self) -> list[list[str | int]]:
        """`[file, bytes]` of what was set aside when the file was opened; whoever asks first tells of it."""
        claimed, self._aside = self._aside, []
        return claimed

    def _write(self, fd: int, data: memoryview) -> None:
        while data:
            written = os.pwrite(fd, data, self.reached.offset)
            self.reached = replace(self.reached, position=self.reached.position + written)
            data = data[written:]

    def _take_back(self, fd: int) -> None:
        """Ours and unsettled: the next attempt need not find room to set it aside."""
        with telling("cannot be cut back after a failed write", self.path):
            os.ftruncate(fd, self.flushed.offset)
        self.reached = self.flushed

    def _opened(self) -> OpenFile:
        """The planned file; bytes behind the planned position are set aside."""
        if self._file is None:
            self._file = self._open_or_create()
            check(self.reached, self.path, self._file)
            size = self._file.size()
            if size > self.reached.offset:
                with telling("has unsettled bytes that cannot be set aside", self.path):
                    name = set_aside(self._file.fd, self.path, self.reached.offset, size, self._epoch)
                self._aside.append([name, size - self.reached.offset])
        return self._file

    def _open_or_create(self) -> OpenFile:
        flags = os.O_RDWR | os.O_NOFOLLOW
        if os.path.lexists(self.path) or self.reached.offset:
            return OpenFile(self.path, flags)
        file = OpenFile(self.path, flags | os.O_CREAT | os.O_EXCL)
        with telling("cannot be made durable in its folder", self.path):
            sync_folder(self.path)
        return file


def set_aside(fd: int, path: str, begin: int, end: int, epoch: int) -> str:
    """Moves the bytes [begin, end) to `PATH.unsettled-EPOCH`, durably, and cuts the file at `begin`."""
    name, aside = _new_file(f"{path}.unsettled-{epoch}")
    try:
        for offset in range(begin, end, _BLOCK):
            rest = memoryview(os.pread(fd, min(_BLOCK, end - offset), offset))
            while rest:
                rest = rest[os.write(aside, rest) :]
        os.fsync(aside)
    except OSError:
        os.unlink(name)  # what it would have held is still in its place
        raise
    finally:
        os.close(aside)
    sync_folder(path)
    os.ftruncate(fd, begin)
    os.fsync(fd)
    return name


def set_aside_beside(path: str) -> list[tuple[str, int]]:
    """The files that `set_aside` has made for the file to which `path` leads and that are still there, each with its
    bytes; whichever attempt made them, also one that died before it could tell."""
    names = sorted(glob.glob(f"{glob.escape(os.path.realpath(path))}.unsettled-*"))
    return [(name, os.path.getsize(name)) for name in names if os.path.isfile(name)]


def _new_file(name: str) -> tuple[str, int]:
    """Creates `name`, or `name.2` and so on when there is one already."""
    path, number = name, 1
    while os.path.lexists(path):
        number += 1
        path = f"{name}.{number}"
    return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def sync_folder(path: str) -> None:
    """Makes the names in the folder of `path` durable."""
    fd = os.open(os.path.dirname(path) or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
