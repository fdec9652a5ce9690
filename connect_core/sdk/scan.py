"""What `scan` has seen in a target: the coordinates that are there, and where (delivery rules 6 and 7).

A set, not a position: routing by key can store one record and lose the one before it. Kept in arrays because a range
may hold a million records. Values only; scanning is the sinks' business, storing the ledger's.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from connect_core.errors import Failure

_COLUMNS = 4  # offset, ordinal, index of the target, position in the target
_SEEN = 5  # offset, ordinal, position, trace, outputs: in one target
MAX_FURTHER_BYTES = 8 * 1024 * 1024
"""Of what stands behind a range so much is kept, packed: several million records, of most sources."""
Numbers = NDArray[np.int64]


class Hit(NamedTuple):
    """A record of ours in a target. `trace` is that of RECORD_SCHEMA, 0 for none; `outputs` is how many its input has
    in all."""

    offset: int
    ordinal: int
    target: str
    position: int
    trace: int = 0
    outputs: int = 1


class Piece(NamedTuple):
    """Rows of a target that stand behind the end of a range, packed: `rows` of them, of offsets from `first` to `last`
    (included)."""

    target: str
    rows: int
    first: int
    last: int
    data: bytes

    @classmethod
    def of(cls, target: str, rows: Numbers) -> Piece:
        """`rows` is of shape (n, 5): offset, ordinal, position, trace, outputs."""
        deltas = np.diff(rows.T, axis=1, prepend=0)
        packed = zlib.compress(np.ascontiguousarray(deltas).tobytes(), level=1)
        return cls(target, len(rows), int(rows[:, 0].min()), int(rows[:, 0].max()), packed)

    def unpacked(self) -> Numbers:
        columns = np.frombuffer(zlib.decompress(self.data), dtype=np.int64).reshape(_SEEN, -1)
        rows: Numbers = np.ascontiguousarray(np.cumsum(columns, axis=1).T)
        return rows


class Further(NamedTuple):
    """What stands in the targets behind the end of a range, for the ranges that come next: how many outputs, and which.
    `whole` is False when not all of them were kept: then they are looked for again."""

    outputs: int = 0
    pieces: tuple[Piece, ...] = ()
    whole: bool = True

    def with_more(self, pieces: Sequence[Piece]) -> Further:
        """Keeps all of them or none: a part would not say what is there."""
        together = (*self.pieces, *pieces)
        outputs = self.outputs + sum(piece.rows for piece in pieces)
        fit = sum(len(piece.data) for piece in together) <= MAX_FURTHER_BYTES
        return Further(outputs, together if fit else (), self.whole and fit)


NOTHING_FURTHER = Further()


class Prefix(NamedTuple):
    """What a target tells that keeps progress rather than coordinates: each record of the range before the offset
    `through` is there, `records` of them from the range's begin. Of those behind it the next `unsure` may be there too,
    where the attempt that wrote them has died. Those `without` are not there: stretches [begin, end) of offsets, in
    order, that were left out when their turn came (`sdk.sink.Outdating`). Nor are those `refused`, also such stretches,
    which the target did not take (`sdk.sink.Refusable`)."""

    through: int = 0
    records: int = 0
    unsure: int = 0
    without: tuple[tuple[int, int], ...] = ()
    refused: tuple[tuple[int, int], ...] = ()

    def within(self, begin: int, end: int) -> int:
        """The offset in [begin, end] before which all are there."""
        return max(begin, min(self.through, end))

    def refused_before(self, end: int) -> list[tuple[int, int]]:
        return [(begin, min(to, end)) for begin, to in self.refused if begin < end]

    def covers(self, offsets: Numbers) -> NDArray[np.bool_]:
        """Boolean mask: which of these are there by its word."""
        there: NDArray[np.bool_] = offsets < self.through
        for begin, end in (*self.without, *self.refused):
            there &= (offsets < begin) | (offsets >= end)
        return there

    @classmethod
    def of(
        cls,
        through: int,
        records: int,
        unsure: int,
        without: Sequence[Sequence[int]] = (),
        refused: Sequence[Sequence[int]] = (),
    ) -> Prefix:
        """As the ledger has it."""
        left_out, not_taken = (tuple((begin, end) for begin, end in runs) for runs in (without, refused))
        return cls(through, records, unsure, left_out, not_taken)


NO_PREFIX = Prefix()


@dataclass(frozen=True)
class ScanResult:
    """The records of one range that are in its targets.

    `hits` is an int64 array of shape (n, 4): offset, ordinal, index into `targets`, position; sorted by (offset,
    ordinal, position), one row for each copy; `traces` and `outputs` are those of its rows. Of what stands behind the
    range it has the lowest row of each target; the others are `further`, which the ledger does not keep. `scanned` maps
    each target to the position behind the last one looked at. `complete` when every target was looked through to the
    end it had when the search began. `unplaced` counts the bytes that no receipt covers in a target that does not tell
    which records they are (a file), and `unplaced_records` how many records these are at most. `late` counts copies of
    records before the range, which were settled before these came, and messages of ours that are damaged: duplicates.
    `spread` are the targets that share the range's outputs, in order within each of them but not over all; empty where
    it has one, and one output of each record. `possible_duplicates` is how many records of the range can at most be
    there twice without anybody knowing: they have been there and may be gone, or are damaged beyond recognition. A
    target that keeps progress has no hits but a `prefix`. `later` is, for each target that has one, where the first
    record of a later incarnation of the partition stands: it is ahead of whatever this one has there. `failure` is why
    nobody can say what of the range is there: it concerns its partition alone, and nothing else here counts then.
    `unknown` says that any record of the range may be there, and that this will never be known: it is written again.
    """

    scanned: Mapping[str, int] = field(default_factory=dict)
    complete: bool = False
    targets: tuple[str, ...] = ()
    hits: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, _COLUMNS), dtype=np.int64))
    unplaced: int = 0
    late: int = 0
    spread: tuple[str, ...] = ()
    traces: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    possible_duplicates: int = 0
    outputs: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    prefix: Prefix = NO_PREFIX
    further: Further = NOTHING_FURTHER
    later: Mapping[str, int] = field(default_factory=dict)
    failure: Failure | None = None
    unplaced_records: int = 0
    unknown: bool = False

    def merged(
        self,
        rows: Sequence[tuple[int, int, str, int]] | Sequence[Hit],
        scanned: Mapping[str, int],
        complete: bool,
        late: int = 0,
        possible_duplicates: int = 0,
    ) -> ScanResult:
        """With more rows and the places reached by the slice that saw them."""
        hits = [Hit(*row) for row in rows]
        seen = {
            target: np.array(
                [
                    (hit.offset, hit.ordinal, hit.position, hit.trace, hit.outputs)
                    for hit in hits
                    if hit.target == target
                ],
                dtype=np.int64,
            )
            for target in {hit.target for hit in hits}
        }
        return self.joined(seen, scanned, complete, late=late, possible_duplicates=possible_duplicates)

    def joined(
        self,
        seen: Mapping[str, Numbers],
        scanned: Mapping[str, int],
        complete: bool,
        *,
        further: Sequence[Piece] = (),
        late: int = 0,
        possible_duplicates: int = 0,
        later: Mapping[str, int] | None = None,
    ) -> ScanResult:
        """The same for many rows: `seen` are those of each target, of shape (n, 5): offset, ordinal, position, trace,
        outputs; of those behind the end of the range only the lowest, the others are `further`. Slices come in order:
        what was `later` before stays."""
        targets = tuple(sorted({*self.targets, *(target for target, rows in seen.items() if len(rows))}))
        index = {name: i for i, name in enumerate(targets)}
        old = self.hits.copy()
        if len(old):
            old[:, 2] = np.array([index[name] for name in self.targets])[old[:, 2]]
        parts = [np.column_stack([old, self.traces, self.outputs])]
        for target, rows in seen.items():
            if len(rows):
                place = np.full(len(rows), index[target], dtype=np.int64)
                parts.append(np.column_stack([rows[:, :2], place, rows[:, 2:]]))
        columns = np.concatenate(parts)
        columns = columns[np.lexsort((columns[:, 3], columns[:, 1], columns[:, 0]))]
        return replace(
            self,
            scanned={**self.scanned, **scanned},
            complete=complete,
            targets=targets,
            hits=np.ascontiguousarray(columns[:, :_COLUMNS]),
            late=self.late + late,
            traces=columns[:, _COLUMNS].copy(),
            outputs=columns[:, _COLUMNS + 1].copy(),
            possible_duplicates=self.possible_duplicates + possible_duplicates,
            further=self.further.with_more(further),
            later={**(later or {}), **self.later},
        )

    def onward(self, begin: int, end: int) -> ScanResult | None:
        """What is known of a range [begin, end) that comes behind the one that this was looked for; None when it has to
        be looked for."""
        if not self.complete or not self.further.whole or self.prefix != NO_PREFIX or self.unplaced or self.unknown:
            return None
        seen: dict[str, Numbers] = {}
        pieces: list[Piece] = []
        for target in sorted({*self.targets, *(piece.target for piece in self.further.pieces)}):
            near, far = self._from(target, begin, end)
            kept, behind = parted(near, end)
            if far and not (kept[:, 0] >= end).any():
                first, rest = parted(far[0].unpacked(), end)
                kept, far = np.concatenate([kept, first]), [*([Piece.of(target, rest)] if len(rest) else []), *far[1:]]
            seen[target] = kept
            pieces += [*([Piece.of(target, behind)] if len(behind) else []), *far]
        empty = ScanResult(dict(self.scanned), spread=self.spread, later=self.later)
        return empty.joined(seen, {}, True, further=pieces)

    def _from(self, target: str, begin: int, end: int) -> tuple[Numbers, list[Piece]]:
        """The rows of a target from `begin` on, by position, and what can stay packed because all of it is behind
        `end`."""
        own = np.empty((0, _SEEN), dtype=np.int64)
        if target in self.targets:
            mine = self.hits[:, 2] == self.targets.index(target)
            own = np.column_stack([self.hits[mine][:, [0, 1, 3]], self.traces[mine], self.outputs[mine]])
        here = [piece for piece in self.further.pieces if piece.target == target and piece.last >= begin]
        opened = [piece.unpacked() for piece in here if piece.first < end]
        rows = np.concatenate([own, *opened])
        rows = rows[rows[:, 0] >= begin]
        return rows[np.argsort(rows[:, 2], kind="stable")], [piece for piece in here if piece.first >= end]

    def present(self, offsets: Numbers, ordinals: Numbers | None = None) -> NDArray[np.bool_]:
        """Boolean mask: which of these are there; `ordinals` are all 0 when left out."""
        known = self.hits[:, 0]
        if ordinals is None:  # of equal offsets the lowest ordinal comes first
            places = np.searchsorted(known, offsets)
            near = self.hits[np.minimum(places, len(known) - 1)] if len(known) else np.full((len(offsets), 2), -1)
            there: NDArray[np.bool_] = (near[:, 0] == offsets) & (near[:, 1] == 0)
            return there | self.prefix.covers(offsets)
        if not len(offsets) or not len(known):
            return self.prefix.covers(offsets)
        least, most = int(offsets.min()), int(offsets.max())
        around = self.hits[np.searchsorted(known, least) : np.searchsorted(known, most, side="right")]
        width = int(max(ordinals.max(), around[:, 1].max(initial=0))) + 1
        return np.isin((offsets - least) * width + ordinals, (around[:, 0] - least) * width + around[:, 1])

    def whole(self) -> Numbers:
        """The offsets of the records of which every output is there, in order."""
        if (self.outputs == 1).all():
            return np.unique(self.hits[:, 0]).astype(np.int64)
        rows = np.unique(np.column_stack([self.hits[:, :2], self.outputs]), axis=0)
        offsets, first, there = np.unique(rows[:, 0], return_index=True, return_counts=True)
        whole: Numbers = offsets[there >= rows[first, 2]]
        return whole

    @property
    def has_nothing(self) -> bool:
        """Whether certainly no record of the range is there, and none of it that the target did not take."""
        doubtful = self.unknown or self.unplaced or self.late or self.possible_duplicates or self.failure
        return self.complete and not (self.there() or doubtful or any(self.prefix[2:]))

    def there(self) -> int:
        """How many outputs are there, each copy counted."""
        return len(self.hits) + self.further.outputs + self.prefix.records

    def traced(self) -> list[tuple[int, int]]:
        """Offset and trace of the records that have one and are whole, in order; one with several copies once."""
        rows = np.column_stack([self.hits[:, 0], self.traces])[self.traces > 0]
        rows = rows[np.isin(rows[:, 0], self.whole())]
        return [(int(offset), int(trace)) for offset, trace in np.unique(rows, axis=0)]

    def in_parts(self) -> int:
        """How many outputs are there of records that are not whole."""
        rows = self.hits[~np.isin(self.hits[:, 0], self.whole())]
        return len(np.unique(rows[:, :2], axis=0))

    def count_below(self, end: int) -> int:
        """How many different outputs of records below `end` are there; of a prefix all of them, since no `end` lies
        within one."""
        return self._hits_below(end) + self.prefix.records

    def _hits_below(self, end: int) -> int:
        return len(np.unique(self.hits[self.hits[:, 0] < end][:, :2], axis=0))

    def records_below(self, end: int) -> int:
        """How many records below `end` have an output there. A prefix counts outputs."""
        return len(np.unique(self.hits[self.hits[:, 0] < end, 0])) + self.prefix.records

    def behind_highest(self, begin: int, end: int) -> int:
        """The offset behind the highest one in [begin, end) that is there; `begin` when none is."""
        offsets = self.hits[:, 0]
        within = offsets[(offsets >= begin) & (offsets < end)]
        return int(within.max()) + 1 if len(within) else self.prefix.within(begin, end)

    def doubtful_from(self, begin: int, end: int) -> int:
        """The first of the offsets in [begin, end) of which, when it is not there, nobody can say whether it was ever
        written; `end` where this can be said of all. Before the highest one in a target everything that goes there was
        written: of several targets the one that got least far decides. Of one that is not whole it cannot be said."""
        if not self.spread:
            return end
        whole = self.whole()
        there = whole[(whole >= begin) & (whole < end)]
        without_hole = begin + int(np.argmin(np.append(there == np.arange(begin, begin + len(there)), False)))
        least = min(self._sure_in(target, whole) for target in self.spread)
        return max(without_hole, min(least, end))

    def _sure_in(self, target: str, whole: Numbers) -> int:
        """Behind the highest record in a target, or before it when an output of it is missing: that may go there."""
        here = self.hits[self.hits[:, 2] == self.targets.index(target), 0] if target in self.targets else ()
        highest = int(np.max(here, initial=-1))
        return highest + int(highest < 0 or np.isin(highest, whole))

    def duplicates(self, end: int) -> int:
        """Copies of records below `end` beyond the first, those of records before the range included."""
        return int((self.hits[:, 0] < end).sum()) - self._hits_below(end) + self.late

    def lowest_from(self, end: int) -> dict[str, int]:
        """For each target, the lowest position of a record with offset >= `end`, or of a later incarnation; targets
        without one are left out."""
        beyond = self.hits[self.hits[:, 0] >= end]
        lowest = {
            name: int(rows[:, 3].min()) for i, name in enumerate(self.targets) if len(rows := beyond[beyond[:, 2] == i])
        }
        return lowest | {name: min(place, lowest.get(name, place)) for name, place in self.later.items()}

    def encode(self) -> bytes:
        """For the ledger: a JSON line, then the columns as deltas (nearly constant, so that they shrink to little)."""
        head = {"scanned": dict(self.scanned), "complete": self.complete, "targets": self.targets}
        traced, fanned = bool(self.traces.any()), bool((self.outputs != 1).any())
        head |= {"unplaced": self.unplaced, "late": self.late, "spread": self.spread}
        head |= {"traced": 1} if traced else {}
        head |= {"fanned": 1} if fanned else {}
        head |= {"possible_duplicates": self.possible_duplicates} if self.possible_duplicates else {}
        head |= {"unplaced_records": self.unplaced_records} if self.unplaced_records else {}
        head |= {"further": self.further.outputs} if self.further.outputs else {}
        as_before = self.prefix if self.prefix.refused else self.prefix[:-1]  # former versions read it, too
        head |= {"prefix": as_before} if self.prefix != NO_PREFIX else {}
        head |= {"later": dict(self.later)} if self.later else {}
        head |= {"unknown": True} if self.unknown else {}
        deltas = np.diff(self.hits.T, axis=1, prepend=0) if len(self.hits) else self.hits.T
        columns = np.ascontiguousarray(deltas).tobytes() + (self.traces.tobytes() if traced else b"")
        columns += self.outputs.tobytes() if fanned else b""
        return json.dumps(head).encode() + b"\n" + zlib.compress(columns)

    @classmethod
    def decode(cls, data: bytes) -> ScanResult:
        head, _, body = data.partition(b"\n")
        values = json.loads(head)
        traced, fanned = bool(values.get("traced")), bool(values.get("fanned"))
        columns = np.frombuffer(zlib.decompress(body), dtype=np.int64).reshape(_COLUMNS + traced + fanned, -1)
        hits = np.ascontiguousarray(np.cumsum(columns[:_COLUMNS], axis=1).T)
        traces = columns[_COLUMNS].copy() if traced else np.zeros(len(hits), dtype=np.int64)
        outputs = columns[-1].copy() if fanned else np.ones(len(hits), dtype=np.int64)
        return cls(
            values["scanned"],
            values["complete"],
            tuple(values["targets"]),
            hits,
            values["unplaced"],
            values["late"],
            tuple(values.get("spread", ())),
            traces,
            values.get("possible_duplicates", 0),
            outputs,
            Prefix.of(*values.get("prefix", NO_PREFIX)),
            Further(values["further"], (), False) if "further" in values else NOTHING_FURTHER,
            values.get("later", {}),
            unplaced_records=values.get("unplaced_records", 0),
            unknown=values.get("unknown", False),
        )


def parted(rows: Numbers, end: int) -> tuple[Numbers, Numbers]:
    """Rows of one target (n, 5), by position: those of a range that ends at `end`, with the lowest of those behind it;
    and the others behind it."""
    behind = np.flatnonzero(rows[:, 0] >= end)
    kept = np.ones(len(rows), dtype=np.bool_)
    kept[behind[1:]] = False
    return rows[kept], rows[behind[1:]]
