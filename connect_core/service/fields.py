"""What `parse.fields` of a document may begin with: the fields of the newest JSON lines of a file, or of the newest
messages of a topic. Reads only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from connect_core.config.row_types import suggested_fields
from connect_core.errors import ConfigError
from connect_core.sdk.values import Json
from connect_core.service import peeking

_TAIL_BYTES = 16 * 1024 * 1024
"""Of a file, what is read at most."""


def suggested(where: str, last: int, messages: Callable[[str, int], Sequence[bytes]]) -> Json:
    """`fields` as a document has them, `remarks` on what they cannot say, and how many `records` were read and
    `unread`. `where` is a file, or else a topic, of which `messages` gives the newest. Raises ConfigError where nothing
    is JSON."""
    path = Path(where)
    if not path.is_file() and (path.exists() or os.sep in where):
        raise ConfigError("There is no such file", where=where, next_step="Name a file of JSON lines, or a topic")
    payloads = _lines(path, last) if path.is_file() else messages(where, last)
    found = suggested_fields(payloads)
    if found is None:
        raise ConfigError(
            f"None of {len(payloads)} records is a JSON object with fields",
            where=where,
            next_step="Name a file of JSON lines, or a topic with JSON payloads",
        )
    return {"where": where, **found}


def _lines(path: Path, last: int) -> Sequence[bytes]:
    with path.open("rb") as file:
        begin = max(path.stat().st_size - _TAIL_BYTES, 0)
        file.seek(begin)
        lines = file.read(_TAIL_BYTES).splitlines()
    return [line for line in lines[1 if begin else 0 :] if line][-last:]


def of_topic(connection: str) -> Callable[[str, int], Sequence[bytes]]:
    """The newest messages of a topic, which is where the connection of this home leads."""

    def messages(topic: str, last: int) -> Sequence[bytes]:
        found = peeking.newest(topic, last, is_topic=True, connection=connection)
        return [message["value"] for message in found["messages"]]

    return messages
