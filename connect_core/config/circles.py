"""Whether a connector reads what it writes: it would feed itself and never end. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from connect_core.config.written import Place
from connect_core.contracts import Json


def circle(system: str, source: Json, sink: Json) -> tuple[Place, str] | None:
    """Place and words of the fault when both ends, of one system, meet; None when they do not."""
    if system == "file" and matches(str(sink.get("path")), str(source.get("path"))):
        return ("sink", system, "path"), f"is one of the files that the source reads ({source['path']})"
    if system == "rocketmq" and source.get("name_servers") == sink.get("name_servers"):
        topics = source.get("topics") or []
        if sink.get("topic") in (re.split("[;, ]+", topics) if isinstance(topics, str) else topics):
            return ("sink", system, "topic"), "is a topic that the source reads, in the same cluster"
    return None


def matches(path: str, pattern: str) -> bool:
    """Whether the file pattern names `path`; `**` stands for any number of folders."""
    return _matches(path.split("/"), pattern.split("/"))


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_matches(path[begin:], pattern[1:]) for begin in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])
