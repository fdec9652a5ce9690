"""Lines of a log, as text or as JSON for those who collect logs: which connector, run and task each is of.

The environment says which (`WAYBILL_LOG_FORMAT`), for a command, a server and a Spark application alike. Airflow logs
in a form of its own.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from connect_core.errors import ConfigError
from connect_core.masking import mask_secrets

VARIABLE = "WAYBILL_LOG_FORMAT"
TEXT, JSON = "text", "json"

_of: ContextVar[Mapping[str, Any]] = ContextVar("of what a line tells", default={})  # noqa: B039  never changed


def is_json() -> bool:
    return os.environ.get(VARIABLE) == JSON


def check_format() -> None:
    """Raises ConfigError for a form that there is not."""
    given = os.environ.get(VARIABLE, TEXT)
    if given not in (TEXT, JSON, ""):
        raise ConfigError(f"There is no log format {given!r}", where=VARIABLE, next_step=f"Choose {TEXT} or {JSON}")


@contextmanager
def telling_of(**of: Any) -> Iterator[None]:
    """Lines that are written in the block are of this `connector`, `run` or `task`."""
    before = _of.set({**_of.get(), **of})
    try:
        yield
    finally:
        _of.reset(before)


def line(text: str, level: str = "info", **more: Any) -> str:
    """One line, without its end. `more` stands in JSON alone."""
    if not is_json():
        return text
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"at": moment, "level": level, **_of.get(), **more, "message": text}, ensure_ascii=False)


class JsonFormatter(logging.Formatter):
    """Of Python's records, as those of a server: a stack trace is one line with its message."""

    def format(self, record: logging.LogRecord) -> str:
        more = {"logger": record.name}
        if record.exc_info:
            more["trace"] = mask_secrets(self.formatException(record.exc_info))
        return line(mask_secrets(record.getMessage()), record.levelname.lower(), **more)


def of_a_server() -> dict[str, Any]:
    """What `logging.config.dictConfig` takes for a process whose log is JSON."""
    handler = {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {"stderr": handler},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
    }
