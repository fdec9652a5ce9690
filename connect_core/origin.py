"""Whose code an unexpected exception comes from: Waybill's, or that of a plug-in's package."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import FrameType
from typing import NamedTuple

_ROOT = Path(__file__).parents[1]
_SYSTEMS: dict[str, str] = {}


class Origin(NamedTuple):
    """File and line, and the system and the package of the plug-in whose they are; both are empty for ours."""

    place: str
    system: str = ""
    package: str = ""


def know_package(module: str, system: str) -> None:
    """The top-level package of `module` brings this system. Called when a plug-in is loaded."""
    _SYSTEMS[module.partition(".")[0]] = system


def origin_of(error: BaseException) -> Origin:
    """Of the innermost frame in the package of a plug-in: what that has called was given what it gave. Without one, of
    the innermost frame of ours."""
    frames = list(traceback.walk_tb(error.__traceback__))
    for frame, line in reversed(frames):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _SYSTEMS:
            return Origin(f"{_below(package, _path(frame))}:{line}", _SYSTEMS[package], package)
    ours = [(frame, line) for frame, line in frames if _path(frame).is_relative_to(_ROOT / "connect_core")]
    for frame, line in reversed(ours or frames):
        path = _path(frame)
        return Origin(f"{path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path.name}:{line}")
    return Origin("an unknown place")


def _path(frame: FrameType) -> Path:
    return Path(frame.f_code.co_filename)


def _below(package: str, path: Path) -> Path:
    """The path from the folder of the package on; of a package that is one file, its name."""
    parts = path.parts
    at = len(parts) - 1 - parts[::-1].index(package) if package in parts else -1
    return Path(*parts[at:])
