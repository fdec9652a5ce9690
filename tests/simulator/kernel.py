"""What stands between the product's file system and the kernel in a history: each call takes a moment, in which the
world may change and the caller be stopped or killed, also between two parts of one write.

Only modules of `connect_core.systems.file` see it, in place of their `os`; what it does not know goes to the kernel as
it is. The time of day that they read is virtual.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import connect_core.systems.file
from connect_core.ledger import leases, rows
from connect_core.planning import assigning
from connect_core.sdk import records
from tests.simulator.logfiles import unix_ns
from tests.simulator.scheduler import Scheduler

_LOOKS = 0.06
"""So many of the calls that change nothing take a moment."""
_TORN = 0.3


class Kernel:
    """In place of `os`. `step` lets a moment pass. A caller that is dead reaches nothing any more."""

    def __init__(self, scheduler: Scheduler, step: Callable[[str], None], births: dict[int, int]) -> None:
        self._scheduler, self._step, self._births = scheduler, step, births
        self.held: dict[int, int] = {}
        """By inode the most that a file held when anybody read in it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def born_ns(self, fd: int) -> int:
        """As the file system tells it; of a file that the product made, when it was first asked for."""
        return self._births.setdefault(os.fstat(fd).st_ino, unix_ns(self._scheduler.now_ns))

    def open(self, path: str, flags: int, mode: int = 0o777, **rest: Any) -> int:
        makes = bool(flags & os.O_CREAT)
        self._before("creates a file" if makes else "", makes)
        fd = os.open(path, flags, mode, **rest)
        try:
            if makes:
                self._step("has created a file")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        return self._written(data, lambda part: os.pwrite(fd, part, offset))

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return self._written(data, lambda part: os.write(fd, part))

    def fsync(self, fd: int) -> None:
        self._step("makes it durable")
        os.fsync(fd)
        self._step("has made it durable")

    def ftruncate(self, fd: int, length: int) -> None:
        self._step(f"cuts a file at {length}")
        os.ftruncate(fd, length)
        self._step("has cut a file")

    def unlink(self, path: str, **rest: Any) -> None:
        self._step("unlinks a file")
        os.unlink(path, **rest)

    def rename(self, old: str, new: str, **rest: Any) -> None:
        self._step("renames a file")
        os.rename(old, new, **rest)

    def replace(self, old: str, new: str, **rest: Any) -> None:
        self._step("renames a file")
        os.replace(old, new, **rest)

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        self._before("reads a file")
        status = os.fstat(fd)
        self.held[status.st_ino] = max(self.held.get(status.st_ino, 0), status.st_size)
        return os.pread(fd, count, offset)

    def stat(self, path: Any, **rest: Any) -> os.stat_result:
        self._before("looks at a name")
        return os.stat(path, **rest)

    def fstat(self, fd: int) -> os.stat_result:
        self._before("looks at a file")
        return os.fstat(fd)

    def scandir(self, path: str) -> Any:
        self._before("lists a folder")
        return os.scandir(path)

    def _written(self, data: bytes | memoryview, write: Callable[[memoryview], int]) -> int:
        """A kernel may write less than it was given."""
        part = memoryview(data).cast("B")
        chance = self._scheduler.chance
        if len(part) > 1 and chance.random() < _TORN:
            part = part[: chance.randint(1, len(part) - 1)]
        self._step(f"writes {len(part)} bytes")
        count = write(part)
        self._step("has written")
        return count

    def _before(self, what: str, always: bool = False) -> None:
        if self._scheduler.current is None:
            return
        self._scheduler.alive()
        if always or self._scheduler.chance.random() < _LOOKS:
            self._step(what)


class _Time:
    """In place of `time`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def time(self) -> float:
        return unix_ns(self._scheduler.now_ns) / 1e9

    def time_ns(self) -> int:
        return unix_ns(self._scheduler.now_ns)


class _Hashes:
    """In place of `hashlib` where names are hashed: those of this process's folder are the same in every process."""

    def __init__(self, home: Path) -> None:
        self._home = os.fsencode(home)

    def __getattr__(self, name: str) -> Any:
        return getattr(hashlib, name)

    def blake2b(self, data: bytes = b"", **options: Any) -> Any:
        return hashlib.blake2b(data.replace(self._home, b"~"), **options)


@contextmanager
def installed(kernel: Kernel, scheduler: Scheduler, home: Path) -> Iterator[None]:
    """For the time of one history."""
    hashes = _Hashes(home)
    with ExitStack() as patches:
        for module in _file_modules():
            if "os" in vars(module):
                patches.enter_context(patch.object(module, "os", kernel))
            if "born_ns" in vars(module):
                patches.enter_context(patch.object(module, "born_ns", kernel.born_ns))
            if "time" in vars(module):
                patches.enter_context(patch.object(module, "time", _Time(scheduler)))
        for named in (records, rows, leases, assigning):
            patches.enter_context(patch.object(named, "hashlib", hashes))
        yield


def _file_modules() -> list[ModuleType]:
    package = connect_core.systems.file
    return [importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)]
