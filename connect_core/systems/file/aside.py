"""Bytes of a target that no receipt covers: moved to `NAME.unsettled-EPOCH` beside it, never destroyed
(delivery rule 16).

From the end backwards in pieces: each is durable in the other file, at the place that it had behind the settled length,
before the target is cut by it. So nothing needs double room, and whoever is killed or has no time left has got on. The
next one goes on in the same file, in the hole that is left at its begin; it never writes where anything stands.
"""

from __future__ import annotations

import glob
import os
import re

from connect_core.errors import Retriable, TargetChanged, WaybillError
from connect_core.sdk.values import Limit
from connect_core.systems.file.identity import OpenFile

_BLOCK = 1024 * 1024
_PIECE, _LARGEST = _BLOCK, 64 * _BLOCK
"""Pieces begin at multiples of the smallest, so that file systems can tell what is data from what is a hole."""
_QUICK_S, _SLOW_S = 0.5, 2.0
"""What a piece takes: less, and the next one is larger; more, and it is smaller. A slow disk has its turn as well."""
_RESERVE_S = 1.0
"""For what a lane does after this: it writes at least one batch, and makes it durable."""


def set_aside(file: OpenFile, path: str, begin: int, epoch: int, limit: Limit) -> tuple[str, int]:
    """Moves what stands behind `begin` to a file beside `path`, and cuts the target there, durably. Returns that file,
    and how many bytes are in it. Raises Retriable when the time is over before all is moved."""
    end = file.size()
    begun = _begun(file, path, begin, end)
    with begun or _new_file(f"{path}.unsettled-{epoch}") as beside:
        move = _Move(file, beside, path, begin, end, limit)
        try:
            move.run()
        except (OSError, WaybillError):
            if not (begun or move.begun):
                os.unlink(beside.path)  # what it would have held is still in its place
            raise
        os.fsync(file.fd)
        return beside.path, _held(beside.fd)


def set_aside_beside(path: str) -> list[tuple[str, int]]:
    """The files that `set_aside` has made for the file to which `path` leads and that are still there, each with its
    bytes; whichever attempt made them, also one that died before it could tell."""
    names = sorted(glob.glob(f"{glob.escape(os.path.realpath(path))}.unsettled-*"))
    found = []
    for name in filter(os.path.isfile, names):
        try:
            with OpenFile(name) as file:
                found.append((name, _held(file.fd)))
        except WaybillError:  # who may not read it still sees that it is there
            found.append((name, os.path.getsize(name)))
    return found


def sync_folder(path: str) -> None:
    """Makes the names in the folder of `path` durable."""
    fd = os.open(os.path.dirname(path) or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class _Move:
    """Used once. `end` is where the target ends now."""

    def __init__(self, file: OpenFile, beside: OpenFile, path: str, begin: int, end: int, limit: Limit) -> None:
        self._file, self._beside, self._path = file, beside, path
        self._begin, self._end, self._whole = begin, end, end - begin
        self._limit = limit
        self.begun = False
        """Whether something may be in the other file alone."""
        self._reserve_s = min(_RESERVE_S, limit.left_s() / 4)

    def run(self) -> None:
        piece, took_s = _PIECE, 0.0
        while self._end > self._begin:
            before_s = self._limit.left_s()
            if before_s < self._reserve_s + 2 * took_s:
                raise self._out_of_time()
            self._move(max(self._end - self._begin - piece, 0) // _PIECE * _PIECE + self._begin)
            took_s = before_s - self._limit.left_s()
            if took_s < _QUICK_S:
                piece = min(2 * piece, _LARGEST)
            elif took_s > _SLOW_S:
                piece = max(piece // 2, _PIECE)

    def _move(self, lower: int) -> None:
        """What stands behind `lower`. Whatever happens in between, it is in one of the two files, durably. Backwards as
        well, so that there is never a hole but at the begin."""
        for offset in reversed(range(lower, self._end, _BLOCK)):
            self._copy(offset, min(_BLOCK, self._end - offset))
        os.fsync(self._beside.fd)
        if self._end - self._begin == self._whole:
            sync_folder(self._path)
        if self._file.size() != self._end:
            raise self._changed()
        self.begun = True
        os.ftruncate(self._file.fd, lower)
        self._end = lower

    def _copy(self, offset: int, count: int) -> None:
        rest = memoryview(self._file.bytes_at(offset, count))
        if len(rest) < count:
            raise self._changed()
        offset -= self._begin
        while rest:
            written = os.pwrite(self._beside.fd, rest, offset)
            offset, rest = offset + written, rest[written:]

    def _changed(self) -> TargetChanged:
        return TargetChanged(
            f"The file has {self._file.size()} bytes, not {self._end}: another program writes or cuts it while what no"
            " receipt covers is set aside",
            where=self._path,
            next_step="Let nobody else write to it, and run it again",
        )

    def _out_of_time(self) -> Retriable:
        left = self._end - self._begin
        return Retriable(
            f"{self._whole - left:,} of {self._whole:,} bytes that no receipt covers were moved to {self._beside.path},"
            f" {left:,} are left, and the time of this lane is over",
            where=self._path,
            next_step="Run it again: the next run continues with them",
        )


def _begun(file: OpenFile, path: str, begin: int, end: int) -> OpenFile | None:
    """One that an earlier attempt began, and of which just what the target has between `begin` and `end` is missing."""
    ours = re.compile(re.escape(f"{path}.unsettled-") + r"\d+(\.\d+)?")
    for name in glob.glob(f"{glob.escape(path)}.unsettled-*"):
        if ours.fullmatch(name) and os.path.isfile(name) and not os.path.islink(name):
            beside = OpenFile(name, os.O_RDWR | os.O_NOFOLLOW)
            if _goes_on(beside, file, begin, end):
                return beside
            beside.close()
    return None


def _goes_on(beside: OpenFile, file: OpenFile, begin: int, end: int) -> bool:
    """Whether it has a hole where the target's bytes belong. Of a piece that an attempt was killed in some may be in
    both files: then they are the same."""
    first, missing = _first_data(beside.fd), end - begin
    if not 0 < first <= missing < beside.size() or missing - first > _LARGEST + _PIECE:
        return False
    return all(
        beside.bytes_at(offset, count) == file.bytes_at(offset + begin, count)
        for offset in range(first, missing, _BLOCK)
        for count in [min(_BLOCK, missing - offset)]
    )


def _new_file(name: str) -> OpenFile:
    """Creates `name`, or `name.2` and so on when there is one already."""
    path, number = name, 1
    while os.path.lexists(path):
        number += 1
        path = f"{name}.{number}"
    return OpenFile(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)


def _held(fd: int) -> int:
    """How many bytes it has behind the hole at its begin."""
    return os.fstat(fd).st_size - _first_data(fd)


def _first_data(fd: int) -> int:
    """Where the hole at the begin of a file ends; 0 where there is none, or the file system does not tell."""
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError:  # a hole is all that it has
        return os.fstat(fd).st_size
