"""The levels of this server's own loggers, as Kafka Connect shows and sets them: those of a worker.

Runs are other processes, with levels of their own. Only our loggers can be set: those of libraries may log what they
send, secrets among it.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from connect_core.service import callers
from connect_core.service.visible import NotFound

Answer = dict[str, Any]

_OURS = "connect_core"
_LEVELS = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG - 5,
    "ALL": 1,
}
"""By the names of Log4j."""
_changed: dict[str, int] = {}
"""When each was set here, in milliseconds."""


def shown_all() -> Answer:
    there = [name for name in logging.root.manager.loggerDict if _is_ours(name)]
    return {name: shown(name) for name in ("root", *sorted({_OURS, *there}))}


def shown(name: str) -> Answer:
    """Raises NotFound."""
    if name != "root" and not _is_there(name):
        raise NotFound(f"Logger {name} not found.")
    return {"level": _level(logging.getLogger(name).getEffectiveLevel()), "last_modified": _changed.get(name)}


def set_level(name: str, level: str) -> list[str]:
    """The loggers that have it now. Raises NotFound for a logger that is none of ours, and for a level that is none;
    NotAllowed where the caller may not."""
    callers.require("admin")
    if level.upper() not in _LEVELS:
        raise NotFound(f"Invalid log level '{level}'.")
    if not _is_ours(name) or not _is_there(name):
        raise NotFound(f"Logger {name} not found. Those that can be set begin with {_OURS}")
    below = [one for one in logging.root.manager.loggerDict if one == name or one.startswith(f"{name}.")]
    for one in below:
        logging.getLogger(one).setLevel(_LEVELS[level.upper()])
        _changed[one] = time.time_ns() // 1_000_000
    return sorted(below)


def _is_ours(name: str) -> bool:
    return name == _OURS or name.startswith(f"{_OURS}.")


def _is_there(name: str) -> bool:
    return name == _OURS or name in logging.root.manager.loggerDict


def _level(number: int) -> str:
    return next((name for name, least in _LEVELS.items() if number >= least), "ALL")
