"""Which code this process runs, by which a worker and the driver that asks it recognise each other: a fingerprint of
ours, and the versions of packages that bring systems, or functions of rows, of their own.

Standard library only, so that a driver, a worker and the planner can ask cheaply. It reads source files and nothing
else; it never imports what it fingerprints.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from connect_core import __version__
from connect_core.sdk.row_functions import ROW_FUNCTIONS

PACKAGE = Path(__file__).resolve().parent
PLUGINS = "waybill.systems"
"""The entry point group of systems of other packages."""


@cache
def code_version() -> str:
    """Package version and a hash over the name and content of every Python file of connect_core.

    Computed once a process, at its first use: a process that goes on after the files were changed keeps saying what
    it was started with.
    """
    return f"{__version__}+{fingerprint(PACKAGE)}"


def plugin_versions() -> dict[str, str]:
    """Package and version, by the system that it brings, or by `python NAME` for a function of rows."""
    functions = {f"python {name}": package for name, package in function_versions().items()}
    return _versions(PLUGINS) | functions


def function_versions() -> dict[str, str]:
    """Package and version, by the function of rows that it brings."""
    return _versions(ROW_FUNCTIONS)


def _versions(group: str) -> dict[str, str]:
    found = [(entry.name, entry.dist) for entry in entry_points(group=group)]
    return {name: f"{package.name} {package.version}" for name, package in found if package is not None}


def fingerprint(package: Path) -> str:
    """16 hex digits over the relative paths and contents of all `*.py` below `package`."""
    total = hashlib.blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        content = hashlib.blake2b(path.read_bytes()).digest()
        total.update(path.relative_to(package).as_posix().encode() + b"\0" + content)
    return total.hexdigest()
