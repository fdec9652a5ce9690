"""The home: the `.waybill/` folder that holds the local ledger, lease files and the stack's state.

Found upwards from the working folder as git finds its own, or named by WAYBILL_HOME. Reading never creates one: only
`create_home` does, for the commands that store something.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from connect_core.errors import ConfigError, Unreachable

HOME_FOLDER = ".waybill"


def find_home(start: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The absolute path of the home that serves `start` (default: the working folder), or None when there is none."""
    if named := environ.get("WAYBILL_HOME"):
        path = Path(named).expanduser().resolve()
        return path if path.is_dir() else None
    here = (start or Path.cwd()).resolve()
    return next((place / HOME_FOLDER for place in (here, *here.parents) if (place / HOME_FOLDER).is_dir()), None)


def require_home(start: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """`find_home`, or `Unreachable` when there is none."""
    home = find_home(start, environ)
    if home is None:
        where = environ.get("WAYBILL_HOME") or f"{(start or Path.cwd()).resolve()} and above"
        raise Unreachable(
            "There is no home (.waybill) yet",
            where=where,
            next_step="Create one with `waybill dev up` or `waybill apply`, or name another with WAYBILL_HOME",
        )
    return home


def create_home(start: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The home that is there, else a new one: WAYBILL_HOME, or `.waybill` in `start`. Readable by its owner only."""
    found = find_home(start, environ)
    if found:
        return found
    home = _future_home(start, environ)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / ".gitignore").write_text("*\n")
    except OSError as error:
        raise ConfigError(
            f"The home cannot be created: {error.strerror}", where=str(home), next_step="Name another with WAYBILL_HOME"
        ) from None
    return home


def folder_of(home: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that the home serves, or would serve when there is none yet: relative paths begin there."""
    return (home or _future_home(None, environ)).parent


def _future_home(start: Path | None, environ: Mapping[str, str]) -> Path:
    named = environ.get("WAYBILL_HOME")
    return Path(named).expanduser().resolve() if named else (start or Path.cwd()).resolve() / HOME_FOLDER
