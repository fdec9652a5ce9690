"""What happens to the rows of tables, each change once, in the order of commits.

Changes are numbered as they come out of the slot. The evidence of a position is the last place in the log at or before
it where a transaction ended, with the number of the change behind it. The slot keeps all that is behind the position
that is settled: it is moved on by the driver alone, after the ledger knows it. So what it no longer gives was lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime

from psycopg2.errors import LockNotAvailable
from psycopg2.extensions import cursor

from connect_core.errors import ConfigError, DataError, Retriable
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.records import Partition
from connect_core.sdk.values import ORIGIN, Bounds, Gap, Json, Limit, Position, Range, SourceBatch
from connect_core.systems.postgresql.catalog import primary_key
from connect_core.systems.postgresql.changes import publications, slots
from connect_core.systems.postgresql.changes.chunk_tables import check_tables, gone_of
from connect_core.systems.postgresql.changes.chunks import close_watermark, write_chunks
from connect_core.systems.postgresql.changes.messages import Relation
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.reading import ChangeReader, Place
from connect_core.systems.postgresql.changes.slots import ServerLog, Slot
from connect_core.systems.postgresql.changes.snapshot_requests import say_request
from connect_core.systems.postgresql.connecting import connected, transaction
from connect_core.systems.postgresql.failures import made, understood
from connect_core.systems.tables.change_source import ChangeSource
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.snapshots import (
    ChunksWritten,
    DueTable,
    SnapshotProgress,
    SnapshotRequest,
    told_gone,
)
from connect_core.systems.tables.snapshots import Place as TablePlace

MOST_MESSAGES = 500_000
"""That a look counts: what is behind them is for the next one."""
_MOVED = 1 << 20
"""Bytes of log without a change of these tables behind which the slot is moved on all the same: it must not hold up
what other tables write."""
_CLUSTER, _SLOT, _TIMELINE, _PUBLISHED, _WANTED = "cluster", "slot", "timeline", "published", "wanted"
_AT, _LSN, _SNAPSHOT = "at", "lsn", "snapshot"
"""Keys of the evidence."""


class PostgresChangesSource(ChangeSource):
    def __init__(self, options: PostgresChangesOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._where = where = f"{options.address}, slot {options.slot_name}"
        super().__init__(
            options, KeptConnection(lambda: connected(options, where), lambda: understood(where)), resources
        )
        self._reader: ChangeReader | None = None

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise ConfigError(
            "A slot gives nothing again that is settled", next_step="Read the tables by a source of `postgresql`"
        )

    def evidence(self, wanted: Range, end: int) -> Json:
        if self._reader is None or end == wanted.begin:
            return wanted.evidence
        return {**wanted.evidence, **_as_json(self._reader.place(end))}

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """While a worker follows, the slot is its: a later look moves it on."""
        if at := positions.get(self._partition):
            with self._database.asking() as asking:
                slot, place = slots.look_at_slot(asking, self._options, self._where), _place_in(at)
                if slot is not None and place is not None and not slot.is_lost and slot.active_pid is None:
                    self._move(asking, slot, place)

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        """Drops what was made for this connector."""
        options = self._options
        with self._database.asking() as asking:
            if options.slot is None:
                slots.drop_slot(asking, options, self._where)
            if options.publication is None:
                publications.drop_publication(asking, options)
        if options.slot is None:
            return []
        return [f"Slot {options.slot} of {options.address} stays and holds the log: {slots.dropping(options.slot)}"]

    # -------------------------------------------------------------------------------------------------- what there is

    def _look(self, asking: cursor, at: Position | None) -> Bounds:
        log = slots.look_at_log(asking, self._where)
        slot = slots.look_at_slot(asking, self._options, self._where)
        if at is None:
            return self._unread(asking, log, slot)
        place = _place_in(at)
        if place is None:
            return self._begun(asking, at, log)
        gone = self._gone(asking, at)
        self._keep_publication(asking, gone, at.evidence.get(_PUBLISHED, {}))
        published = self._published(asking, at)
        lost, behind = self._what_is_lost(at, place, log, slot, published)
        if lost or slot is None:
            gap = Gap(at.incarnation, at.offset, None, lost)
            begin = self._at_begin(asking, at.incarnation + 1, log, behind)
            return replace(begin, evidence={**begin.evidence, _PUBLISHED: published}, gaps=(gap,), chosen=False)
        slots.wait_until_free(asking, self._options, self._where)
        self._move(asking, slot, place)
        evidence = {**at.evidence, _SLOT: self._options.slot_name, _TIMELINE: log.timeline, _PUBLISHED: published}
        offset, gaps = at.offset, tuple[Gap, ...]()
        if at.offset < place.number:
            reason = "the slot gives nothing again that was settled"
            offset, gaps = place.number, (Gap(at.incarnation, at.offset, place.number, reason),)
        seen = self._told_and_counted(
            asking, Bounds(at.incarnation, offset, offset, offset, evidence, gaps), place, gone
        )
        waits = "; ".join(one for one in (_are_gone(gone), seen.waits) if one)
        beside = publications.unfit_identity(asking, self._options, self._where) or seen.beside
        return self._with_joined(asking, replace(seen, waits=waits, beside=beside), at.evidence.get(_WANTED))

    def _with_joined(self, asking: cursor, seen: Bounds, before: list[str] | None) -> Bounds:
        """When the document names others of a publication of others than before: rows of those that join it come behind
        the others. The ledger must know first, and the next look goes on. An earlier version did not note whom the
        document named. In a publication of ours a table joins with a request (`_keep_publication`)."""
        now = self._options.tables
        evidence = {**seen.evidence, _WANTED: now}
        if before == now or self._options.publication is None:
            return replace(seen, evidence=evidence)
        joined: tuple[TablePlace, ...] = ()
        if before is not None and self._options.snapshot == "initial":
            former = self._options.model_copy(update={"tables": before})
            joined = tuple(one for one in publications.tables_of(asking, self._options) if not former.wants(*one))
        more = progress_of(seen.evidence).with_more(map(DueTable, joined))
        evidence[_SNAPSHOT] = more.as_json() if more.tables else None
        return replace(seen, evidence=evidence, chosen=True, partial=bool(more.tables))

    def _gone(self, asking: cursor, at: Position) -> list[TablePlace]:
        """Tables of the document that were there once: dropped, or under another name."""
        missing, known = publications.missing_tables(asking, self._options.named()), at.evidence.get(_PUBLISHED, {})
        return [one for one in missing if publications.words([one]) in known or self._options.publication]

    def _keep_publication(self, asking: cursor, gone: Collection[TablePlace], known: Collection[str]) -> None:
        """Rows of tables that join it come, too, behind where their changes begin. While somebody has locked a table of
        a publication of others, the server does not say which ones it has: the next look asks again."""
        with made(self._where):
            try:
                with transaction(asking):
                    joined = publications.keep_publication(asking, self._options, self._where, gone)
                    new = [one for one in joined if publications.words([one]) not in known]
                    if new and self._options.snapshot == "initial":
                        say_request(asking, self._options, SnapshotRequest(tuple(map(DueTable, new))))
            except LockNotAvailable:
                if self._options.publication is None:
                    raise

    def _published(self, asking: cursor, at: Position) -> dict[str, str]:
        """One that is not in it is known as it was: so it is noticed when another one has its name, or it is back."""
        known, named = at.evidence.get(_PUBLISHED, {}), [publications.words([one]) for one in self._options.named()]
        published = publications.publication_forms(asking, self._options)
        return {**{one: known[one] for one in named if one in known}, **published}

    def _check_rows(self, asking: cursor) -> None:
        """While a document may still say that only changes come."""
        if self._options.snapshot == "initial":
            check_tables(asking, self._options, publications.tables_of(asking, self._options), self._where)

    def _unread(self, asking: cursor, log: ServerLog, slot: Slot | None) -> Bounds:
        """Makes nothing: that is for when the ledger knows where the connector begins."""
        self._check_rows(asking)
        begin = self._at_begin(asking, 0, log, slot.confirmed if slot and not slot.is_lost else None)
        place = _place_in(Position(0, 0, begin.evidence))
        if place is None or not publications.is_published(asking, self._options):
            return begin
        counted = slots.count_changes(asking, self._options, self._where, log.end, MOST_MESSAGES)
        evidence = {**begin.evidence, _PUBLISHED: publications.publication_forms(asking, self._options)}
        more = counted.more or bool(place.progress.tables)
        return replace(begin, end=counted.changes, evidence=evidence, partial=more)

    def _at_begin(self, asking: cursor, incarnation: int, log: ServerLog, lsn: int | None) -> Bounds:
        """From this place of the log on; None where there is no slot: it is made once the ledger knows."""
        evidence: Json = {_CLUSTER: log.cluster, _SLOT: self._options.slot_name, _WANTED: self._options.tables}
        if lsn is not None:
            named = f"{log.cluster}.{self._options.slot_name}.{lsn}.{incarnation}"
            origin = hashlib.blake2b(named.encode(), digest_size=8).hexdigest()
            tables = publications.tables_of(asking, self._options) if self._options.snapshot == "initial" else ()
            place = Place(0, lsn, SnapshotProgress.of(tables))
            evidence |= {ORIGIN: origin, _TIMELINE: log.timeline, **_as_json(place)}
        return Bounds(incarnation, 0, 0, 0, evidence, chosen=True)

    def _begun(self, asking: cursor, at: Position, log: ServerLog) -> Bounds:
        """Makes what is missing of publication and slot, in this order: the slot must know the publication. It begins
        where nothing was read yet."""
        self._check_rows(asking)
        with made(self._where):
            publications.keep_publication(asking, self._options, self._where)
        slots.wait_until_free(asking, self._options, self._where)
        slot = slots.look_at_slot(asking, self._options, self._where)
        if slot is not None and slot.is_lost:
            slots.drop_slot(asking, self._options, self._where)
            slot = None
        if slot is None:
            slots.make_slot(asking, self._options, self._where)
            slot = slots.look_at_slot(asking, self._options, self._where)
        begin = self._at_begin(asking, at.incarnation, log, slot.confirmed if slot else None)
        place = _place_in(Position(at.incarnation, 0, begin.evidence)) or Place(0, 0)
        evidence = {**begin.evidence, _PUBLISHED: publications.publication_forms(asking, self._options)}
        return replace(self._counted(asking, at.incarnation, 0, place, evidence), chosen=True)

    def _told_and_counted(self, asking: cursor, begin: Bounds, place: Place, gone: Collection[TablePlace]) -> Bounds:
        """What says that rows of tables never come is settled before the log has it that no more are to come."""
        lost = [one for one in gone_of(asking, place.progress) if one not in gone and self._options.wants(*one)]
        told = told_gone(begin, [".".join(one) for one in lost])
        left = [one.place for one in place.progress.tables] if told.partial else gone
        seen = self._counted(asking, begin.incarnation, begin.begin, place, told.evidence, told.gaps, left)
        return replace(seen, partial=seen.partial or told.partial)

    def _counted(
        self,
        asking: cursor,
        incarnation: int,
        offset: int,
        place: Place,
        evidence: Json,
        gaps: tuple[Gap, ...] = (),
        gone: Collection[TablePlace] = (),
    ) -> Bounds:
        """With what is behind the place, at which the slot is."""
        upto, _ = slots.end_of_log(asking)
        counted = slots.count_changes(asking, self._options, self._where, upto, MOST_MESSAGES)
        now = ChunksWritten(False)
        # A position may be where a chunk ends, and have its place before it: then that chunk is counted, and was read.
        has_chunk_to_come = counted.has_chunk and place.number + counted.changes > offset
        if place.progress.tables and not has_chunk_to_come and not counted.more:
            now = write_chunks(asking, self._options, place.progress, gone, self._where)
            if counted.has_request and not now.more:
                close_watermark(asking, self._options)
            upto, _ = slots.end_of_log(asking)
            counted = slots.count_changes(asking, self._options, self._where, upto, MOST_MESSAGES)
        end = place.number + counted.changes
        if end < offset:
            raise DataError(
                f"The slot gives {counted.changes:,} changes, and {offset - place.number:,} were read before",
                where=self._where,
                next_step="Was the publication made again? To read on from another place: waybill offsets set",
            )
        empty = not counted.changes and upto - place.lsn >= _MOVED and not gaps
        if empty:
            evidence = {**evidence, **_as_json(Place(offset, upto, place.progress))}
        more = counted.more or counted.has_request or now.more or has_chunk_to_come
        seen = Bounds(incarnation, offset, offset, end, evidence, gaps, partial=more, chosen=empty)
        # A request may cancel what cannot be read: the look behind it says whether something is wrong still.
        has_request_to_come = counted.has_request and end > offset
        return replace(seen, waits=now.waits, beside=None if has_request_to_come else now.unfit)

    def _what_is_lost(
        self, at: Position, place: Place, log: ServerLog, slot: Slot | None, published: Mapping[str, str]
    ) -> tuple[str, int | None]:
        """Why what comes behind the position cannot be read, and from which place of the log on there is something."""
        gone = self._log_is_gone(at, log, slot)
        if slot is None or gone:
            return gone, slot.confirmed if slot and not slot.is_lost else None
        if slot.confirmed > place.lsn:
            moved = "made again, or moved on: by another program, or by this connector before its ledger was restored"
            return f"slot {self._options.slot_name} was {moved}", slot.confirmed
        known = int(at.evidence.get(_TIMELINE, log.timeline))
        if known != log.timeline:
            left_at = slots.left_timeline(self._options, self._where, known, log.timeline)
            if left_at is None or place.lsn > left_at:
                lacks = "a standby has taken over, and lacks what was read last"
                return lacks, slot.confirmed if left_at is None else left_at
        elif place.lsn > log.end:
            return "the server was put back to what it was before it wrote what was read last", slot.confirmed
        before = at.evidence.get(_PUBLISHED, {})
        if altered := [one or "the publication" for one in before if published.get(one, before[one]) != before[one]]:
            return f"{altered[0]} was not in the publication for a while, or was altered in it", place.lsn
        return "", place.lsn

    def _log_is_gone(self, at: Position, log: ServerLog, slot: Slot | None) -> str:
        """Why nothing of the log that was read until this position can be read."""
        now = self._options.slot_name
        former = at.evidence.get(_SLOT, now)
        stays = f"slot {former} holds the log until it is dropped there: {slots.dropping(former)}"
        if at.evidence.get(_CLUSTER) != log.cluster:
            return f"this is another database; in the former one {stays}"
        if slot is None:
            return f"slot {now} was dropped" if former == now else f"there is no slot {now} yet, and {stays}"
        return "the server has removed the log that the slot kept (max_slot_wal_keep_size)" if slot.is_lost else ""

    def _move(self, asking: cursor, slot: Slot, place: Place) -> None:
        if place.lsn > slot.confirmed:
            slots.move_slot(asking, self._options, place.lsn)

    # ------------------------------------------------------------------------------------------------ how it is read

    def _batches(self, wanted: Range, limit: Limit, idle_s: float) -> Iterator[SourceBatch]:
        place = _place_in(Position(wanted.incarnation, wanted.begin, wanted.evidence))
        if place is None:
            raise self._changed("The range was planned before there was a slot")
        with self._database.asking() as asking:
            slot = slots.look_at_slot(asking, self._options, self._where)
            if slot is None or slot.is_lost or slot.confirmed > place.lsn:
                raise self._changed("The slot was dropped or made again after this range was planned")
            slots.wait_until_free(asking, self._options, self._where)
        reader = self._reader = ChangeReader(self._options, self._where, place, wanted.begin, self._primary_key)
        most, left_bytes, given = wanted.begin + wanted.max_records, wanted.max_bytes, False
        with closing(reader.batches(min(wanted.end, most), limit, idle_s)) as batches:
            for batch in batches:
                torn = reader.place(batch.next_offset).number < batch.next_offset
                if given and torn and batch.next_offset == most:
                    return
                yield batch
                given = True
                left_bytes -= int(value_lengths(batch.records.column("value")).sum())
                if left_bytes <= 0:
                    return

    def _primary_key(self, relation: Relation) -> Collection[str]:
        with self._database.asking() as asking:
            return primary_key(asking, relation.oid)

    def _changed(self, what: str) -> Retriable:
        return Retriable(what, where=self._where, next_step="The next run reports what was lost")

    def _end(self, asking: cursor) -> int:
        return slots.end_of_log(asking)[0]

    def _end_in(self, seen: Bounds) -> object:
        """A position is no place in the log."""
        return self._end_of_log()


def _are_gone(tables: Collection[TablePlace]) -> str:
    if not tables:
        return ""
    return f"there is no table {publications.words(tables)}: if it is gone for good, take it out of `tables`"


def _as_json(place: Place) -> Json:
    return {_AT: place.number, _LSN: place.lsn, _SNAPSHOT: place.progress.as_json() if place.progress.tables else None}


def _place_in(at: Position) -> Place | None:
    """None where the slot was not there when the position was chosen."""
    if _LSN not in at.evidence:
        return None
    return Place(int(at.evidence[_AT]), int(at.evidence[_LSN]), progress_of(at.evidence))


def has_begun(evidence: Json | None) -> bool:
    """Whether there was a slot when the position was chosen."""
    return evidence is not None and _LSN in evidence


def progress_of(evidence: Json) -> SnapshotProgress:
    """How far a snapshot has come at a position."""
    said = evidence.get(_SNAPSHOT)
    return SnapshotProgress.parse(said) if said else SnapshotProgress()
