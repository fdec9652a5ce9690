"""Reads a range of an open file as batches of lines, in bounded memory, and never hands over what may have changed.

Runs in the worker. Before each batch is handed over the file is looked at again through the same descriptor: one that
was cut or written over while it was read raises Retriable, and nobody sees anything of that batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from connect_core.errors import Retriable
from connect_core.sdk.batches import empty_records
from connect_core.sdk.values import Limit, Range, SourceBatch
from connect_core.systems.file.identity import Evidence, FileVerdict, OpenFile
from connect_core.systems.file.line_rules import LineRules
from connect_core.systems.file.lines import MAX_ORIGINAL_BYTES, line_batch, line_feeds, rejected_line

CHUNK_BYTES = 2 * 1024 * 1024
MAX_ROWS = 4_000


@dataclass(frozen=True)
class _Piece:
    """Whole lines as they stand in the file from `offset` on. `padded` says that the last line feed is not there.

    `too_long_end` is set for a line above the limit, of which `data` is the beginning: the place behind it.
    """

    data: bytes
    feeds: NDArray[np.int64]
    offset: int
    padded: bool = False
    too_long_end: int | None = None

    def ends(self) -> NDArray[np.int64]:
        """For each line the place behind it."""
        if self.too_long_end is not None:
            return np.array([self.too_long_end])
        ends: NDArray[np.int64] = self.offset + self.feeds + 1
        ends[-1] -= self.padded
        return ends

    def parts(self, rows: int) -> Iterator[_Piece]:
        """The same lines, at most `rows` to a piece."""
        if len(self.feeds) <= rows:
            yield self
            return
        for first in range(0, len(self.feeds), rows):
            yield self.between(first, min(first + rows, len(self.feeds)))

    def between(self, first: int, behind: int) -> _Piece:
        if first == 0 and behind == len(self.feeds):
            return self
        start = int(self.feeds[first - 1]) + 1 if first else 0
        feeds = self.feeds[first:behind]
        data = self.data[start : int(feeds[-1]) + 1]
        return _Piece(data, feeds - start, self.offset + start, self.padded and behind == len(self.feeds))

    def batch(self, rules: LineRules) -> SourceBatch:
        if self.too_long_end is not None:
            reject = rejected_line(self.data, self.offset, rules.max_bytes)
            places = np.array([[self.offset, self.too_long_end - self.offset]])
            return SourceBatch(empty_records(), self.too_long_end, rejects=(reject,), places=places)
        batch = line_batch(self.data, self.feeds, self.offset, rules, padded=self.padded)
        if self.padded and batch.places is not None:
            batch.places[-1, 1] -= 1  # the line feed that is not there
        return replace(batch, next_offset=int(self.ends()[-1]))

    def stands_in(self, file: OpenFile) -> bool:
        """Whether both ends of these bytes are in the file now, as they were read."""
        return file.holds(self.offset, self.data[:-1] if self.padded else self.data)


class RangeReader:
    """Iterates over the batches of one range; `seen` follows: what the file looked like behind the last batch."""

    def __init__(self, file: OpenFile, wanted: Range, seen: Evidence, limit: Limit, rules: LineRules) -> None:
        self.file, self.wanted, self.seen, self.limit, self.rules = file, wanted, seen, limit, rules

    def __iter__(self) -> Iterator[SourceBatch]:
        """Ends at the range's end, when its records or bytes are used up, or with the quantum. The first line is
        read whatever its size, so that every range makes progress."""
        wanted, records = self.wanted, self.wanted.max_records
        for piece in self._pieces():
            if self.limit.quantum_left_s() <= 0:
                return
            fits = int(np.searchsorted(piece.ends(), wanted.begin + wanted.max_bytes, side="right"))
            lines = min(max(fits, int(piece.offset == wanted.begin)), records)
            if not lines:
                return
            yield self._checked(piece if piece.too_long_end is not None else piece.between(0, lines))
            records -= lines
            if lines < len(piece.ends()):
                return

    def _checked(self, piece: _Piece) -> SourceBatch:
        batch = piece.batch(self.rules)
        if self.file.verdict(self.seen) is not FileVerdict.SAME or not piece.stands_in(self.file):
            raise changed(self.file, piece.offset)
        seen = self.file.evidence(batch.next_offset, finished=self.seen.finished, past=self.seen.past)
        self.seen = replace(seen, size=self.file.held())  # by now its path may lead nowhere: nobody could ask later
        return batch

    def _bytes(self, offset: int, most: int) -> bytes:
        """The next bytes of the range, which were there when it was planned."""
        count = min(most, self.wanted.end - offset)
        data = self.file.bytes_at(offset, count)
        if len(data) < count:
            raise changed(self.file, offset)
        return data

    def _pieces(self) -> Iterator[_Piece]:
        offset, end = self.wanted.begin, self.wanted.end
        while offset < end:
            piece = self._piece(offset)
            if piece is None:
                return
            yield from piece.parts(MAX_ROWS)
            offset = int(piece.ends()[-1])

    def _piece(self, offset: int) -> _Piece | None:
        """The whole lines of the next stretch; None when there is no whole line before the range's end."""
        end = self.wanted.end
        data = self._bytes(offset, CHUNK_BYTES)
        if b"\n" not in data and len(data) < end - offset:
            data = self._bytes(offset, max(CHUNK_BYTES, self.rules.max_bytes + 2))
        if b"\n" not in data and len(data) < end - offset:
            return self._too_long(offset, data)
        if self.seen.finished and offset + len(data) == end and not data.endswith(b"\n"):
            return _Piece(data + b"\n", line_feeds(data + b"\n"), offset, padded=True)
        whole = data[: data.rfind(b"\n") + 1]
        return _Piece(whole, line_feeds(whole), offset) if whole else None

    def _too_long(self, offset: int, data: bytes) -> _Piece | None:
        """Walks to the end of a line above the limit without keeping it."""
        behind = self.file.next_line(offset + len(data), self.wanted.end)
        if not self.seen.finished and self.file.bytes_at(behind - 1, 1) != b"\n":
            return None
        return _Piece(data[:MAX_ORIGINAL_BYTES], np.empty(0, dtype=np.int64), offset, too_long_end=behind)


def changed(file: OpenFile, offset: int) -> Retriable:
    """What is there is not what was planned or read before."""
    return Retriable(
        "The file was cut or written over while it was read",
        where=f"{file.path}, byte {offset}",
        next_step="Nothing of it was used; the next plan looks at the file afresh",
    )
