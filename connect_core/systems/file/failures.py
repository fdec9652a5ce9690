"""What the operating system says about a file, as errors of our tree: each names the path and what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from connect_core.errors import Retriable, Unreachable, WaybillError

_UNREACHABLE = {
    errno.ENOENT: "Create the folder, or correct the path",
    errno.ENOTDIR: "Correct the path: a part of it is no folder",
    errno.EACCES: "Give the user of the worker the right to this path",
    errno.EPERM: "Give the user of the worker the right to this path",
    errno.EROFS: "Mount the file system writable, or choose another path",
    errno.ENOSPC: "Free space on the disk; the next attempt starts where the last receipt ended",
    errno.EDQUOT: "Free space or raise the quota; the next attempt starts where the last receipt ended",
    errno.EFBIG: "Raise the limit on file sizes, or choose another path",
    errno.ELOOP: "Correct the symbolic links on this path",
    errno.ENAMETOOLONG: "Choose a shorter path",
}


def file_error(error: OSError, doing: str, path: str) -> WaybillError:
    """`doing` is what was tried, as in "cannot be read"."""
    what = f"File {doing}: {error.strerror or error}"
    advice = _UNREACHABLE.get(error.errno or 0)
    if advice:
        return Unreachable(what, where=path, next_step=advice)
    return Retriable(what, where=path, next_step="Try again; if it stays, look at the disk and the system log")


@contextmanager
def telling(doing: str, path: str) -> Iterator[None]:
    """Turns an OSError of the block into an error that names the path."""
    try:
        yield
    except OSError as error:
        raise file_error(error, doing, path) from error
