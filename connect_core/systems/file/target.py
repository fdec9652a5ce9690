"""The file that a sink writes: bytes at planned positions, durable when asked, nothing of anybody else's destroyed.

Positions count over all files that were ever at the path: they never go down, also when a new file is begun; a
position minus `base` is an offset in the present file. Runs in the worker; the driver only looks (`Place.seen`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from connect_core.contracts import Floor, Json
from connect_core.errors import ConfigError, TargetChanged, WaybillError
from connect_core.systems.file.failures import file_error, telling

_BLOCK = 1024 * 1024
REPLACED_ADVICE = (
    "Find out who changed it. To go on in the former file, put it back; to begin the one that is there now at its "
    "start, set on_replaced: continue"
)


@dataclass(frozen=True)
class Place:
    """Where writing goes on. `dev` and `ino` are None while there is no file."""

    position: int
    base: int = 0
    dev: int | None = None
    ino: int | None = None

    @property
    def offset(self) -> int:
        return self.position - self.base

    @classmethod
    def of(cls, floor: Floor) -> Place:
        seen = floor.evidence
        return cls(floor.position, seen.get("base", 0), seen.get("dev"), seen.get("ino"))

    @classmethod
    def seen(cls, path: str) -> Place:
        """The end of the file that is there now. Raises ConfigError when something else is."""
        try:
            with telling("cannot be looked at", path):
                status = os.stat(path)
        except WaybillError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return cls(0)
            raise
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError("Not a regular file", where=path, next_step="Choose another path")
        return cls(status.st_size, 0, status.st_dev, status.st_ino)

    def identity(self) -> Json:
        return {"base": self.base, "dev": self.dev, "ino": self.ino}

    def still_in(self, now: Place) -> bool:
        """Whether everything written up to this place is in the file that is there now."""
        same = self.ino is None or (self.dev, self.ino) == (now.dev, now.ino)
        return self.offset == 0 or (same and now.position >= self.offset)

    def begun_anew(self) -> Place:
        """The same position, at the start of another file."""
        return Place(self.position, self.position)


def changed(path: str, place: Place, now: Place) -> TargetChanged:
    if now.ino is None:
        what = "The file is gone"
    elif (place.dev, place.ino) == (now.dev, now.ino):
        what = f"The file has {now.position} bytes, fewer than the {place.offset} that were settled"
    else:
        what = f"The file is another one than that of which {place.offset} bytes were settled"
    return TargetChanged(what, where=path, next_step=REPLACED_ADVICE)


class Target:
    """One file, opened at the first write. `reached` is behind the last byte written, `flushed` behind the last
    durable one."""

    def __init__(self, path: str, place: Place, epoch: int) -> None:
        self.path = path
        self.reached = self.flushed = place
        self._epoch = epoch
        self._fd: int | None = None

    @classmethod
    @contextmanager
    def open(cls, path: str, place: Place, epoch: int) -> Iterator[Target]:
        target = cls(path, place, epoch)
        try:
            yield target
        finally:
            if target._fd is not None:
                os.close(target._fd)

    def append(self, data: memoryview) -> None:
        """Writes behind `reached`. When it cannot, takes back what was written since the last `sync`."""
        fd = self._opened()
        try:
            self._write(fd, data)
        except OSError as error:
            self._take_back(fd)
            raise file_error(error, "cannot be written", self.path) from error

    def sync(self) -> None:
        """Everything written is durable when this returns, in the file that the path leads to."""
        if self._fd is None:
            return
        with telling("cannot be made durable", self.path):
            os.fsync(self._fd)
        now = Place.seen(self.path)
        if not self.reached.still_in(now):
            raise changed(self.path, self.reached, now)
        self.flushed = self.reached

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

    def _opened(self) -> int:
        if self._fd is None:
            with telling("cannot be opened for writing", self.path):
                self._fd = self._open_or_create()
            self._check(self._fd)
        return self._fd

    def _open_or_create(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self.path, flags)
        except FileNotFoundError:
            if self.reached.offset:
                raise
            fd = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            sync_folder(self.path)
            return fd

    def _check(self, fd: int) -> None:
        """The descriptor is that of the planned file; bytes behind the planned position are set aside."""
        status = os.fstat(fd)
        now = Place(status.st_size, 0, status.st_dev, status.st_ino)
        if not stat.S_ISREG(status.st_mode) or not self.reached.still_in(now):
            raise changed(self.path, self.reached, now)
        self.reached = self.flushed = replace(self.reached, dev=now.dev, ino=now.ino)
        if now.position > self.reached.offset:
            with telling("has unsettled bytes that cannot be set aside", self.path):
                set_aside(fd, self.path, self.reached.offset, now.position, self._epoch)


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
