"""The log -> batches of events, each with where whole transactions end.

An offset is a place in the log: the number of a file, the place of a rows event in it, and the number of a row in that.
A row takes at least one byte, so no two have one offset; of packed ones see `packed_transactions`. The server gives the
same log again after each place that is asked for; reading begins where a transaction does, and what was delivered
before is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from connect_core import clock
from connect_core.errors import DataError, Retriable
from connect_core.sdk.values import Limit, SourceBatch
from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.change_writer import ChangeWriter, Spot
from connect_core.systems.mysql.binlog.gtid_states import GtidState, state_in, why_unknown
from connect_core.systems.mysql.binlog.gtids import mariadb_gtid, mysql_gtid, numbered_by
from connect_core.systems.mysql.binlog.log_events import LogEvent, RowsOf
from connect_core.systems.mysql.binlog.logged_tables import ChangedTable, LoggedTables, WantedLog
from connect_core.systems.mysql.binlog.packed_transactions import Unpacking
from connect_core.systems.mysql.binlog.schema_changes import table_changes
from connect_core.systems.mysql.binlog.server_log import LARGEST, LogPlace, number_of_file, offset_of
from connect_core.systems.mysql.binlog.statements import Does, Statement, statement
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.binlog.taken import TakenChanges, as_it_stands
from connect_core.systems.mysql.binlog.undoing import Undoing, look_ahead
from connect_core.systems.tables.change_events import Event
from connect_core.systems.tables.snapshots import SnapshotProgress

_MOVED = 16 << 20
"""Bytes of log without a change of these tables behind which a position moves on."""
_STANDALONE = 1
"""Of a transaction of MariaDB: it is one statement, and has no end of its own."""
_IDLE = (log_events.HEARTBEAT, log_events.HEARTBEAT_2)
_PAUSES = (*_IDLE, log_events.PAUSE)
_WITHOUT_PLACES = (log_events.ROTATE, *_IDLE)


class Ending(NamedTuple):
    """A place where a transaction ended. `file` is its file's name, `created` when that was begun. `prepared` are
    transactions of XA whose changes were delivered, and that may still be rolled back."""

    place: LogPlace
    file: str
    created: int
    gtid: str = ""
    prepared: tuple[str, ...] = ()
    progress: SnapshotProgress = SnapshotProgress()
    """How far a snapshot has come there."""
    ahead: int = 0
    """How much further offsets are there than places in the file."""
    gtids: GtidState | None = None
    """Of the transactions before it."""
    server: str = ""
    """As the server calls itself whose log this is."""
    gtid_at_s: int = 0
    """When the transaction `gtid` began, wherever it is logged; 0 where an earlier version did not note it."""
    moments: Mapping[str, tuple[str, int]] = MappingProxyType({})
    """The last GTID that was read of each who gives out numbers, with when its transaction began."""
    unknown: str = ""
    """Since when nobody knows `gtids`, and why, where that was read."""

    @property
    def at(self) -> int:
        """Its place in its file."""
        return self.place.at - self.ahead


Opens = Callable[[str, int], AbstractContextManager[Iterator[LogEvent]]]
"""The log from a place in a file on."""


class BinlogReader:
    """From `begin`, a place between transactions, on; what is before `offset` was delivered before. Used once."""

    def __init__(self, wanted: WantedLog, writer: ChangeWriter, begin: Ending, offset: int, where: str) -> None:
        self._wanted, self._writer, self._offset, self._where = wanted, writer, offset, where
        self._ends, self._fixed = [begin], 1
        self._file, self._created, self._at, self._ahead = begin.file, begin.created, begin.place, begin.ahead
        self._packed_taken = -1
        self._gtids, self._unknown, self._server = begin.gtids, begin.unknown, begin.server
        self._prepared, self._gtid, self._gtid_at_s = begin.prepared, begin.gtid, begin.gtid_at_s
        self._moments = begin.moments
        self._is_mariadb, self._is_begun, self._began = False, False, ""
        self._tables = LoggedTables(wanted, begin.progress)
        self._within = self._is_explicit = False
        self._torn = ""
        self._undoing, self._is_foreseen = Undoing(offset, wanted.rolls_back), False
        self._rows_within = 0
        self._whole = offset
        self._taken = TakenChanges(offset)
        self._to_write_s = 0.0

    def ending(self, offset: int) -> Ending:
        """The last end of a transaction at or before it."""
        return self._ends[bisect_right(self._ends, offset, key=lambda one: one.place.offset) - 1]

    def batches(
        self, opens: Opens, end: int, most: int, limit: Limit, idle_s: float
    ) -> Generator[SourceBatch, None, None]:
        """Until the place `end`, until there are `most` rows, the end of the quantum, or until nothing has come for so
        many seconds. A batch ends where a transaction does, unless that alone is larger than a batch may be."""
        self._to_write_s, given = limit.left_s() / 2, 0
        if limit.quantum_left_s() <= 0 or self._taken.first >= end:
            return
        with closing(self._taking(opens, limit)) as events:
            came_at = clock.monotonic()
            for event in events:
                if event.kind in log_events.SAYS_NOTHING_YET:
                    continue
                is_idle = event.kind in _IDLE
                if event.kind in _PAUSES or self._is_over(end) or self._is_full(most - given):
                    for batch in self._all(end, most - given, given > 0):
                        yield batch
                        given += len(batch.records) + len(batch.rejects)
                        came_at = clock.monotonic()
                    if self._taken.first >= end or given >= most or (given and self._holds(most - given)):
                        return
                if self._time_left(limit, is_idle) <= 0 or (is_idle and clock.monotonic() - came_at >= idle_s):
                    break
            if (last := self._batch(end, most - given, torn=False, moved=1)) is not None:
                yield last

    def _taking(self, opens: Opens, limit: Limit) -> Generator[LogEvent, None, None]:
        """Each event, when it is taken. No change of a transaction is given before its end is known: of one that is too
        large to be kept until then, the log is read twice."""
        while True:
            with opens(self._file, self._at.at - self._ahead) as log:
                events = Unpacking(self._file, self._ahead).events(log)
                self._is_begun = False
                for event in events:
                    self._take(event)
                    yield event
                    if event.kind in log_events.ROWS and self._is_too_large():
                        break
                if not self._foresees(events, limit):
                    return

    def _is_too_large(self) -> bool:
        return self._within and not self._is_foreseen and self._taken.fills_a_batch

    def _foresees(self, events: Iterator[LogEvent], limit: Limit) -> bool:
        """False where the time is over before the end of the transaction."""
        for _ in look_ahead(events, self._undoing, lambda event: self._offset_of(event)):
            if self._time_left(limit) <= 0:
                return False
        self._is_foreseen = True
        self._taken.leave_out(self._undoing)
        return True

    def _all(self, end: int, most: int, given: bool) -> Generator[SourceBatch, None, None]:
        """What can be given now. The first batch of a range may be a part of a transaction; one that does not fit any
        more behind others is left to the next range."""
        while True:
            torn = self._taken.fills_a_batch or (not given and self._holds(most))
            torn = torn and (self._is_foreseen or not self._within)
            batch = self._batch(end, most, torn=torn, moved=_MOVED if not self._is_over(end) else 1)
            if batch is None:
                return
            yield batch
            most -= len(batch.records) + len(batch.rejects)
            given = True
            if most <= 0 or self._taken.first >= end:
                return

    def _time_left(self, limit: Limit, is_idle: bool = False) -> float:
        """A first batch may come when the quantum is over: what is before it in its transaction has to be read once
        more, and would never be passed where that, or a busy host, takes longer. Half of the time to live is left to
        write it."""
        left_s = limit.quantum_left_s()
        if left_s > 0 or self._taken.first > self._offset or (limit.stopped is not None and limit.stopped.is_set()):
            return left_s
        is_before_it = self._within or (self._whole <= self._offset and not is_idle)
        return limit.left_s() - self._to_write_s if is_before_it else left_s

    def _is_over(self, end: int) -> bool:
        return self._at.offset >= end

    def _is_full(self, most: int) -> bool:
        return self._holds(most) or self._taken.fills_a_batch

    def _holds(self, rows: int) -> bool:
        return len(self._taken.numbers) >= rows

    def _batch(self, end: int, most: int, *, torn: bool, moved: int) -> SourceBatch | None:
        """What is taken of whole transactions; if `torn`, of one that alone is too large what there is of it."""
        taken = self._taken
        if not taken.numbers:
            behind = min(self._whole, end)
            return self._cut(behind) if behind - taken.first >= moved else None
        whole = taken.before(min(self._whole, end))
        if 0 < whole <= most:
            return self._cut(min(self._whole, end))
        if whole > most and (behind := min(self._end_before(most), end)):
            return self._cut(behind)
        rows = min(taken.before(end), most)
        if rows and (torn or whole > most):
            return self._cut(taken.numbers[rows - 1] + 1)
        return None

    def _end_before(self, most: int) -> int:
        """The last end of a transaction with no more than so many rows before it; 0 where the first one has more."""
        for one in reversed(self._ends):
            rows = self._taken.before(one.place.offset)
            if rows <= most:
                return one.place.offset if rows else 0
        return 0

    def _cut(self, behind: int) -> SourceBatch:
        self._fixed = len(self._ends)
        return self._taken.cut(behind, has_holes=True)

    # ------------------------------------------------------------------------------------------------- what is said

    def _take(self, event: LogEvent) -> None:
        kind, is_in_file = event.kind, event.is_in_file
        if kind == log_events.FORMAT:
            self._begin_file(event)
        elif kind in log_events.CHANGES_FILE:
            self._change_file(event)
        elif is_in_file and kind not in _IDLE:
            self._check_begun(event)
            if event.number is None:
                self._tell(event)
            elif event.number > self._packed_taken:  # where it is read once more, it comes from its begin
                self._packed_taken = event.number
                self._tell(event)
        if is_in_file and event.number is None and kind not in _WITHOUT_PLACES:
            self._at = LogPlace(self._at.file, event.end + event.ahead)
            self._ahead, self._packed_taken = event.ahead, -1
            if not self._within and not self._torn:
                self._keep_place()

    def _begin_file(self, event: LogEvent) -> None:
        """Another log may have a file of this name."""
        self._is_mariadb = log_events.is_of_mariadb(event)
        if not self._is_begun and event.at_s != self._created:
            raise Retriable(
                "The log was begun again after this range was planned",
                where=self._where,
                next_step="The next run says what is lost",
            )
        self._is_begun, self._created = True, event.at_s

    def _change_file(self, event: LogEvent) -> None:
        name = log_events.next_file(event)
        if name == self._file:
            return
        if self._within:  # the server has crashed in it: the next file follows
            self._undoing.cut_off()
            self._end(self._gtids)
        self._torn = self._file if event.kind == log_events.TORN else ""
        self._file, self._at, self._ahead = name, LogPlace(number_of_file(name), 0), 0
        self._tables.forget()

    def _check_begun(self, event: LogEvent) -> None:
        if not self._is_begun:
            raise Retriable("The log does not say what it is", where=self._where)
        end = event.end + event.ahead
        if not self._at.at <= end < LARGEST or (event.number and event.place >= LARGEST):
            words = f"File {self._file} of the log is larger than 4 GiB: places in it have no number"
            raise DataError(words, where=self._where, next_step="Write smaller transactions, and set max_binlog_size")

    def _tell(self, event: LogEvent) -> None:
        kind = event.kind
        if (tells := _TELLS.get(kind)) is not None:
            tells(self, event)
        elif kind not in log_events.HARMLESS and kind != log_events.STOP and not event.flags & log_events.IGNORABLE:
            raise DataError(
                f"The log has an event of kind {kind}, which is not known",
                where=f"{self._where}, {self._file}:{event.begin}",
                next_step="The page docs/mysql-changes.md has what the server needs",
            )

    def _begins(self, event: LogEvent) -> None:
        if event.kind == log_events.MARIADB_GTID:
            self._gtid, flags = mariadb_gtid(event)
            self._is_explicit = not flags & _STANDALONE
        else:
            self._gtid, self._is_explicit = mysql_gtid(event), False
        self._gtid_at_s, self._began = event.at_s, f"{self._file}:{event.begin}"
        self._within, self._rows_within = True, 0
        self._undoing, self._is_foreseen = Undoing(self._offset_of(event), self._wanted.rolls_back), False
        self._tables.forget()
        self._tables.snapshot.transaction_begins()
        self._taken.begins()
        self._writer.begins(self._gtid or self._began, self._gtid)

    def _ends_transaction(self, event: LogEvent) -> None:
        self._end(self._with_this())

    def _with_this(self) -> GtidState | None:
        if self._gtid and self._within:
            self._moments = {**self._moments, numbered_by(self._gtid): (self._gtid, self._gtid_at_s)}
        if self._gtids is None or not self._within:
            return self._gtids
        following = self._gtids.behind(self._gtid)
        if following is None:
            self._unknown = why_unknown(self._gtid, self._began)
        return following

    def _said_before(self, event: LogEvent) -> None:
        """A file begins with what was logged before it."""
        state = state_in(event)
        if self._torn:
            self._require_nothing_lost(state)
        self._gtids, self._unknown, self._torn = state, "", ""

    def _require_nothing_lost(self, state: GtidState | None) -> None:
        """Behind a file that ends within an event. What a server was writing when it crashed was never committed, and
        the next file does not count it; a file that was damaged later may have lost what it does count."""
        if state is None or self._gtids is None:
            lost = f"nobody knows which transactions were read ({self._unknown or 'the log did not say'})"
        elif state.is_at(self._gtids):
            return
        else:
            lost = f"{self._file} counts transactions that were not read: {self._gtids.lacks(state)}"
        raise DataError(
            f"{self._torn} ends within an event, and {lost}",
            where=self._where,
            next_step="It is damaged: look at it with mariadb-binlog or mysqlbinlog, and restore it; to continue behind"
            f" it, with a loss: waybill offsets set NAME PARTITION {offset_of(self._at.file, log_events.FIRST_EVENT)}",
        )

    def _end(self, gtids: GtidState | None) -> None:
        """Of transactions before it are these. What is said of a snapshot counts where nothing was undone."""
        self._gtids = gtids
        self._taken.leave_out(self._undoing)
        self._within = False
        if not self._undoing.is_any:
            self._tables.snapshot.transaction_ended()

    def _prepares(self, event: LogEvent) -> None:
        if self._rows_within:
            self._prepared = (*self._prepared, log_events.prepared(event))
        self._end(self._with_this())

    def _refuse(self, event: LogEvent) -> None:
        raise DataError(
            "The server lost events of its log (an incident)",
            where=f"{self._where}, {self._file}:{event.begin}",
            next_step="To continue after this place: waybill offsets set",
        )

    def _statement(self, event: LogEvent) -> None:
        query = log_events.query(event)
        said = statement(query.lowered if self._wanted.has_small_names else query, self._wanted.wants)
        if not self._is_foreseen:
            self._undoing.tell(said, self._offset_of(event))
        if said.does is Does.BEGINS:
            self._is_explicit = True
        elif said.does is Does.TRUNCATES and said.table:
            name = said.table
            self._add(event, 0, lambda spot: self._writer.truncated(name, event, spot), name)
        elif said.does is Does.CHANGES_UNSEEN:
            words = "A statement in the log may change rows of these tables: its session has set binlog_format"
            self._undone(event, words)
        elif said.does is Does.RENAMES:
            self._tables.snapshot.renames(query.text)
        elif said.does in (Does.BEGINS_HISTORY, Does.ENDS_HISTORY):
            self._history(event, said)
        elif said.does in (Does.FINISHES_XA, Does.UNDOES_XA):
            self._finish(event, said.prepared, undone=said.does is Does.UNDOES_XA)
        if self._wanted.schema_changes:
            self._schema_change(event, query)
        if said.does in _ENDS or (not self._is_explicit and said.does not in _WITHIN):
            self._end(self._with_this())

    def _schema_change(self, event: LogEvent, query: log_events.Query) -> None:
        """Behind what the same statement may have told of rows."""
        named = table_changes(query.lowered if self._wanted.has_small_names else query)
        if changed := [one for one in named if self._wanted.wants(one.table)]:
            self._add(event, 1, lambda spot: self._writer.schema_changed(changed, query.text, event, spot))

    def _history(self, event: LogEvent, said: Statement) -> None:
        """What the server says of a table now was not so before this place of the log."""
        table = said.table or TableName("", "")
        with_history = self._tables.with_history
        (with_history.add if said.does is Does.BEGINS_HISTORY else with_history.discard)(table)
        words = f"Table {table.database}.{table.table} became system-versioned, or is it no longer"
        self._undone(event, f"{words}: changes of it about this place were left out, or came with old versions of rows")

    def _finish(self, event: LogEvent, prepared: str, *, undone: bool) -> None:
        if prepared not in self._prepared:
            return
        self._prepared = tuple(one for one in self._prepared if one != prepared)
        if undone:
            self._undone(event, "A prepared transaction (XA) was rolled back, and its changes were delivered")

    def _undone(self, event: LogEvent, why: str) -> None:
        """Something that somebody has to know, at the place of the event; of one that is in no file, where it came."""
        at = event if event.end else event._replace(end=self._at.at - self._ahead, size=0)
        original = f"{self._file}:{at.begin}".encode()
        self._add(at, 0, lambda spot: self._writer.unreadable(why, None, event, original))

    def _loads(self, event: LogEvent) -> None:
        self._undone(event, "LOAD DATA is in the log as a statement: its session has set binlog_format")

    def _table(self, event: LogEvent) -> None:
        self._tables.table(event, is_mariadb=self._is_mariadb)

    def _rows(self, event: LogEvent) -> None:
        try:
            found = self._tables.changed(event)
        except DataError as error:
            raise DataError(error.what, where=f"{self._where}, {self._file}:{event.begin}") from None
        if found is not None:
            self._rows_of(found, event)

    def _rows_of(self, changed: ChangedTable, event: LogEvent) -> None:
        rows, table = log_events.rows_of(event), changed.table
        if why := table.unfit or _part_of(event, rows):
            self._add(
                event,
                0,
                lambda spot: self._writer.unreadable(why, table.name, event, rows.images),
                table.name,
                changed.stored_in,
            )
            return
        for place, images in enumerate(table.rows(rows)):
            made = partial(self._writer.change, table, changed.operation, images, event)
            self._add(event, place, made, table.name, changed.stored_in)

    def _add(
        self,
        event: LogEvent,
        row: int,
        made: Callable[[Spot], Event],
        table: TableName | None = None,
        stored_in: TableName | None = None,
    ) -> None:
        """`table` is that of a row, which the log may have as one that is `stored_in` another table."""
        number = self._offset_of(event) + row
        self._rows_within += 1
        if not row and not self._is_foreseen:
            self._taken.belongs(number, stored_in or table)
        if number < self._offset:
            if table is not None:
                self._writer.passed(table)
            return
        one = made(Spot(self._file, event.begin, (event.number or 0) + row))
        if kept := as_it_stands(self._undoing, number, stored_in or table, one) if self._is_foreseen else one:
            self._taken.add(number, kept)

    def _offset_of(self, event: LogEvent) -> int:
        return offset_of(self._at.file, event.place)

    def _keep_place(self) -> None:
        progress = self._tables.snapshot.progress
        ending = Ending(
            self._at,
            self._file,
            self._created,
            self._gtid,
            self._prepared,
            progress,
            self._ahead,
            self._gtids,
            self._server,
            self._gtid_at_s,
            self._moments,
            self._unknown,
        )
        self._whole = max(self._whole, self._at.offset)
        if len(self._ends) > self._fixed and not self._rows_within:
            self._ends[-1] = ending
        else:
            self._ends.append(ending)
        self._rows_within = 0


def _part_of(event: LogEvent, rows: RowsOf) -> str:
    """What of these rows the log does not have; empty where it has all."""
    if event.kind == log_events.PARTIAL_UPDATE:
        return "Its session has logged parts of JSON values alone: binlog_row_value_options"
    return "" if rows.is_whole else "Its session has logged a part of the columns: binlog_row_image"


_ENDS = (Does.COMMITS, Does.ROLLS_BACK, Does.FINISHES_XA, Does.UNDOES_XA)
_WITHIN = (Does.IS_WITHIN, Does.SAVES, Does.ROLLS_BACK_A_PART)
_TELLS: dict[int, Callable[[BinlogReader, LogEvent], None]] = {
    **dict.fromkeys(log_events.BEGINS, BinlogReader._begins),
    log_events.TABLE_MAP: BinlogReader._table,
    **dict.fromkeys(log_events.ROWS, BinlogReader._rows),
    **dict.fromkeys((log_events.PREVIOUS_GTIDS, log_events.GTID_LIST), BinlogReader._said_before),
    **dict.fromkeys((log_events.QUERY, log_events.QUERY_COMPRESSED), BinlogReader._statement),
    log_events.INCIDENT: BinlogReader._refuse,
    log_events.PACKED_TRANSACTION: lambda reader, event: None,
    log_events.EXECUTE_LOAD_QUERY: BinlogReader._loads,
    log_events.XID: BinlogReader._ends_transaction,
    log_events.XA_PREPARE: BinlogReader._prepares,
}
