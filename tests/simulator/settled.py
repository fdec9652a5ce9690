"""What is settled in a target file stays: looked at after each step that moves offsets, by plain SQL and in the bytes.

Nothing of the product is imported here."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path


class SettledFiles:
    """Remembers by target how far it was settled, and with which bytes."""

    def __init__(self, ledger: sqlite3.Connection) -> None:
        self._ledger = ledger
        self._seen: dict[str, tuple[int, bytes]] = {}
        self._offsets: dict[tuple[str, str], tuple[int, int]] = {}
        self._moves = 0

    def forget(self) -> None:
        """The ledger was replaced by a backup of it."""
        self._seen.clear()
        self._offsets.clear()

    def faults(self) -> Iterator[str]:
        for target, position, base in self._floors():
            yield from self._looked_at(target, position, base)
        yield from self._went_back()

    def lengths(self) -> dict[str, int]:
        """By name of a target file how much of it the ledger has settled."""
        return {Path(target).name: position - base for target, position, base in self._floors()}

    def _floors(self) -> list[tuple[str, int, int]]:
        query = "SELECT target, position, evidence FROM floors WHERE partition_id = '' AND target LIKE '/%'"
        rows = self._ledger.execute(query).fetchall()
        return [(target, position, json.loads(evidence).get("base", 0)) for target, position, evidence in rows]

    def _looked_at(self, target: str, position: int, base: int) -> Iterator[str]:
        file = Path(target)
        name, there = file.name, file.read_bytes() if file.exists() else b""
        length = position - base
        before, kept = self._seen.get(target, (0, b""))
        if position < before:
            yield f"the settled length of {name} goes back from {before} to {position}"
        elif not there.startswith(kept):
            yield f"what was settled in {name} up to {len(kept)} is not there any more"
        elif len(there) < length:
            yield f"{name} is settled up to {length} and has {len(there)} bytes"
        self._seen[target] = (position, there[:length])

    def _went_back(self) -> Iterator[str]:
        """Offsets go on, unless a person moves them."""
        ((moves,),) = self._ledger.execute("SELECT COUNT(*) FROM offset_changes").fetchall()
        query = "SELECT stream, partition_key, incarnation, next_offset FROM offsets"
        now = {(stream, key): (number, offset) for stream, key, number, offset in self._ledger.execute(query)}
        if moves == self._moves:
            for name, place in now.items():
                if place < self._offsets.get(name, (0, 0)):
                    yield f"{name[1].rpartition('/')[2]} goes back from {self._offsets[name]} to {place}"
        self._moves, self._offsets = moves, now
