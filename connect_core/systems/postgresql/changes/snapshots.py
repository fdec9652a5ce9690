"""Rows of a table within the stream of its changes, so that each is as it was at its place there. Pure.

`chunks` writes chunks of a table into the log, as messages, each chunk in a transaction. They come out of the slot
among the changes, the same ones each time. A chunk was read a moment before its commit: a row that has changed in
between came as a change already, and what the chunk has of it is old. So before a chunk is read, a watermark is written
into the log, and rows whose keys have changed between the watermark and the chunk are left out. How far the chunks have
come follows from the log as well: one that does not begin where the one before it ended is left out. A chunk says, too,
which tables before its own are read later; so that holds exactly when its rows come.

DBLog: A Watermark Based Change-Data-Capture Framework, https://arxiv.org/abs/2010.12597
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from connect_core.systems.postgresql.changes.messages import LoggedColumn, Relation
from connect_core.systems.tables.snapshots import DueTable, Key, SnapshotProgress, SnapshotRequest

WATERMARK, CHUNK, ROW, END, REQUEST = "watermark", "chunk", "row", "end", "request"


def prefix(slot: str, kind: str) -> str:
    """Of messages for the reader of a slot."""
    return f"{counted(slot) if kind in (ROW, END, REQUEST) else f'waybill.{slot}.'}{kind}"


def counted(slot: str) -> str:
    """What the prefix begins with of messages that have a number, as changes do: so a position comes past them."""
    return f"waybill.{slot}#"


class Chunk(NamedTuple):
    """What is said before the rows of a chunk."""

    watermark: str
    relation: Relation
    after: Key | None
    later: int = 0
    """So many tables were due before this one, could not be read, and are read behind the others."""
    where: str = ""
    """The condition that its rows fulfil; empty: these are all."""

    @property
    def due(self) -> DueTable:
        return DueTable((self.relation.schema, self.relation.table), self.where)

    def text(self, names: dict[int, str]) -> str:
        """`names` are those of types that are not the server's own."""
        of = self.relation
        columns = [[one.name, one.of_key, one.kind, one.modifier, names.get(one.kind, "")] for one in of.columns]
        said = {
            "watermark": self.watermark,
            "oid": of.oid,
            "schema": of.schema,
            "table": of.table,
            "columns": columns,
            "after": self.after,
            "later": self.later,
        }
        return json.dumps({**said, "where": self.where} if self.where else said)


def parse_chunk(text: str) -> tuple[Chunk, dict[int, str]]:
    said = json.loads(text)
    columns = tuple(LoggedColumn(*one[:4]) for one in said["columns"])
    names = {one[2]: one[4] for one in said["columns"] if one[4]}
    after = None if said["after"] is None else (*said["after"],)
    relation = Relation(said["oid"], said["schema"], said["table"], 0, columns)
    return Chunk(said["watermark"], relation, after, said.get("later", 0), said.get("where", "")), names


@dataclass
class _Window:
    """Since a watermark: by table (its oid: a name may be another table's by then) the keys of rows that have changed.
    `void`: of which tables more has changed than that."""

    watermark: str
    changed: set[tuple[int, Key]] = field(default_factory=set)
    void: set[int] = field(default_factory=set)


class Snapshotting:
    """What the log has said up to a place."""

    def __init__(self, progress: SnapshotProgress) -> None:
        self.progress = progress
        self._window: _Window | None = None
        self._taken = False
        self._relation = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a watermark without its chunk: who begins to read behind it does not know what changed."""
        return self._window is not None

    def watermark_came(self, watermark: str) -> None:
        """A watermark before this one has no chunk any more."""
        self._window = _Window(watermark)

    def changed(self, relation: int, key: Key | None) -> None:
        """A row of this table; None where more has changed, or it is unknown which row."""
        if self._window is None:
            return
        if key is None:
            self._window.void.add(relation)
        else:
            self._window.changed.add((relation, key))

    def begins(self, chunk: Chunk) -> bool:
        """Whether its rows are the next ones."""
        window, self._relation = self._window, chunk.relation.oid
        turned = self.progress.later(chunk.later)
        due = turned.is_due([chunk.due], chunk.after)
        self._taken = (
            due and window is not None and window.watermark == chunk.watermark and self._relation not in window.void
        )
        if self._taken:
            self.progress = turned
        return self._taken

    def takes(self, key: Key) -> bool:
        """Whether this row of the chunk is as it is in the stream."""
        return self._taken and self._window is not None and (self._relation, key) not in self._window.changed

    def ends(self, last: Key | None) -> None:
        """`last` is the key of the last row of the chunk; None where the table has no more."""
        if self._taken:
            self.progress = self.progress.behind(last)
        self._window, self._taken = None, False

    def requested(self, request: SnapshotRequest) -> None:
        self.progress = self.progress.asked_by(request)


_FIELD = re.compile(r'[(,](?:"((?:[^"\\]|\\.|"")*)"|([^,)]*))', re.DOTALL)
_ESCAPED = re.compile(r'\\(.)|""', re.DOTALL)


def values_of(row: str) -> list[str | None]:
    """Of a row as text. https://www.postgresql.org/docs/15/rowtypes.html#ROWTYPES-IO-SYNTAX"""
    return [_unquoted(found[1]) if found[1] is not None else found[2] or None for found in _FIELD.finditer(row)]


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(lambda found: found[1] or '"', text) if "\\" in text or '"' in text else text
