"""A compressed file, read as if it were not: offsets are places in what it holds, not in the file.

What it holds can only be had from its beginning on. So for each file that is read a stream is kept open, from one range
to the next: going on costs what is read, going back costs everything before. How much a file holds is not known before
it is read through; each look goes a little ahead of what was read, and evidence keeps what it has found (`Packing`), so
that a process that has not read the file need not do it to plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from connect_core import clock
from connect_core.errors import ContentRefused
from connect_core.sdk.values import Json
from connect_core.systems.file import streams
from connect_core.systems.file.content import compression
from connect_core.systems.file.identity import (
    HEAD_BYTES,
    NO_PAST,
    TAIL_BYTES,
    Evidence,
    FileLook,
    FileVerdict,
    Former,
    OpenFile,
    Past,
    fingerprint,
    open_if_there,
    origin_of,
)
from connect_core.systems.file.streams import CUT, DAMAGED, ENDED, KEPT_HEAD_BYTES, MORE, Stream, Streams
from connect_core.systems.file.unpacking import MAGIC

AHEAD_S = 0.5
_LONGEST_LINE_BYTES = 1024 * 1024 * 1024
_KEPT_BEHIND_BYTES = 64 * 1024


@dataclass(frozen=True)
class Packing:
    """What was seen of a compressed file: its `size`, when it was `written`, and the fingerprint of its first bytes and
    of those before `at`, to where it was read. It holds `held` bytes as far as it was looked at; behind them is what
    `state` says; `lines` is behind the last whole line of these. `why` it is damaged. `made` is when the log was made
    that is in it, 0 where nobody saw that."""

    size: int
    written: int
    at: int
    print: str
    held: int
    lines: int
    state: str
    why: str = ""
    made: int = 0

    @classmethod
    def of(cls, seen: Evidence | Former) -> Packing | None:
        return cls(**seen.packed) if seen.packed else None

    def as_json(self) -> Json:
        return asdict(self)


def opener(kept: Streams) -> Callable[[str], OpenFile | None]:
    """Opens the file at a path: as a compressed one where its first bytes say that it is."""

    def opened(path: str) -> OpenFile | None:
        file = open_if_there(path)
        kind = compression(file) if file else ""
        return PackedFile(file, kept, kind) if file and kind in MAGIC else file

    return opened


class PackedFile(OpenFile):
    """A compressed file, open: `file`, which is closed with it."""

    may_be_followed = False

    def __init__(self, file: OpenFile, kept: Streams, kind: str) -> None:
        self.path, self.fd, self.dev, self.ino = file.path, file.fd, file.dev, file.ino
        self.kind, self._streams = kind, kept
        self._seen: Evidence | None = None
        """What was seen of it before, when it is as it was."""
        self._origin: str | None = None
        self._made = 0

    def size(self) -> int:
        """Of all that is in it: reads it through."""
        packing = self._packing_seen()
        if packing and packing.state == ENDED:
            return packing.held
        stream = self._stream()
        while stream.more(self):
            stream.forget(stream.end - streams.AHEAD_BYTES)
        return stream.end

    def size_since(self, former: Former) -> int:
        return former.offset if self._is_unchanged(Packing.of(former)) else self.size()

    def held(self) -> int:
        stream, packing = self._stream(), self._packing_seen()
        if packing and packing.held >= stream.end:
            return _at_least(packing.held, packing.state)
        return _at_least(stream.end, stream.state(self))

    def reaches(self, offset: int) -> bool:
        packing = self._packing_seen()
        return bool(packing and packing.held >= offset) or self.seek(offset)

    def is_whole(self) -> bool:
        """Whether what is in it has an end."""
        self.size()
        return self._stream().state(self) == ENDED

    def reached(self) -> int:
        """How far it was read in this process."""
        return self._stream().end

    def seek(self, offset: int, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Reads on to `offset`, as long as it `goes_on`. Whether it has come there."""
        stream = self._stream()
        if offset < stream.begin:
            stream = self._streams.at(self, self.kind, offset)
        while stream.end < offset:
            if not goes_on() or not stream.more(self):
                return False
            stream.forget(min(stream.end, offset) - _KEPT_BEHIND_BYTES)
        return True

    def bytes_at(self, offset: int, count: int) -> bytes:
        stream = self._stream()
        if offset + count <= KEPT_HEAD_BYTES:
            while len(stream.head) < offset + count and not stream.begin and stream.more(self):
                pass
            return stream.head[offset : offset + count]
        if not self.seek(offset):
            return b""
        stream = self._streams.at(self, self.kind, offset)
        stream.forget(offset - _KEPT_BEHIND_BYTES)
        while stream.end < offset + count and stream.more(self):
            pass
        if stream.damaged and stream.end < offset + count:
            raise self._damaged(stream.end, stream.damaged)
        return bytes(stream.kept[offset - stream.begin : offset - stream.begin + count])

    def look(self, begin: int) -> FileLook:
        """What it holds from `begin` on: goes ahead to a bound, and at least to the next line feed. Raises
        ContentRefused where damage is found, so that nothing more of it is read."""
        packing = self._packing_seen()
        if packing is None or not (packing.lines > begin or packing.state != MORE):
            packing = self._looked(begin, self._streams.ahead_bytes())
        lines = max(packing.lines, begin)
        if packing.state == DAMAGED or self._is_given_up(packing):
            raise self._damaged(packing.held, packing.why)
        if packing.state == CUT and packing.held < HEAD_BYTES:
            return FileLook(packing.held, begin)  # nothing says yet whose it is
        held = _at_least(packing.held, packing.state)
        return FileLook(held, lines, complete=packing.state == ENDED, partial=packing.state == MORE)

    def _looked(self, begin: int, most: int) -> Packing:
        stream = self._stream_at(begin)
        until = clock.monotonic() + AHEAD_S
        while (stream.end - begin < most and clock.monotonic() < until) or stream.lines <= begin:
            if stream.end - begin > _LONGEST_LINE_BYTES:
                raise ContentRefused(
                    f"A line in the compressed file ({self.kind}) is longer than {_LONGEST_LINE_BYTES} bytes",
                    where=f"{self.path}, byte {begin} of what it holds",
                    next_step="Narrow the pattern so that it is not named; nothing of it was read",
                )
            if stream.lines <= begin:
                stream.forget(stream.end - streams.AHEAD_BYTES)
            if not stream.more(self):
                break
        return self._packing(stream)

    def _stream(self) -> Stream:
        """Wherever it is."""
        return self._streams.there(self, self.kind)

    def _stream_at(self, offset: int) -> Stream:
        self.seek(offset)
        return self._streams.at(self, self.kind, offset)

    def _packing(self, stream: Stream) -> Packing:
        status = self.status()
        return Packing(
            size=status.st_size,
            written=status.st_mtime_ns,
            at=stream.read,
            print=self._print(stream.read),
            held=stream.end,
            lines=stream.lines,
            state=stream.state(self),
            why=stream.damaged,
            made=self.made,
        )

    def _print(self, at: int) -> str:
        """Of the file's first bytes, and of those before `at`."""
        count = min(TAIL_BYTES, at)
        return fingerprint(self.stored_at(0, min(HEAD_BYTES, at)) + self.stored_at(at - count, count))

    def _is_given_up(self, packing: Packing) -> bool:
        return packing.state == CUT and time.time() - packing.written / 1e9 > self._streams.unfinished_s

    def _damaged(self, held: int, why: str) -> ContentRefused:
        what = f"is damaged: {why}" if why else "ends in the middle"
        return ContentRefused(
            f"The file is compressed ({self.kind}) and {what}",
            where=f"{self.path}, behind byte {held:,} of what it holds",
            next_step="Put a whole one in its place: where nothing of this one was delivered it is read, else the next"
            " run asks. Or move it away",
        )

    def holds(self, offset: int, data: bytes) -> bool:
        return self._stream().stands_in(self)

    def begins_as(self, seen: Evidence | Former) -> bool:
        return self._is_unchanged(Packing.of(seen)) or super().begins_as(seen)

    def was_left(self, former: Former) -> bool:
        packing = Packing.of(former)
        if packing is None:
            return super().was_left(former)
        return self.is_as(former) and self._continues(packing)

    def tail(self, offset: int, count: int) -> str:
        return self._streams.tail(self, offset, count, lambda: super(PackedFile, self).tail(offset, count))

    def verdict(self, seen: Evidence) -> FileVerdict:
        packing = Packing.of(seen)
        if not self.is_as(seen):
            return FileVerdict.OTHER
        if packing is None:  # nothing was in it yet, or it was none
            return FileVerdict.DIFFERENT if seen.head_bytes or seen.offset else FileVerdict.SAME
        if self.status().st_size < packing.at:
            return FileVerdict.SHORTER
        if not self._continues(packing):
            return FileVerdict.DIFFERENT
        self._origin, self._made = seen.origin, packing.made
        if self._is_unchanged(packing):
            self._seen = seen
        return FileVerdict.SAME

    def taken_for(self, seen: Evidence | Former) -> None:
        """It is the file that was seen before it was compressed: its records keep the name of that one."""
        self._origin, self._made = seen.origin if isinstance(seen, Evidence) else "", seen.born

    @property
    def made(self) -> int:
        """Where nobody saw it, before the last write."""
        return self._made or min(self.born, self.status().st_mtime_ns)

    def _continues(self, packing: Packing) -> bool:
        return self._is_unchanged(packing) or (
            self.status().st_size >= packing.at and self._print(packing.at) == packing.print
        )

    def _is_unchanged(self, packing: Packing | None) -> bool:
        status = self.status()
        return packing is not None and (packing.size, packing.written) == (status.st_size, status.st_mtime_ns)

    def _packing_seen(self) -> Packing | None:
        """As long as it is as it was."""
        packing = Packing.of(self._seen) if self._seen else None
        return packing if self._is_unchanged(packing) else None

    def evidence(
        self, offset: int, end: int = 0, *, size: int = -1, finished: bool = False, past: Past = NO_PAST
    ) -> Evidence:
        before = self._packing_seen()
        if self._seen and before and self._seen.head_bytes:
            head_bytes, head = self._seen.head_bytes, self._seen.head
            origin = self._origin or ""
        else:
            first = self.bytes_at(0, min(HEAD_BYTES, max(offset, end)))
            head_bytes, head = len(first), fingerprint(first)
            origin = origin_of(self, first) if self._origin is None else self._origin
        packing = self._packing(self._stream())
        if before and (before.held, before.state != MORE) >= (packing.held, packing.state != MORE):
            packing = before
        return Evidence(
            path=self.path,
            dev=self.dev,
            ino=self.ino,
            head_bytes=head_bytes,
            head=head,
            offset=offset,
            tail_bytes=0,
            tail=fingerprint(b""),
            finished=finished,
            born=self.born,
            size=size,
            origin=origin,
            written=packing.written,
            packed=packing.as_json(),
            past=past,
            planned_end=end if end > offset else 0,
        )

    def looked_ahead(self, seen: Evidence) -> Evidence:
        """`seen`, with what stands behind it: who plans next need not read it for that."""
        packing = Packing.of(seen)
        if packing is None or packing.state != MORE or packing.lines - seen.offset > streams.AHEAD_BYTES // 2:
            return seen
        ahead = self._looked(seen.offset, streams.AHEAD_BYTES)
        return replace(seen, packed=ahead.as_json(), size=max(seen.size, ahead.held))


def was_readable(seen: Evidence) -> bool:
    """Whether there was something to read of the file that was seen: not of one whose beginning alone was written."""
    packing = Packing.of(seen)
    return packing is None or packing.state != CUT or (packing.lines > 0 and packing.held >= HEAD_BYTES)


def _at_least(held: int, state: str) -> int:
    """How much is in a file of which so much is known: one more, where more stands behind."""
    return held + (state == MORE)
