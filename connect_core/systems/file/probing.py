"""Whether files can be read and written here and now, for people who check a document. Writes and creates nothing."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from connect_core.sdk.plugin import ProbeResult, Role
from connect_core.sdk.values import Json
from connect_core.systems.file.content import refusal
from connect_core.systems.file.folders import matching_files
from connect_core.systems.file.identity import open_if_there
from connect_core.systems.file.options import path_of_task
from connect_core.systems.file.packed import opener
from connect_core.systems.file.streams import Streams

_KINDS = {
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    if role == "source":
        yield from _read(options["path"], binary=bool(options.get("binary")))
        return
    tasks = options.get("tasks", 1)
    for task in range(tasks):
        written = path_of_task(options["path"], task, tasks)
        why = hindrance(written)
        yield ProbeResult(not why, f"{written} " + (f"cannot be written: {why}" if why else "can be written"))


def _read(pattern: str, *, binary: bool) -> Iterator[ProbeResult]:
    found = [match for match in matching_files(pattern) if os.path.isfile(match)]
    yield ProbeResult(bool(found), f"{len(found):,} files match {pattern}")
    opening = open_if_there if binary else opener(Streams())
    for match in found:
        if not os.access(match, os.R_OK):
            yield ProbeResult(False, f"{match} cannot be read")
            continue
        with opening(match) or nullcontext() as file:
            if file and (why := refusal(file, binary=binary)):
                yield ProbeResult(False, f"{match} is {why} and will be refused")


def hindrance(path: str) -> str:
    """What stands against writing to `path`, in words; empty where nothing does."""
    real = os.path.realpath(path)
    folder = Path(real).parent
    try:
        return _of_folder(folder) or _of_file(Path(real)) or _of_new_files(folder)
    except OSError as error:
        return error.strerror or str(error)


def _of_folder(folder: Path) -> str:
    if folder.is_dir():
        return ""
    upper = next(one for one in (folder, *folder.parents) if one.exists())
    return f"its folder {folder} is missing" if upper.is_dir() else f"{upper} is no folder"


def _of_file(path: Path) -> str:
    try:
        status = path.stat()
    except FileNotFoundError:
        return ""
    if stat.S_ISDIR(status.st_mode):
        return "it is a folder: name a file in it"
    if not stat.S_ISREG(status.st_mode):
        return f"it is {_KINDS.get(stat.S_IFMT(status.st_mode), 'something else')}, not a regular file"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except PermissionError as error:
        return f"{error.strerror}: it belongs to {_name(status.st_uid)} ({_mode(status)}), and this is {_me()}"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _of_new_files(folder: Path) -> str:
    """Also where the file is there: bytes that were never settled are moved to a file beside it."""
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"{folder} is on a file system that is mounted read-only"
    if not os.access(folder, os.W_OK | os.X_OK):
        status = folder.stat()
        owner = f"belongs to {_name(status.st_uid)} ({_mode(status)})"
        return f"its folder {folder} {owner}, and {_me()} may make no file in it"
    return ""


def _mode(status: os.stat_result) -> str:
    return stat.filemode(status.st_mode)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _me() -> str:
    return _name(os.geteuid())
