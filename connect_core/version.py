"""Which code this process runs, by which a worker and the driver that asks it recognise each other: a fingerprint of
ours, and the versions of packages that bring systems, functions of rows or formats of their own.

Standard library only, so that a driver, a worker and the planner can ask cheaply. It reads source files and nothing
else; it never imports what it fingerprints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from connect_core import __version__, packages

if TYPE_CHECKING:
    from connect_core.sdk.values import Json

PACKAGE = Path(__file__).resolve().parent


@cache
def code_version() -> str:
    """Package version and a hash over the name and content of every Python file of connect_core.

    Computed once a process, at its first use: a process that goes on after the files were changed keeps saying what
    it was started with.
    """
    return f"{__version__}+{fingerprint(PACKAGE)}"


def plugin_versions() -> dict[str, str]:
    """Package and version, by the system that it brings, or by `python NAME` for a function of rows and `format NAME`
    for a format: of what this process has loaded that which it runs."""
    return {
        f"{before}{name}": one for group, before in _BEFORE.items() for name, one in packages.releases(group).items()
    }


def running(systems: Iterable[str], pipeline: Json) -> dict[str, str]:
    """The same of what a connector between these systems, with this pinned part of its document, has loaded here: empty
    where it needs no package."""
    parts = [pipeline.get(part, {}) for part in ("parse", "encode")]
    needed = {
        packages.SYSTEMS: [*systems],
        packages.FUNCTIONS: [one["python"] for one in pipeline.get("transforms", ()) if "python" in one],
        packages.FORMATS: [part["format"] for part in parts if "format" in part],
    }
    found = {
        f"{_BEFORE[group]}{name}": packages.running(group, name) for group, names in needed.items() for name in names
    }
    return {name: release for name, release in found.items() if release}


_BEFORE = {packages.SYSTEMS: "", packages.FUNCTIONS: "python ", packages.FORMATS: "format "}


def fingerprint(package: Path) -> str:
    """16 hex digits over the relative paths and contents of all `*.py` below `package`."""
    total = hashlib.blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        content = hashlib.blake2b(path.read_bytes()).digest()
        total.update(path.relative_to(package).as_posix().encode() + b"\0" + content)
    return total.hexdigest()
