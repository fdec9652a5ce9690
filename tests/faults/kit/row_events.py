"""What a file of change events says of the rows of a table. Knows nothing of positions, chunks or receipts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def state_of(lines: Iterable[str]) -> dict[int, Any]:
    """By row its note, behind the last event."""
    state: dict[int, Any] = {}
    for line in lines:
        event = json.loads(line)
        if event["before"]:
            state.pop(event["before"]["id"], None)
        if event["after"]:
            state[event["after"]["id"]] = event["after"]["note"]
    return state


def contradictions(lines: Iterable[str]) -> int:
    """Rows of a snapshot that are not as the changes before them say, and rows that it has brought twice."""
    now: dict[int, Any] = {}
    read: set[int] = set()
    wrong = 0
    for line in lines:
        event = json.loads(line)
        before, after = event["before"] or {}, event["after"] or {}
        if event["op"] == "r":
            wrong += after["id"] in read or (after["id"] in now and now[after["id"]] != after["note"])
            read.add(after["id"])
        now.update({before["id"]: None} if before else {})
        now.update({after["id"]: after["note"]} if after else {})
    return wrong
