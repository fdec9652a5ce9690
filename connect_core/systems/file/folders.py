"""Which files there are now: those that a pattern matches, and those of a folder by inode. One look per planning.

Symbolic links are followed each time: where one leads now is the file that is meant, as long as it lies under `roots`.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.records import Partition
from connect_core.systems.expanding import expanded
from connect_core.systems.file.failures import file_error, telling
from connect_core.systems.file.identity import Former, OpenFile, open_if_there
from connect_core.systems.file.patterns import matches, without_links


def matching_files(pattern: str) -> list[str]:
    """Sorted paths of what matches but folders; a path without wildcards is there even before its file is.

    What is no file, or has a name that is not text, is among them, so that whoever looks at it can refuse it by name.
    Of several names of one file through symbolic links, the one that needs none is kept.
    """
    if not glob.has_magic(pattern):
        return [pattern]
    by_file: dict[str, str] = {}
    for path in sorted(expanded(pattern)):
        if _is_there(path):
            real = os.path.realpath(path)
            by_file[real] = path if real not in by_file or path == real else by_file[real]
    return sorted(by_file.values())


def _is_there(path: str) -> bool:
    """Not a folder, and no link that leads nowhere."""
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise file_error(error, "cannot be looked at", path) from error


def as_text(path: str) -> str:
    """The path as the ledger and people can have it: bytes of a name that are not UTF-8 become `\\xNN`."""
    return path if is_text(path) else os.fsencode(path).decode(errors="backslashreplace")


def is_text(path: str) -> bool:
    """Whether all of the path is UTF-8."""
    return not any("\udc80" <= letter <= "\udcff" for letter in path)


def still_named(known: Sequence[Partition], path_of: Callable[[Partition], str], pattern: str) -> list[Partition]:
    """Those of `known` whose path the pattern names, with links or without, whether the file is there or not."""
    patterns = {pattern, without_links(pattern)}
    return [one for one in known if any(matches(path_of(one), form) for form in patterns)]


_UNKNOWN_INODE = 0xFFFFFFFF
"""What FUSE lists for a file that it has not looked up."""
_LAST_LETTER = "\U0010ffff"
_LOOKS = 3
"""So often a file is looked for that gets another name in the meantime."""


class Folders:
    """Finds files by identity, in folders and among the matches of the pattern."""

    def __init__(
        self, pattern: str, roots: Sequence[str] = (), opening: Callable[[str], OpenFile | None] = open_if_there
    ) -> None:
        """`opening` gives the file at a path as it is to be read, None where there is none."""
        self._pattern, self._roots, self.open_if_there = pattern, roots, opening
        self._real_matches: set[str] | None = None
        self._by_inode: dict[str, dict[int, list[str]]] = {}
        self._by_name: dict[str, list[str]] = {}
        self._matches: list[str] | None = None
        self._match_inodes: dict[int, list[str]] | None = None

    def matches(self) -> list[str]:
        if self._matches is None:
            self._matches = matching_files(self._pattern)
        return self._matches

    @contextmanager
    def moved(self, ino: int, near: Sequence[str], is_it: Callable[[OpenFile], bool]) -> Iterator[OpenFile | None]:
        """The file of this inode under whatever name: in a folder of one of the paths `near`, or a match. Looks anew
        where it is not under the name any more under which it was listed: it may have got another one since."""
        for _ in range(_LOOKS):
            places = self._places(ino, near)
            for path in places:
                with self.opened(path) as file:
                    if file is not None and is_it(file):
                        yield file
                        return
            if all(inode_of(path) == ino for path in places):
                break
            self._forget()
        yield None

    def path_of(self, former: Former, near: str) -> str | None:
        """Where a file that was read earlier is now; None when it is not there any more."""

        def is_it(file: OpenFile) -> bool:
            return file.is_as(former) and file.begins_as(former)

        with self.moved(former.ino, (near,), is_it) as file:
            return file.path if file else None

    def at(self, path: str) -> OpenFile | None:
        """The file to which `path` leads now; None when there is none. Raises ConfigError where no file may be."""
        real = os.path.realpath(path)
        if not self.holds(real):
            what = f"It leads to {real}, which is outside of the folders that files may be in: {', '.join(self._roots)}"
            advice = "Let the link lead into one of these folders, or add its folder to the setting files_roots"
            raise ConfigError(what, where=path, next_step=advice)
        return self.open_if_there(real)

    @contextmanager
    def opened(self, path: str) -> Iterator[OpenFile | None]:
        """The file, or None when there is none under this path now. Other errors are told."""
        file = self.open_if_there(path)
        with file or nullcontext():
            yield file

    def holds(self, path: str) -> bool:
        """Whether it leads into the folders that files may be in."""
        if not self._roots:
            return True
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(root) for root in self._roots)

    def require_text(self, path: str) -> None:
        """Raises ConfigError when `path` stands for a file whose name is not text."""
        if path in (as_text(match) for match in self.matches() if not is_text(match)):
            advice = "Rename it: it is read then. Or narrow the pattern"
            raise ConfigError("The file's name is not UTF-8", where=path, next_step=advice)

    def names(self, path: str) -> bool:
        """Whether one of the pattern's matches leads to this file, whose path holds no link."""
        if self._real_matches is None:
            self._real_matches = {os.path.realpath(match) for match in self.matches()}
        return path in self._real_matches

    def entries(self, folder: str) -> list[str]:
        """The names of whatever is in it."""
        try:
            with telling("cannot be listed", folder):
                return sorted(os.listdir(folder))
        except WaybillError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise

    def beside(self, path: str, prefix: str = "") -> list[str]:
        """The regular files of its folder whose names begin with `prefix`, sorted."""
        folder = os.path.dirname(path)
        if folder not in self._by_name:
            self._by_name[folder] = sorted(one for paths in self._in_folder(folder).values() for one in paths)
        paths, begin = self._by_name[folder], os.path.join(folder, prefix)
        return paths[bisect_left(paths, begin) : bisect_left(paths, begin + _LAST_LETTER)]

    def beside_with(self, ino: int, path: str) -> list[str]:
        """The regular files of its folder with this inode."""
        return self._in_folder(os.path.dirname(path)).get(ino, [])

    def _forget(self) -> None:
        self._real_matches = self._matches = self._match_inodes = None
        self._by_inode.clear()
        self._by_name.clear()

    def _places(self, ino: int, near: Sequence[str]) -> list[str]:
        folders = {os.path.dirname(path) for name in near for path in (name, os.path.realpath(name))}
        here = [path for folder in sorted(folders) for path in self._in_folder(folder).get(ino, ())]
        return [*here, *(path for path in self._matches_by_inode().get(ino, ()) if path not in here)]

    def _matches_by_inode(self) -> dict[int, list[str]]:
        if self._match_inodes is None:
            self._match_inodes = {}
            for path in self.matches():
                if (ino := inode_of(path)) is not None:
                    self._match_inodes.setdefault(ino, []).append(path)
        return self._match_inodes

    def _in_folder(self, folder: str) -> dict[int, list[str]]:
        if folder not in self._by_inode:
            self._by_inode[folder] = _regular_files(folder)
        return self._by_inode[folder]


def _regular_files(folder: str) -> dict[int, list[str]]:
    """Those whose names are text: others could not be kept as evidence."""
    found: dict[int, list[str]] = {}
    try:
        with telling("cannot be listed", folder), os.scandir(folder) as entries:
            for ino, entry in with_inodes(entries):
                if entry.is_file(follow_symlinks=False) and is_text(entry.name):
                    found.setdefault(ino, []).append(entry.path)
    except WaybillError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    return found


def with_inodes(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[int, os.DirEntry[str]]]:
    """Each with the inode of its file. Some file systems (FUSE) list others, or none: files are asked until one is
    listed with its own. What has gone since is left out."""
    holds = False
    for entry in entries:
        ino = entry.inode() if holds and entry.inode() != _UNKNOWN_INODE else _own_inode(entry)
        holds = holds or ino == entry.inode()
        if ino is not None:
            yield ino, entry


def _own_inode(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None


def inode_of(path: str) -> int | None:
    """None when nothing is there."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None
