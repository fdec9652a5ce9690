"""Which files there are now: those that a pattern matches, and those of a folder by inode. One look per planning."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from connect_core.errors import ConfigError, WaybillError
from connect_core.systems.file.failures import telling
from connect_core.systems.file.identity import Former, OpenFile, open_if_there


def matching_files(pattern: str) -> list[str]:
    """Sorted paths of the regular files that match; a path without wildcards is there even before its file is.

    Folders that a pattern happens to match are passed over; anything else that is no file raises ConfigError. Of
    several names of one file through symbolic links, the one that needs none is kept.
    """
    if not glob.has_magic(pattern):
        return [pattern]
    by_file: dict[str, str] = {}
    for path in sorted(glob.glob(pattern, recursive=True)):
        if _is_file(path):
            real = os.path.realpath(path)
            by_file[real] = path if real not in by_file or path == real else by_file[real]
    return sorted(by_file.values())


def _is_file(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:  # it went away, or a link leads nowhere
        return False
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ConfigError("Not a regular file", where=path, next_step="Narrow the pattern to files")
    return stat.S_ISREG(mode)


class Folders:
    """Finds files by identity, in folders and among the matches of the pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._by_inode: dict[str, dict[int, list[str]]] = {}
        self._matches: list[str] | None = None

    def matches(self) -> list[str]:
        if self._matches is None:
            self._matches = matching_files(self._pattern)
        return self._matches

    @contextmanager
    def moved(self, ino: int, near: Sequence[str], is_it: Callable[[OpenFile], bool]) -> Iterator[OpenFile | None]:
        """The file of this inode under whatever name: in a folder of one of the paths `near`, or a match."""
        for path in self._places(ino, near):
            with _opened(path) as file:
                if file is not None and is_it(file):
                    yield file
                    return
        yield None

    def size_of(self, former: Former, near: str) -> int | None:
        """The size of a file that was read earlier; None when it is not there any more."""
        for path in self._places(former.ino, (near,)):
            with _opened(path) as file:
                if file is not None and file.dev == former.dev and file.head(former.head_bytes) == former.head:
                    return file.size()
        return None

    def siblings(self, path: str) -> list[str]:
        """Files beside `path` whose names are its name with a number or a date put in, as rotation does."""
        folder, name = os.path.split(path)
        stem, extension = os.path.splitext(name)
        stamp = r"[.-][0-9][0-9._:T-]*"
        looks_rotated = re.compile(f"{re.escape(name)}{stamp}|{re.escape(stem)}{stamp}{re.escape(extension)}")
        names = (os.path.basename(p) for paths in self._in_folder(folder).values() for p in paths)
        return sorted(os.path.join(folder, other) for other in names if looks_rotated.fullmatch(other))

    def _places(self, ino: int, near: Sequence[str]) -> list[str]:
        folders = {os.path.dirname(path) for name in near for path in (name, os.path.realpath(name))}
        here = [path for folder in sorted(folders) for path in self._in_folder(folder).get(ino, ())]
        return [*here, *(path for path in self.matches() if path not in here and _inode(path) == ino)]

    def _in_folder(self, folder: str) -> dict[int, list[str]]:
        if folder not in self._by_inode:
            self._by_inode[folder] = _regular_files(folder)
        return self._by_inode[folder]


def _regular_files(folder: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    try:
        with telling("cannot be listed", folder), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    found.setdefault(entry.inode(), []).append(entry.path)
    except WaybillError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    return found


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


@contextmanager
def _opened(path: str) -> Iterator[OpenFile | None]:
    """The file, or None when there is none under this path now. Other errors are told."""
    file = open_if_there(path)
    if file is None:
        yield None
        return
    with file:
        yield file
