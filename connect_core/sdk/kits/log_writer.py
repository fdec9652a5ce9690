"""Batches behind each other in one log: what the writer of a `LogSink` does.

At most one batch is outstanding, and none follows one whose outcome is unknown: what a range has in a log is always the
first of what was to go there. Each answer is compared with the position that was expected. What others have written in
between is read back before `flush` returns. Records of the range among it are duplicates: a request of an attempt that
has died, which the target had kept back (delivery rule 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from connect_core import clock
from connect_core.errors import Retriable
from connect_core.sdk.batches import value_lengths, whole_records
from connect_core.sdk.kits.contract import method_of, must_be
from connect_core.sdk.kits.log_connection import LogConnection, StoredAt, slices
from connect_core.sdk.kits.log_marks import Mark, MarkRecogniser, marks
from connect_core.sdk.kits.log_standing import Anchor, check, rewound
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.records import Lineage
from connect_core.sdk.sink import OnRefused
from connect_core.sdk.spans import Span, extend, uncovered
from connect_core.sdk.values import Delivered, Json, Limit

_ROWS_AT_ONCE = 1_000


class Before(NamedTuple):
    """What is known of a log when a range begins to be written. `expected` is its end; `unread` are the spans before
    that in which nobody has looked for late requests; `anchors` is what has to stand in it; `stands` is the evidence
    of the newest record of the range that was found."""

    expected: int
    unread: tuple[Span, ...]
    anchors: tuple[Anchor, ...]
    stands: Json


class LogWriter:
    """A `sdk.sink.Writer`, and `Refusable`. `floor` names the log in floors and receipts; `others` says where other
    writers of the lane have written to this log by now."""

    def __init__(
        self,
        connection: LogConnection,
        log: str,
        floor: str,
        lineage: Lineage,
        before: Before,
        *,
        append_s: float,
        look_back: int,
        others: Callable[[], Sequence[Span]],
    ) -> None:
        self._connection, self._log, self._floor, self._lineage = connection, log, floor, lineage
        self._append_s, self._look_back, self._others = append_s, look_back, others
        self._expected, self._before, self._anchors = before.expected, before.unread, list(before.anchors)
        self._stands = before.stands
        self._between: list[Span] = []
        self._mixed = 0
        """So many rows of ours stand in the spans between: others wrote within the batch."""
        self._written: list[list[int]] = []
        self._rows = self._bytes = self._surplus = 0
        self._unknown = False
        """Whether nobody knows what became of the last batch."""
        self.on_refused: OnRefused | None = None

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        offsets, taken = records.column("offset").to_numpy(), 0
        while taken < len(records) and limit.quantum_left_s() > 0:
            behind = whole_records(offsets, min(taken + _ROWS_AT_ONCE, len(records)))
            self._append(records.slice(taken, behind - taken), limit)
            taken = behind
        return taken

    def flush(self, limit: Limit) -> Delivered:
        self._check_known()
        check(self._connection, self._log, self._floor, self._anchors)
        self._look(limit)
        return Delivered(
            records=self._rows,
            bytes=self._bytes,
            behind={self._floor: self._expected} if self._rows else {},
            where={self._floor: [list(span) for span in self._written]} if self._written else {},
            duplicates=self._surplus,
            stands={self._floor: self._stands} if self._stands else {},
        )

    def written(self) -> list[Span]:
        """Where nothing but this writer's batches stands."""
        return [(begin, end) for begin, end in self._written]

    def _append(self, records: pa.RecordBatch, limit: Limit) -> None:
        self._check_known()
        if limit.left_s() <= self._append_s:
            raise Retriable(
                "No time was left to learn the outcome of another batch",
                where=self._floor,
                next_step="The next attempt writes the rest",
            )
        each = marks(self._lineage, records)
        self._unknown = True
        try:
            place = self._connection.append(self._log, each, records)
        except RowsRefused as refusal:
            self._unknown = False
            self._append_in_halves(records, refusal, limit)
            return
        must_be(StoredAt, place, f"The answer of {method_of(self._connection, 'append')}")
        self._count(place, each, records)
        self._unknown = False

    def _append_in_halves(self, records: pa.RecordBatch, refusal: RowsRefused, limit: Limit) -> None:
        """Nothing of the batch is stored. It is appended in halves, in order, until the refused row is alone."""
        if self.on_refused is None:
            raise refusal
        if len(records) == 1:
            self.on_refused(records, refusal.kind, refusal.what)
            return
        half = len(records) // 2
        self._append(records.slice(0, half), limit)
        self._append(records.slice(half), limit)

    def _check_known(self) -> None:
        if self._unknown:
            raise Retriable(
                "The outcome of the last batch is unknown",
                where=self._floor,
                next_step="The next attempt checks the target for its records",
            )

    def _count(self, place: StoredAt, each: Sequence[str], records: pa.RecordBatch) -> None:
        if place.first < self._expected:
            raise rewound(self._floor, self._expected, place.first)
        if not self._rows:
            self._anchors.append(Anchor(place.first, each[0]))
        if place.first > self._expected:
            self._between.append((self._expected, place.first))
        alone = place.behind - place.first == len(records)
        if alone:
            extend(self._written, place.first, place.behind)
        else:
            self._between.append((place.first, place.behind))
            self._mixed += len(records)
        self._stands = (Anchor(place.behind - 1, each[-1]) if alone else Anchor(place.first, each[0])).evidence()
        self._expected = place.behind
        self._rows += len(records)
        self._bytes += int(value_lengths(records.column("value")).sum())

    def _look(self, limit: Limit) -> None:
        """Counts the copies of this range's records that this writer has not written."""
        deadline = clock.monotonic() + limit.left_s() - self._append_s
        for span in self._before:
            self._surplus += self._found_in(span, deadline, self._look_back)
        others = [*self.written(), *self._others()]
        for span in (rest for one in self._between for rest in uncovered(*one, others)):
            self._surplus += self._found_in(span, deadline)
        self._surplus -= self._mixed
        self._before, self._between, self._mixed = (), [], 0

    def _found_in(self, span: Span, deadline: float, most: int | None = None) -> int:
        """How many records of this lineage stand there; among the first `most` records alone, where that is given."""
        begin, end = span
        count = seen = 0
        recogniser = MarkRecogniser(self._lineage.uid, [self._lineage])
        for part in slices(self._connection, self._log, begin, end, deadline):
            count += sum(isinstance(found, Mark) for found in recogniser.read(part.entries))
            begin, seen = part.behind, seen + len(part.entries)
            if most is not None and seen >= most:
                return count
        if begin < end:
            raise Retriable(
                "No time was left to read what others wrote between our batches",
                where=f"{self._floor}, position {begin}",
                next_step="The next attempt checks all of it; give this log fewer writers",
            )
        return count
