"""What happens to the rows of tables, each change once, in the order of the log.

Offsets are places in the log (`reading`). The evidence of a position is the last place at or before it where a
transaction ended, and by what the log is known: when its file was begun. Nobody keeps the log for us: what was purged
before it was read is a loss, and so is what another log may have had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import chain

from pymysql.cursors import Cursor

from connect_core import clock
from connect_core.errors import ConfigError, Retriable
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.records import Partition
from connect_core.sdk.values import ORIGIN, Bounds, Gap, Json, Limit, Position, Range, SourceBatch
from connect_core.systems.mysql.binlog import chunks, notes
from connect_core.systems.mysql.binlog.change_writer import ChangeWriter
from connect_core.systems.mysql.binlog.chunk_tables import check_tables, check_writable, gone_of, tables_of
from connect_core.systems.mysql.binlog.dumping import SILENT_S, log_from, require_server
from connect_core.systems.mysql.binlog.gtid_states import GtidState, parsed_state
from connect_core.systems.mysql.binlog.gtids import numbered_by
from connect_core.systems.mysql.binlog.log_events import FIRST_EVENT, LogEvent
from connect_core.systems.mysql.binlog.logged_tables import WantedLog
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.reading import BinlogReader, Ending
from connect_core.systems.mysql.binlog.server_log import (
    LogFiles,
    LogPlace,
    begun_at,
    charsets_of,
    end_of,
    files_of,
    unfit_settings,
)
from connect_core.systems.mysql.binlog.server_tables import has_small_names, has_transactions, seen_tables
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.binlog.taking_over import NO_GTIDS, OtherLog, Unprovable, executed_state, short
from connect_core.systems.mysql.binlog.undoing import RollsBack
from connect_core.systems.mysql.binlog.unlogged import not_ordinary, unlogged
from connect_core.systems.mysql.connecting import connected, server_of, server_uid
from connect_core.systems.mysql.failures import understood
from connect_core.systems.tables.change_source import ChangeSource
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.snapshots import DueTable, Place, SnapshotProgress, told_gone

_LOOKS_EVERY_S = 60.0
"""Between two looks of a process that stays at what its tables are: a server may have many."""
_LOG_FILE, _PLACE, _CREATED, _GTID, _PREPARED, _SNAPSHOT = "log", "place", "created", "gtid", "prepared", "snapshot"
_WANTED, _AHEAD, _GTIDS, _SERVER, _GTID_AT = "wanted", "ahead", "gtids", "server", "gtid_at"
_UNKNOWN, _MOMENTS = "gtids_unknown", "moments"
"""Keys of the evidence."""


class MysqlChangesSource(ChangeSource):
    def __init__(self, options: MysqlChangesOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._where = where = options.address
        super().__init__(
            options, KeptConnection(lambda: connected(options, where), lambda: understood(where)), resources
        )
        self._reader: BinlogReader | None = None
        self._looks_at = self._reads_at = 0.0
        self._unfit = frozenset[TableName]()

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError("The log is not searched for a moment", next_step="Read the tables by a source of `mysql`")

    def evidence(self, wanted: Range, end: int) -> Json:
        if self._reader is None or end == wanted.begin:
            return wanted.evidence
        return {**wanted.evidence, **_as_json(self._reader.ending(end))}

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """The server keeps no account of who has read its log."""

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        """One that has not begun has asked for nothing."""
        if any(known.values()):
            with self._database.asking() as asking:
                chunks.forget(asking, self._options)
        return []

    # -------------------------------------------------------------------------------------------------- what there is

    def _look(self, asking: Cursor, at: Position | None) -> Bounds:
        for wrong, step in chain(unfit_settings(asking), self._never_come(asking)):
            raise ConfigError(f"Changes would be lost: {wrong}", where=self._where, next_step=step)
        before = _executed(asking) if at is None else None
        files = files_of(asking, self._where)
        if at is None:
            return self._at_begin(asking, files, 0, files.end, before.at_least() if before else None)
        if _PLACE not in at.evidence or at.offset < int(at.evidence[_PLACE]):
            at = self._at_its_file(files, at)
        ending = _ending_in(at)
        server = server_uid(asking)
        lost, behind = self._what_is_lost(files, ending, server)
        if ending.server and server and server != ending.server:
            try:
                log = OtherLog(self._options, self._where, files, server)
                return self._taken_over(at, ending, log, _executed(asking))
            except Unprovable as why:
                lost = (
                    f"another server answers, and where its log continues after what was read cannot be proven: {why}"
                )
        if lost:
            begin = self._at_begin(asking, files, at.incarnation + 1, behind)
            gap = Gap(at.incarnation, at.offset, None, lost)
            return Bounds(begin.incarnation, begin.begin, begin.oldest, begin.end, begin.evidence, (gap,))
        oldest, end = min(files.oldest.offset, at.offset), max(at.offset, _offset_of(files.end, ending))
        seen = Bounds(at.incarnation, at.offset, oldest, end, at.evidence)
        if at.evidence.get(_WANTED) != self._options.tables:
            return self._with_joined(asking, seen, ending.progress)
        return self._with_chunks(asking, seen, at, ending.progress)

    def _taken_over(self, at: Position, read: Ending, log: OtherLog, executed: GtidState | None) -> Bounds:
        """Reading goes on in the log of another server, behind the transactions that were read of the former one: the
        place is an offset of another log, so of another incarnation, also where both look alike: what comes behind it
        may have other places. Raises Unprovable where that cannot be proven."""
        if read.gtids is None or executed is None:
            if read.gtids is not None:
                raise Unprovable(f"it {NO_GTIDS}")
            why = read.unknown or "the former one did not say what was before the place where reading began (gtid_mode)"
            raise Unprovable(f"{why}, and its log has begun no other file since")
        if read.gtid_at_s and not read.gtid:
            raise Unprovable("the last transaction that was read has no GTID")
        if lacks := executed.lacks(read.gtids):
            raise Unprovable(f"it does not have transactions whose changes were delivered: {short(lacks)}")
        if at.offset != read.place.offset:
            raise Unprovable("a transaction was read in part")
        number, found = log.place_behind(read.gtids)
        log.check_same(number, found, dict(read.moments.values()))
        ending = read._replace(
            place=found.place(number),
            file=found.file,
            created=found.created,
            ahead=found.ahead,
            gtids=found.state,
            server=log.server,
            unknown="",
        )
        evidence, end = {**at.evidence, **_as_json(ending)}, _offset_of(log.files.end, ending)
        begin, incarnation = ending.place.offset, at.incarnation + 1
        reason = (
            f"the log of another server is read from {found.file}:{found.at} on: before that place are the transactions"
            f" that were read of the former one, and no others{f' (the last one is {read.gtid})' if read.gtid else ''}"
        )
        gap = Gap(incarnation, begin, begin, reason, warns=True)
        return Bounds(incarnation, begin, begin, max(begin, end), evidence, (gap,), partial=True, moved=True)

    def _with_joined(self, asking: Cursor, seen: Bounds, progress: SnapshotProgress) -> Bounds:
        """When the document names others than before: rows of those that join it come behind the others. What there is
        is read as before: the ledger must know first, and the next look goes on. An earlier version did not note whom
        the document named."""
        before = seen.evidence.get(_WANTED)
        joined: tuple[Place, ...] = ()
        if before is not None and self._options.snapshot == "initial":
            former = self._options.model_copy(update={"tables": before})
            joined = tuple(one for one in tables_of(asking, self._options) if not former.wants(TableName(*one)))
        more = progress.with_more(map(DueTable, joined))
        evidence = {**seen.evidence, _WANTED: self._options.tables, **_progress_as_json(more)}
        return replace(seen, evidence=evidence, chosen=True, partial=bool(more.tables))

    def _with_chunks(self, asking: Cursor, seen: Bounds, at: Position, progress: SnapshotProgress) -> Bounds:
        """Up to where the log ends, with the next chunks of a snapshot; and whether more will be there when that is
        read."""
        due = dict.fromkeys(one.place for one in progress.tables)
        lost = [one for one in gone_of(asking, [*due]) if self._options.wants(TableName(*one))]
        told = told_gone(seen, [".".join(one) for one in lost])
        if told.partial:  # before the log has it that no more are to come
            return told
        seen, there = told, notes.written(asking, self._options)
        ending = _ending_in(at)
        # What was said to a former server has a place of its log.
        said = [(_offset_of(LogPlace.of(one.at), ending), one.note) for one in there]
        behind = _offset_of(end_of(asking), ending) if there else 0
        to_come = [one for offset, one in said if at.offset <= offset <= behind]
        has_request = any(one.is_request for one in to_come)
        if progress.tables:
            if any(one.is_next(progress) and one.incarnation == at.incarnation for one in to_come):
                return replace(seen, partial=True)
            now = chunks.write_chunks(asking, self._options, progress, at.incarnation, self._where)
            end = max(at.offset, _offset_of(end_of(asking), ending))
            # A request may cancel what cannot be read: the look behind it says whether something is wrong still.
            beside = None if has_request else now.unfit
            return replace(seen, end=end, partial=now.more or has_request, waits=now.waits, beside=beside)
        if not to_come:
            notes.tidy(asking, self._options, there)
        return replace(seen, partial=has_request)

    def _never_come(self, asking: Cursor) -> Iterator[tuple[str, str]]:
        if clock.monotonic() >= self._looks_at:
            seen = seen_tables(asking, self._options)
            yield from not_ordinary(self._options, seen)
            yield from unlogged(asking, self._options, seen)
            self._looks_at = clock.monotonic() + _LOOKS_EVERY_S

    def _at_begin(
        self, asking: Cursor, files: LogFiles, incarnation: int, place: LogPlace, gtids: GtidState | None = None
    ) -> Bounds:
        file = files.names[place.file]
        created = begun_at(self._options, self._where, file)
        named = f"{self._where}.{created}.{place.offset}.{incarnation}"
        origin = hashlib.blake2b(named.encode(), digest_size=8).hexdigest()
        progress = SnapshotProgress.of(self._tables(asking))
        ending = Ending(place, file, created, progress=progress, gtids=gtids, server=server_uid(asking))
        evidence: Json = {ORIGIN: origin, _WANTED: self._options.tables, **_as_json(ending)}
        end = max(place.offset, files.end.offset)
        more = bool(progress.tables)
        return Bounds(incarnation, place.offset, place.offset, end, evidence, chosen=True, partial=more)

    def _tables(self, asking: Cursor) -> tuple[Place, ...]:
        """Whose rows are to come. Nothing is made for them before the ledger knows where the connector begins."""
        if self._options.snapshot == "never":
            return ()
        check_writable(asking, self._options, self._where)
        tables = tables_of(asking, self._options)
        check_tables(asking, tables, self._where)
        return tuple(tables)

    def _at_its_file(self, files: LogFiles, at: Position) -> Position:
        """A place that somebody has set: it may be within a transaction, and none is in two files."""
        place = LogPlace(LogPlace.of(at.offset).file, FIRST_EVENT)
        name = files.names.get(place.file, "")
        created = begun_at(self._options, self._where, name) if name else 0
        ending = Ending(place, name or f"{files.base}.{place.file:06}", created, progress=progress_of(at.evidence))
        return Position(at.incarnation, at.offset, {**at.evidence, **_as_json(ending)})

    def _what_is_lost(self, files: LogFiles, ending: Ending, server: str) -> tuple[str, LogPlace]:
        """Why what comes behind the position cannot be read, and from which place of the log on there is something that
        may not have been read."""
        place, oldest = ending.place, files.oldest
        if files.names.get(place.file) != ending.file:
            if place.file < oldest.file and files.base == ending.file.rpartition(".")[0]:
                return f"the server has purged {ending.file} of its log, and what was not read of it", oldest
            return f"the log has no file {ending.file}: it was begun again, or this is another server", oldest
        if begun_at(self._options, self._where, ending.file) != ending.created:
            return f"{ending.file} is another file now: the log was begun again, or this is another server", oldest
        if ending.at > files.sizes[place.file]:
            # The moment when a log was begun is in whole seconds: one begun again at once looks like the one before, so
            # may that of another server. A server that crashed, and lost the end of a file, begins the next one.
            words = f"{ending.file} is shorter than what was read of it: the server lost its end, or it was begun again"
            later = [one for one in files.sizes if one > place.file] if server and server == ending.server else []
            return words, LogPlace(min(later), FIRST_EVENT) if later else oldest
        return "", oldest

    # ------------------------------------------------------------------------------------------------ how it is read

    def _batches(self, wanted: Range, limit: Limit, idle_s: float) -> Iterator[SourceBatch]:
        options, begin = self._options, _ending_in(Position(wanted.incarnation, wanted.begin, wanted.evidence))
        with self._database.asking() as asking:
            charsets = charsets_of(asking, is_mariadb=server_of(asking.connection).is_mariadb)
            files = files_of(asking, self._where)
            begin = self._checked_there(asking, files, begin)
            left_out, small = self._left_out(asking), has_small_names(asking)
        read = WantedLog(
            lru_cache(options.wants),
            left_out,
            partial(_charset, charsets),
            self._rolls_back(),
            small,
            ours=options.database,
            connector=options.uid,
            schema_changes=options.schema_changes,
        )
        writer = ChangeWriter(options.database, schemas=options.schemas)
        reader = self._reader = BinlogReader(read, writer, begin, wanted.begin, self._where)

        def opens(file: str, at: int) -> AbstractContextManager[Iterator[LogEvent]]:
            silent_s = min(SILENT_S, max(1.0, limit.left_s() / 2))
            whose, following = begin.server, files.following
            return log_from(options, self._where, file, at, options.reader_id, whose, silent_s, following)

        left_bytes = wanted.max_bytes
        with closing(reader.batches(opens, wanted.end, wanted.max_records, limit, idle_s)) as batches:
            for batch in batches:
                yield batch
                left_bytes -= int(value_lengths(batch.records.column("value")).sum())
                if left_bytes <= 0:
                    return

    def _left_out(self, asking: Cursor) -> frozenset[TableName]:
        if clock.monotonic() >= self._reads_at:
            self._unfit = frozenset(seen_tables(asking, self._options).in_the_log)
            self._reads_at = clock.monotonic() + _LOOKS_EVERY_S
        return self._unfit

    def _rolls_back(self) -> RollsBack:
        @cache
        def of(table: TableName) -> bool | None:
            with self._database.asking() as asking:
                return has_transactions(asking, table)

        return of

    def _checked_there(self, asking: Cursor, files: LogFiles, begin: Ending) -> Ending:
        require_server(asking, begin.server, self._where)
        if files.names.get(begin.place.file) != begin.file:
            step = "The next run says what is lost"
            raise Retriable(f"{begin.file} is no longer in the log", where=self._where, next_step=step)
        return begin._replace(server=server_uid(asking))

    def _end(self, asking: Cursor) -> LogPlace:
        return end_of(asking)

    def _end_in(self, seen: Bounds) -> LogPlace:
        place, behind = LogPlace.of(seen.end), _ending_in(Position(seen.incarnation, seen.begin, seen.evidence))
        return place._replace(at=place.at - (behind.ahead if place.file == behind.place.file else 0))


def _offset_of(place: LogPlace, behind: Ending) -> int:
    """Of a place in the log, seen from one before it. It may be further on: nobody knows what is packed between them
    before that is read."""
    return place.offset + (behind.ahead if place.file == behind.place.file else 0)


def _executed(asking: Cursor) -> GtidState | None:
    return executed_state(asking, is_mariadb=server_of(asking.connection).is_mariadb)


def _charset(charsets: Mapping[int, str], collation: int) -> str:
    return charsets.get(collation, f"number {collation}")


def _as_json(ending: Ending) -> Json:
    return {
        _LOG_FILE: ending.file,
        _PLACE: ending.place.offset,
        _CREATED: ending.created,
        _GTID: ending.gtid,
        _PREPARED: [*ending.prepared],
        _AHEAD: ending.ahead,
        _GTIDS: None if ending.gtids is None else ending.gtids.text or ending.gtids.none,
        _SERVER: ending.server,
        _GTID_AT: ending.gtid_at_s,
        _MOMENTS: [*ending.moments.values()],
        _UNKNOWN: ending.unknown,
        **_progress_as_json(ending.progress),
    }


def _progress_as_json(progress: SnapshotProgress) -> Json:
    return {_SNAPSHOT: progress.as_json() if progress.tables else None}


def _ending_in(at: Position) -> Ending:
    said = at.evidence
    place, prepared, progress = LogPlace.of(int(said[_PLACE])), tuple(said.get(_PREPARED, ())), progress_of(said)
    gtids, gtid, at_s = said.get(_GTIDS), str(said.get(_GTID, "")), int(said.get(_GTID_AT, 0))
    # An earlier version noted that of the last transaction alone.
    moments = said.get(_MOMENTS, [(gtid, at_s)] if gtid and at_s else [])
    return Ending(
        place,
        said[_LOG_FILE],
        int(said[_CREATED]),
        gtid,
        prepared,
        progress,
        int(said.get(_AHEAD, 0)),
        None if gtids is None else parsed_state(gtids, is_mariadb=":" not in gtids),
        str(said.get(_SERVER, "")),
        at_s,
        {numbered_by(one): (one, int(moment)) for one, moment in moments},
        str(said.get(_UNKNOWN, "")),
    )


def progress_of(evidence: Json) -> SnapshotProgress:
    """How far a snapshot has come at a position."""
    said = evidence.get(_SNAPSHOT)
    return SnapshotProgress.parse(said) if said else SnapshotProgress()
