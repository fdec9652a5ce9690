"""Where the files of a document may be: absolute paths as they are written, under the roots."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from connect_core.systems.expanding import expanded


def absolute_path(text: str, roots: tuple[Path, ...]) -> str:
    """The path as it is written: symbolic links are followed by whoever opens it, each time. A relative one begins at
    the first root.

    Raises ValueError when it, or something that its pattern matches now, leads outside of all of the roots.
    """
    if "\0" in text:
        raise ValueError("a path must not contain a NUL character")
    if "://" in text:
        raise ValueError("is an address; name a file")
    whole = roots[0] / Path(text).expanduser()
    fixed, pattern = _split_pattern(whole)
    start = Path(os.path.realpath(fixed))
    base = _without_steps_up(fixed)
    result = str(base / pattern) if pattern else str(base)
    found = [Path(os.path.realpath(match)) for match in expanded(result)] if pattern else []
    allowed = [Path(os.path.realpath(root)) for root in roots]
    for path in (start, *found):
        if not any(path == root or root in path.parents for root in allowed):
            raise ValueError(_outside(path, allowed, path if pattern and path == start else path.parent))
    return result


def require_no_ledger(path: str, ledger: Path) -> None:
    """Raises ValueError for the file of the ledger, and what SQLite keeps beside it."""
    if os.path.realpath(path).startswith(os.path.realpath(ledger)):
        raise ValueError(f"{path} is of the ledger, which nobody else may read or write")


def _outside(path: Path, allowed: Sequence[Path], folder: Path) -> str:
    names = ", ".join(map(str, allowed))
    line = f"export WAYBILL_FILES_ROOTS={os.pathsep.join(map(str, (*allowed, folder)))}"
    return (
        f"{path} is outside of the folders that files may be in: {names} (setting files_roots). To allow its folder,"
        f" here and where Airflow runs: {line}"
    )


def _without_steps_up(path: Path) -> Path:
    """What `..` leads to depends on the links before it: these are resolved."""
    parts = path.parts
    behind = max((number for number, part in enumerate(parts, 1) if part == ".."), default=0)
    return Path(os.path.realpath(Path(*parts[:behind])), *parts[behind:]) if behind else path


def _split_pattern(path: Path) -> tuple[Path, str]:
    """The leading parts without a wildcard, and the rest. `..` behind a wildcard is refused."""
    parts = path.parts
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    rest = parts[first:]
    if ".." in rest:
        raise ValueError(f"{path} has .. behind a wildcard")
    return Path(*parts[:first]), str(Path(*rest)) if rest else ""
