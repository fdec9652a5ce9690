"""Rows of a table, each once, by a column of ascending numbers.

An offset is such a number; one without a row is no loss. A row may be changed or deleted after it was read, so nothing
of it is evidence: a position knows which table it is of, and no more. Up to where there is nothing that may still come:
`finality`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime

from psycopg2.extensions import connection, cursor

from connect_core import clock
from connect_core.errors import ConfigError, DataError, Retriable, WaybillError
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.values import (
    ORIGIN,
    Bounds,
    Gap,
    Json,
    Limit,
    Position,
    Range,
    SourceBatch,
)
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.finality import Finality
from connect_core.systems.postgresql.options import split_table
from connect_core.systems.postgresql.source_catalog import SourceTable, read_source_table
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.standing import extent, look_at, sequence_stands_at, unfit_numbers
from connect_core.systems.postgresql.table_reading import MOST_BYTES, MOST_ROWS, as_it_is, batch_of, page

NUMBERING = "numbering"
"""In the evidence of a position: `SourceTable.numbering` when it was reached."""
_AGAIN_S = 0.05
"""Between two looks whether transactions have ended."""


class TableChanged(Retriable):
    """The table is not the one that the range was planned for. Nothing of it was delivered; the next plan looks at
    it."""


class PostgresSource:
    def __init__(self, options: PostgresSourceOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._partition = Partition(".".join(split_table(options.table)))
        self._where = f"{options.address}/{self._partition.key}"
        self._database: connection | None = None
        self._final: tuple[str, Finality] = ("", Finality())
        """Of the table with this origin."""
        if resources is not None:
            resources.callback(self._disconnect)

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return [self._partition]

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """Waits for transactions that are open. A partition of another table is retired.

        Nothing grows: up to where a live range was read, only its reader would know, and a later process may know less
        (a transaction is open, the newest rows are deleted). So each range has an end below which nothing comes."""
        return {one: self._bounds(at) if one == self._partition else Bounds.unread(at) for one, at in known.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError("A table does not say when its rows came", next_step="Name numbers of rows instead of a time")

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        place, left, left_bytes = wanted.begin, wanted.max_records, wanted.max_bytes
        while place < wanted.end and left > 0 and left_bytes > 0 and limit.quantum_left_s() > 0:
            batch = self._page(wanted, place, wanted.end, left, left_bytes)
            yield batch
            place = batch.next_offset
            left -= len(batch.records)
            left_bytes -= int(value_lengths(batch.records.column("value")).sum())

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        until = clock.monotonic() + limit_s
        before = [one for partition, one in seen.items() if partition == self._partition]
        while (left_s := until - clock.monotonic()) > 0:
            clock.sleep(min(self._options.every_s, left_s))
            if any(map(self._moved, before)):
                return

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """Never asked for: no range of a table is live (`Bounds.grows`)."""
        return iter(())

    def evidence(self, wanted: Range, end: int) -> Json:
        return wanted.evidence

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """A table keeps no account of its readers."""

    def _bounds(self, at: Position | None) -> Bounds:
        table, final = self._settled()
        with self._asking() as asking:
            lowest, _ = extent(asking, self._options.table, table)
            stands_at = sequence_stands_at(asking, table)
        if wrong := unfit_numbers(lowest, final.end):
            raise ConfigError(wrong, where=self._where, next_step="Name another column as incrementing")
        incarnation, begin, gaps = _continued(table, at, min(lowest or 0, final.end))
        end = max(begin, final.end)
        self._check_sequence(table, stands_at, end)
        oldest = begin if lowest is None else min(lowest, begin)
        partial = begin == end and final.end < final.newest  # of what has something, the rest is for the next run
        evidence = {ORIGIN: table.origin, NUMBERING: table.numbering}
        return Bounds(incarnation, begin, oldest, end, evidence, gaps, grows=False, partial=partial)

    def _settled(self) -> tuple[SourceTable, Finality]:
        """Waits until nothing may come any more below what is there now, or for as long as the document says."""
        until = clock.monotonic() + self._options.open_transactions_s
        table, final = self._look()
        newest = final.newest
        while final.end < newest and clock.monotonic() < until:
            clock.sleep(_AGAIN_S)
            table, final = self._look()
        return table, final

    def _look(self) -> tuple[SourceTable, Finality]:
        with self._asking() as asking:
            table = read_source_table(asking, self._options)
            if self._final[0] != table.origin:
                self._final = (table.origin, Finality())
            final = self._final[1]
            final.look(*look_at(asking, self._options.table, table))
        return table, final

    def _moved(self, seen: Bounds) -> bool:
        """Whether there is more now, or another table; also where nobody can say."""
        try:
            table, final = self._look()
        except WaybillError:
            return True
        return final.end > seen.end or table.origin != seen.evidence.get(ORIGIN)

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        with self._asking() as asking, as_it_is(asking, self._options) as table:
            if table.origin != wanted.origin or not _numbered_as_before(table, wanted.evidence):
                raise TableChanged(
                    "The table was made again, or its numbers were restarted, after this range was planned",
                    where=f"{self._where}, {table.id} {begin:,}",
                    next_step="The next run reports what was lost",
                )
            sizes = (min(most, MOST_ROWS), min(most_bytes, MOST_BYTES))
            found = page(asking, self._options.table, table, begin, end, *sizes)
        return batch_of(found, begin, end, self._where)

    def _check_sequence(self, table: SourceTable, stands_at: int | None, end: int) -> None:
        """The next rows would come where nobody looks any more."""
        if stands_at is not None and stands_at < end - 1:
            raise DataError(
                f"The sequence of column {table.id} is at {stands_at}, and rows before {end} were read, or are"
                " there: the next rows would come below them",
                where=self._where,
                next_step="Set it to the highest number of a row (setval). If no row gets its number from it, detach it"
                " (ALTER TABLE … DROP DEFAULT, ALTER SEQUENCE … OWNED BY NONE). If it was restarted for an emptied"
                " table, move the position with `waybill offsets set`",
            )

    @contextmanager
    def _asking(self) -> Iterator[cursor]:
        """Over a connection that stays until something goes wrong."""
        try:
            if self._database is None:
                self._database = connected(self._options, self._where)
            with understood(self._where), self._database.cursor() as asking:
                yield asking
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None


def _continued(table: SourceTable, at: Position | None, first: int) -> tuple[int, int, tuple[Gap, ...]]:
    """The incarnation, where reading continues, and what was lost with a former table, or its former rows."""
    if at is None:
        return 0, first, ()
    if at.evidence.get(ORIGIN, table.origin) != table.origin:
        return at.incarnation + 1, first, (Gap(at.incarnation, at.offset, None, "recreated"),)
    if not _numbered_as_before(table, at.evidence):
        reason = f"the sequence of column {table.id} was restarted or altered"
        return at.incarnation + 1, first, (Gap(at.incarnation, at.offset, None, reason),)
    return at.incarnation, at.offset, ()


def _numbered_as_before(table: SourceTable, evidence: Json) -> bool:
    """Where a sequence was restarted (TRUNCATE … RESTART IDENTITY), more new rows than were read may be there by now:
    no number tells."""
    return bool(evidence.get(NUMBERING, table.numbering) == table.numbering)
