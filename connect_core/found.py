"""What `find` has seen in a target: the coordinates that are there, and where (delivery rules 6 and 7).

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

_COLUMNS = 4  # offset, ordinal, index of the target, position in the target
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


class Prefix(NamedTuple):
    """What a target tells that keeps progress rather than coordinates: each record of the range before the offset
    `through` is there, `records` of them from the range's begin. Of those behind it the next `unsure` may be there too,
    where the attempt that wrote them has died."""

    through: int = 0
    records: int = 0
    unsure: int = 0

    def within(self, begin: int, end: int) -> int:
        """The offset in [begin, end] before which all are there."""
        return max(begin, min(self.through, end))


NO_PREFIX = Prefix()


@dataclass(frozen=True)
class Found:
    """The records of one range that are in its targets.

    `hits` is an int64 array of shape (n, 4): offset, ordinal, index into `targets`, position; sorted by (offset,
    ordinal, position), one row for each copy; `traces` and `outputs` are those of its rows. `scanned` maps each target
    to the position behind the last one looked at. `complete` when every target was looked through to the end it had
    when the search began. `unplaced` counts the bytes that no receipt covers in a target that does not tell which
    records they are (a file). `late` counts copies of records before the range, which were settled before these came:
    surplus. `spread` are the targets that the range's outputs are shared out among, in order within each of them but
    not over all; empty where it has one, and one output of each record. `possible_repeats` is how many records of the
    range can at most have been there and be gone again, so that nobody knows whether they are delivered twice. A
    target that keeps progress has no hits but a `prefix`.
    """

    scanned: Mapping[str, int] = field(default_factory=dict)
    complete: bool = False
    targets: tuple[str, ...] = ()
    hits: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, _COLUMNS), dtype=np.int64))
    unplaced: int = 0
    late: int = 0
    spread: tuple[str, ...] = ()
    traces: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    possible_repeats: int = 0
    outputs: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    prefix: Prefix = NO_PREFIX

    def merged(
        self,
        rows: Sequence[tuple[int, int, str, int]] | Sequence[Hit],
        scanned: Mapping[str, int],
        complete: bool,
        late: int = 0,
        possible_repeats: int = 0,
    ) -> Found:
        """With more rows and the places reached by the slice that saw them."""
        hits_seen = [Hit(*row) for row in rows]
        targets = tuple(sorted({*self.targets, *(row.target for row in hits_seen)}))
        index = {name: i for i, name in enumerate(targets)}
        old = self.hits.copy()
        if len(old):
            old[:, 2] = np.array([index[name] for name in self.targets])[old[:, 2]]
        rows_seen = [(row.offset, row.ordinal, index[row.target], row.position) for row in hits_seen]
        hits = np.concatenate([old, np.array(rows_seen, dtype=np.int64).reshape(-1, _COLUMNS)])
        traces = np.concatenate([self.traces, np.array([row.trace for row in hits_seen], dtype=np.int64)])
        outputs = np.concatenate([self.outputs, np.array([row.outputs for row in hits_seen], dtype=np.int64)])
        order = np.lexsort((hits[:, 3], hits[:, 1], hits[:, 0]))
        return replace(
            self,
            scanned={**self.scanned, **scanned},
            complete=complete,
            targets=targets,
            hits=hits[order],
            late=self.late + late,
            traces=traces[order],
            outputs=outputs[order],
            possible_repeats=self.possible_repeats + possible_repeats,
        )

    def present(self, offsets: Numbers, ordinals: Numbers | None = None) -> NDArray[np.bool_]:
        """Boolean mask: which of these are there; `ordinals` are all 0 when left out."""
        if ordinals is None:
            return np.isin(offsets, self.hits[self.hits[:, 1] == 0, 0]) | (offsets < self.prefix.through)
        if not len(offsets) or not len(self.hits):
            before: NDArray[np.bool_] = offsets < self.prefix.through
            return before
        least, width = int(offsets.min()), int(max(ordinals.max(), self.hits[:, 1].max())) + 1
        near = self.hits[(self.hits[:, 0] >= least) & (self.hits[:, 0] <= offsets.max())]
        return np.isin((offsets - least) * width + ordinals, (near[:, 0] - least) * width + near[:, 1])

    def whole(self) -> Numbers:
        """The offsets of the records of which every output is there, in order."""
        if (self.outputs == 1).all():
            return np.unique(self.hits[:, 0]).astype(np.int64)
        rows = np.unique(np.column_stack([self.hits[:, :2], self.outputs]), axis=0)
        offsets, first, there = np.unique(rows[:, 0], return_index=True, return_counts=True)
        whole: Numbers = offsets[there >= rows[first, 2]]
        return whole

    def there(self) -> int:
        """How many outputs are there, each copy counted."""
        return len(self.hits) + self.prefix.records

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

    def surplus(self, end: int) -> int:
        """Copies of records below `end` beyond the first, those of records before the range included."""
        return int((self.hits[:, 0] < end).sum()) - self._hits_below(end) + self.late

    def lowest_from(self, end: int) -> dict[str, int]:
        """For each target, the lowest position of a record with offset >= `end`; targets without one are left out."""
        beyond = self.hits[self.hits[:, 0] >= end]
        return {
            name: int(rows[:, 3].min()) for i, name in enumerate(self.targets) if len(rows := beyond[beyond[:, 2] == i])
        }

    def encode(self) -> bytes:
        """For the ledger: a JSON line, then the columns as deltas (nearly constant, so that they shrink to little)."""
        head = {"scanned": dict(self.scanned), "complete": self.complete, "targets": self.targets}
        traced, fanned = bool(self.traces.any()), bool((self.outputs != 1).any())
        head |= {"unplaced": self.unplaced, "late": self.late, "spread": self.spread}
        head |= {"traced": 1} if traced else {}
        head |= {"fanned": 1} if fanned else {}
        head |= {"possible_repeats": self.possible_repeats} if self.possible_repeats else {}
        head |= {"prefix": self.prefix} if self.prefix != NO_PREFIX else {}
        deltas = np.diff(self.hits.T, axis=1, prepend=0) if len(self.hits) else self.hits.T
        columns = np.ascontiguousarray(deltas).tobytes() + (self.traces.tobytes() if traced else b"")
        columns += self.outputs.tobytes() if fanned else b""
        return json.dumps(head).encode() + b"\n" + zlib.compress(columns)

    @classmethod
    def decode(cls, data: bytes) -> Found:
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
            values.get("possible_repeats", 0),
            outputs,
            Prefix(*values.get("prefix", NO_PREFIX)),
        )
