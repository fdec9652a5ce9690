"""Rows of a table in the log of its changes, each as it was at its place there. Pure.

`chunks` copies rows into a table of ours, in transactions that hold them until they are in the log: so all changes that
a copy has seen are in the log before it, and all others behind it. What is said of the copies is rows of a second table
of ours. How far the copies have come follows from the log: one that does not begin where the one before it ended is
left out. So two drivers that both write the next one deliver it once.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from connect_core.sdk.values import Json
from connect_core.systems.mysql.binlog.table_names import COPIES, NOTES, TableName
from connect_core.systems.tables.snapshots import DueTable, Key, Place, SnapshotProgress, SnapshotRequest

MAKE_NOTES = f"""
CREATE TABLE IF NOT EXISTS {NOTES} (
  number bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  connector varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  written_at bigint NOT NULL,
  said longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ENGINE=InnoDB
"""
_CHUNK, _END, _REQUEST, _LATER = "chunk", "end", "request", "later"


class Note(NamedTuple):
    """Of a chunk `tables` is its table, and `after` the key behind which it begins; of the end of one `after` is the
    key of its last row, None where the table has no more; of a request `tables` are those whose rows are to come, and
    `cancelled` those of which nothing is to come that was asked for before. A table that is to be read later is the
    first one, and `after` how far it has come."""

    kind: str
    tables: tuple[DueTable, ...] = ()
    after: Key | None = None
    incarnation: int = 0
    cancelled: tuple[Place, ...] = ()

    def text(self) -> str:
        said = {**self._request.as_json(), **SnapshotProgress(self.tables, self.after).as_json()}
        return json.dumps({**said, "of": [self.kind, self.incarnation]})

    @classmethod
    def parse(cls, text: str) -> Note:
        said: Json = json.loads(text)
        kind, incarnation = said["of"]
        return cls(kind, *SnapshotProgress.parse(said), incarnation, SnapshotRequest.parse(said).cancelled)

    @property
    def _request(self) -> SnapshotRequest:
        return SnapshotRequest(self.tables, self.cancelled)

    @property
    def is_request(self) -> bool:
        return self.kind == _REQUEST

    def is_next(self, progress: SnapshotProgress) -> bool:
        """Whether it is of the rows that are due: it begins a chunk with them, or says that they come later."""
        return self.kind in (_CHUNK, _LATER) and progress.is_due(self.tables, self.after)

    def told(self, progress: SnapshotProgress) -> SnapshotProgress:
        """Behind a request."""
        return progress.asked_by(self._request)


def chunk_note(progress: SnapshotProgress, incarnation: int) -> Note:
    """Before the copies; `progress` is how far those before them came."""
    return Note(_CHUNK, progress.tables[:1], progress.after, incarnation)


def later_note(progress: SnapshotProgress, incarnation: int) -> Note:
    """Of the table that is due, and cannot be read now."""
    return Note(_LATER, progress.tables[:1], progress.after, incarnation)


def end_note(last: Key | None) -> Note:
    return Note(_END, after=last)


def request_note(request: SnapshotRequest) -> Note:
    return Note(_REQUEST, request.tables, cancelled=request.cancelled)


class SnapshotReader:
    """What the log has said up to a place."""

    def __init__(self, connector: str, database: str, progress: SnapshotProgress) -> None:
        """Tables of ours are in this database. `progress` is how far the rows have come where reading begins."""
        self.progress = progress
        """Where the last transaction ended."""
        self.notes, self._copies = TableName(database, NOTES), TableName(database, COPIES)
        self._connector, self._now, self._is_due = connector, progress, False

    def transaction_begins(self) -> None:
        """The one before it may have been cut off."""
        self._now, self._is_due = self.progress, False

    def transaction_ended(self) -> None:
        self.progress = self._now

    def renames(self, statement: str) -> None:
        """Another table may have the name now: its rows are read from the begin. It is enough that the statement has
        the name somewhere, for rows may come twice as rows of a snapshot."""
        lowered = statement.lower()
        self._now = self._now.from_begin(lambda place: place[1].lower() in lowered)

    def origin(self, name: TableName) -> TableName | None:
        """Of which table this one has the rows that come next."""
        return TableName(*self._now.tables[0].place) if self._is_due and name == self._copies else None

    def hear(self, connector: str, said: str) -> None:
        if connector != self._connector:
            return
        note = Note.parse(said)
        if note.is_request:
            self._now = note.told(self._now)
        elif note.kind == _CHUNK:
            self._is_due = note.is_next(self._now)
        elif note.kind == _LATER:
            self._now = self._now.later() if note.is_next(self._now) else self._now
        elif self._is_due:
            self._now, self._is_due = self._now.behind(note.after), False
