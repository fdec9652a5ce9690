"""What the operating system says about a file, as errors of our tree: each names the path and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.errors import Missing, Retriable, Unreachable, WaybillError

_UNREACHABLE = {
    errno.ENOENT: "Create the folder, or correct the path",
    errno.ENOTDIR: "Correct the path: a part of it is no folder",
    errno.EACCES: "Give the user of the worker the right to this path",
    errno.EPERM: "Give the user of the worker the right to this path",
    errno.EROFS: "Mount the file system writable, or choose another path",
    errno.ENOSPC: "Free space on the disk; the next attempt starts where the last receipt ended",
    errno.EDQUOT: "Free space or raise the quota; the next attempt starts where the last receipt ended",
    errno.EFBIG: "Raise the limit on file sizes, or choose another path",
    errno.ENXIO: "It is a socket or a device: name files only, or narrow the pattern",
    errno.ELOOP: "Correct the symbolic links on this path",
    errno.ENAMETOOLONG: "Choose a shorter path",
}


def file_error(error: OSError, doing: str, path: str) -> WaybillError:
    """`doing` is what was tried, as in "cannot be read"."""
    folder = missing_folder(path) if error.errno == errno.ENOENT else None
    why = f"the folder {folder} is missing" if folder else error.strerror or str(error)
    what = f"File {doing}: {why}"
    advice = _UNREACHABLE.get(error.errno or 0)
    if advice:
        return Unreachable(what, where=path, next_step=advice)
    return Retriable(what, where=path, next_step="Try again; if it stays, look at the disk and the system log")


def missing_folder(path: str) -> str | None:
    """The highest folder on the way to the file `path` that is not there; None when all are."""
    missing, folder = None, os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        missing, folder = folder, os.path.dirname(folder)
    return missing


def require_folder(path: str) -> None:
    """Raises Missing, which names it, when a folder on the way to the file `path` is missing."""
    if folder := missing_folder(path):
        advice = "Create it, mount what holds it, or correct the path"
        raise Missing(f"The folder {folder} is missing", where=path, next_step=advice)


@contextmanager
def telling(doing: str, path: str) -> Iterator[None]:
    """Turns an OSError of the block into an error that names the path."""
    try:
        yield
    except OSError as error:
        raise file_error(error, doing, path) from error
