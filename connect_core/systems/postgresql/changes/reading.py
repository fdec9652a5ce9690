"""The stream of a slot -> batches of events, each with where whole transactions end.

The server gives transactions whole, in the order of their commits, and the same ones again after each place that is
asked for. Changes are numbered as they come; a place between two transactions is also a place in the log.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from select import select
from typing import NamedTuple

from psycopg2.extras import ReplicationCursor

from connect_core import clock
from connect_core.sdk.values import Limit, SourceBatch
from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.changes.events import ChangeEventWriter
from connect_core.systems.postgresql.changes.messages import (
    Change,
    Relation,
    Said,
    TransactionBegin,
    TransactionEnd,
    Truncate,
    TypeName,
    decoded,
)
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.slots import lsn_text, publication_known
from connect_core.systems.postgresql.changes.snapshots import (
    CHUNK,
    END,
    REQUEST,
    ROW,
    WATERMARK,
    Snapshotting,
    parse_chunk,
    prefix,
    values_of,
)
from connect_core.systems.postgresql.connecting import replicating
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.tables.change_events import Event
from connect_core.systems.tables.snapshots import SnapshotProgress, SnapshotRequest
from connect_core.systems.tables.taken_events import TakenEvents

_STATUS_S = 10
"""Between two signs of life to the server, which ends a silent connection after a minute."""
_LOOK_S = 0.5


class Place(NamedTuple):
    """`number` is that of the first change behind the place `lsn` of the log, where a transaction ended. `progress` is
    how far a snapshot has come there."""

    number: int
    lsn: int
    progress: SnapshotProgress = SnapshotProgress()


class ChangeReader:
    """From `begin`, a place between transactions, on; what is before `offset` was delivered before. Used once, and
    closed by whoever is done with it: the server gives a slot to one reader."""

    def __init__(
        self,
        options: PostgresChangesOptions,
        where: str,
        begin: Place,
        offset: int,
        primary_key: Callable[[Relation], Collection[str]],
    ) -> None:
        self._options, self._where, self._from, self._offset = options, where, begin, offset
        self._writer = ChangeEventWriter(options.database, primary_key, schemas=options.schemas)
        self._wanted: dict[int, bool] = {}
        self._prefixes = {one: prefix(options.slot_name, one) for one in (WATERMARK, CHUNK, ROW, END, REQUEST)}
        self._snapshot = Snapshotting(begin.progress)
        self._number = begin.number
        self._lsn, self._is_within = begin.lsn, False
        self._whole = offset
        """Up to where whole transactions are taken."""
        self._taken = TakenEvents(offset)
        self._ends = [begin]
        self._to_write_s = 0.0

    def place(self, offset: int) -> Place:
        """The last end of a transaction at or before it."""
        return self._ends[bisect_right(self._ends, offset, key=lambda one: one.number) - 1]

    def batches(self, end: int, limit: Limit, idle_s: float) -> Generator[SourceBatch, None, None]:
        """Until the number `end`, the end of the quantum, or until nothing has come for so many seconds. A batch ends
        where a transaction does, unless that alone is larger than a batch may be."""
        if limit.quantum_left_s() <= 0:
            return
        self._to_write_s = limit.left_s() / 2
        with self._messages() as cursor:
            came_at = clock.monotonic()
            while self._taken.first < end and self._time_left(limit) > 0:
                message = cursor.read_message()
                if message is not None:
                    self._take(message.payload, message.data_start)
                    came_at = clock.monotonic()
                    if not self._is_full(end):
                        continue
                if (batch := self._batch(end)) is not None:
                    yield batch
                    came_at = clock.monotonic()
                elif message is None:
                    left_s = min(idle_s - (clock.monotonic() - came_at), self._time_left(limit))
                    if left_s <= 0:
                        return
                    select([cursor], [], [], min(left_s, _LOOK_S))

    def _time_left(self, limit: Limit) -> float:
        """A first batch may come when the quantum is over: what is before it in its transaction, and in the log, has to
        be read once more, and would never be passed where that takes longer. Half of the time to live is left to
        write it."""
        left_s = limit.quantum_left_s()
        if left_s > 0 or self._taken.first > self._offset or (limit.stopped is not None and limit.stopped.is_set()):
            return left_s
        return limit.left_s() - self._to_write_s

    @contextmanager
    def _messages(self) -> Iterator[ReplicationCursor]:
        options, where = self._options, self._where
        with (
            closing(replicating(options, where)) as database,
            understood(where),
            publication_known(options, where),
            database.cursor() as cursor,
        ):
            cursor.start_replication(
                slot_name=options.slot_name,
                start_lsn=lsn_text(self._from.lsn),
                status_interval=_STATUS_S,
                options={
                    "proto_version": "1",
                    "publication_names": quoted_name(options.publication_name),
                    "messages": "true",
                },
            )
            yield cursor

    def _take(self, data: bytes, lsn: int) -> None:
        message = decoded(data)
        if isinstance(message, Change):
            self._note_keys(message)
            self._count(message.relation, partial(self._writer.change, message, lsn))
        elif isinstance(message, TransactionBegin):
            self._writer.begins(message)
            self._is_within = True
        elif isinstance(message, TransactionEnd):
            self._commit(message)
        elif isinstance(message, Relation):
            self._writer.knows(message)
            self._wanted[message.oid] = self._is_wanted(message)
        elif isinstance(message, TypeName):
            self._writer.knows_type(message.oid, message.name)
        elif isinstance(message, Truncate):
            for one in message.relations:
                self._snapshot.changed(one, None)
                self._count(one, partial(self._writer.truncated, one, lsn))
        elif isinstance(message, Said):
            self._hear(message, lsn)

    def _is_wanted(self, relation: Relation) -> bool:
        """A publication of our own has no other tables: one that has another name for a while is the same."""
        return not self._options.publication or self._options.wants(relation.schema, relation.table)

    def _note_keys(self, message: Change) -> None:
        if self._snapshot.is_open:
            for key in self._writer.keys(message):
                self._snapshot.changed(message.relation, key)

    def _hear(self, message: Said, lsn: int) -> None:
        """What is said to the reader of this slot."""
        if message.prefix == self._prefixes[ROW]:
            self._row(message.text, lsn)
        elif message.prefix == self._prefixes[WATERMARK]:
            self._keep_place()
            self._snapshot.watermark_came(message.text)
        elif message.prefix == self._prefixes[CHUNK]:
            chunk, names = parse_chunk(message.text)
            self._writer.knows_chunk(chunk.relation, names)
            self._snapshot.begins(chunk)
        elif message.prefix == self._prefixes[END]:
            last = json.loads(message.text)
            self._snapshot.ends(None if last is None else tuple(last))
            self._leave_out()
        elif message.prefix == self._prefixes[REQUEST]:
            self._snapshot.requested(SnapshotRequest.parse(json.loads(message.text)))
            self._leave_out()

    def _row(self, text: str, lsn: int) -> None:
        values = values_of(text)
        if self._number < self._offset or not self._snapshot.takes(self._writer.row_key(values)):
            self._writer.row_passed()
            self._leave_out()
        else:
            self._add(self._writer.row([*values], lsn))

    def _leave_out(self) -> None:
        """Something that has a number."""
        if self._number >= self._offset:
            self._taken.left_out.append(self._number)
        self._number += 1

    def _add(self, made: Event) -> None:
        self._taken.add(self._number, made)
        self._number += 1

    def _count(self, relation: int, event: Callable[[], Event]) -> None:
        if self._number < self._offset or not self._wanted[relation]:
            self._writer.passed(relation)
            self._leave_out()
        else:
            self._add(event())

    def _commit(self, message: TransactionEnd) -> None:
        self._lsn, self._is_within = message.end, False
        if not self._snapshot.is_open:
            self._keep_place()
        self._whole = max(self._whole, self._number)

    def _keep_place(self) -> None:
        """Between two transactions."""
        place = Place(self._number, self._lsn, self._snapshot.progress)
        if self._ends[-1].number == place.number:  # nothing of the publication was in it
            self._ends[-1] = place
        else:
            self._ends.append(place)

    def _is_full(self, end: int) -> bool:
        """At the end of what is wanted, a transaction is over once its commit is read: only then its place is known."""
        if self._number == end:
            return not self._is_within
        return self._number > end or self._taken.fills_a_batch

    def _batch(self, end: int) -> SourceBatch | None:
        """What is taken of whole transactions; of one that fills a batch alone what there is of it."""
        behind = self._whole if self._whole > self._taken.first else self._number if self._is_full(end) else 0
        behind = min(behind, end)
        return self._taken.cut(behind) if behind > self._taken.first else None
