"""What compressed files hold, each from its beginning on: the streams of one process, kept open from range to range."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from connect_core import clock
from connect_core.systems.file.identity import TAIL_BYTES, OpenFile
from connect_core.systems.file.unpacking import INPUT_BYTES, DamagedPacking, Unpacker

AHEAD_BYTES = 16 * 1024 * 1024
"""So far a look goes ahead of what was read."""
LEAST_AHEAD_BYTES = 256 * 1024
"""So far when there is no time left."""
KEPT_HEAD_BYTES = 8 * 1024
_FIRST_INPUT_BYTES = 16 * 1024
_MOST_STREAMS = 64
_MOST_BYTES = 96 * 1024 * 1024
"""So many streams are kept open, and so much of what came of them."""

ENDED, MORE, CUT, DAMAGED = "ended", "more", "cut", "damaged"
"""What is behind what was looked at: nothing; more; the end of the compressed file, where its content has none; bytes
that are of no such file."""


class Stream:
    """What one compressed file holds, from its beginning to where it was asked for; the last stretch of it is kept."""

    def __init__(self, kind: str) -> None:
        self._unpacker = Unpacker(kind)
        self.read = 0
        """So much of the file was read."""
        self.begin = 0
        self.kept = bytearray()
        """What stands from `begin` on."""
        self.head = b""
        self.lines = 0
        """The place behind the last line feed."""
        self.damaged = ""
        self._last = b""

    @property
    def end(self) -> int:
        return self.begin + len(self.kept)

    def more(self, file: OpenFile) -> bool:
        """Goes one step on. False when there is nothing more now."""
        if self.damaged:
            return False
        data = b""
        if self._unpacker.wants:
            data = file.stored_at(self.read, INPUT_BYTES if self.read else _FIRST_INPUT_BYTES)
            if not data:
                return False
            self.read += len(data)
            self._last = (self._last + data)[-TAIL_BYTES:]
        try:
            plain = self._unpacker.feed(data)
        except DamagedPacking as error:
            self.damaged = str(error)
            return False
        found = plain.rfind(b"\n")
        self.lines = self.end + found + 1 if found >= 0 else self.lines
        self.kept += plain
        if len(self.head) < KEPT_HEAD_BYTES and self.begin == 0:
            self.head = bytes(self.kept[:KEPT_HEAD_BYTES])
        return True

    def forget(self, before: int) -> None:
        count = min(before - self.begin, len(self.kept))
        if count > 0:
            del self.kept[:count]
            self.begin += count

    def stands_in(self, file: OpenFile) -> bool:
        """Whether what was read of the file is still there."""
        return file.stored_at(self.read - len(self._last), len(self._last)) == self._last

    def state(self, file: OpenFile) -> str:
        """Of what is behind, when there is nothing more."""
        if self.damaged:
            return DAMAGED
        if not self._unpacker.wants or self.read < file.status().st_size:
            return MORE
        return ENDED if self._unpacker.whole else CUT


class Streams:
    """The streams of one source: those that were used last are kept. `unfinished_s` is after what time a file without
    an end counts as damaged."""

    def __init__(self, unfinished_s: float = 0) -> None:
        self.unfinished_s = unfinished_s
        self._streams: OrderedDict[tuple[int, int, int], Stream] = OrderedDict()
        self._tails: dict[tuple[int, ...], str] = {}
        self._ahead_until = 0.0

    def begin_look(self, seconds: float) -> None:
        """For so long looks go far ahead."""
        self._ahead_until = clock.monotonic() + seconds

    def ahead_bytes(self) -> int:
        return AHEAD_BYTES if clock.monotonic() < self._ahead_until else LEAST_AHEAD_BYTES

    def at(self, file: OpenFile, kind: str, offset: int) -> Stream:
        """The stream of the file, which has not passed `offset`."""
        key = (file.dev, file.ino, file.born)
        stream = self._streams.get(key)
        if stream is None or stream.begin > offset or not stream.stands_in(file):
            stream = self._streams[key] = Stream(kind)
        self._streams.move_to_end(key)
        while len(self._streams) > 1 and (
            len(self._streams) > _MOST_STREAMS or sum(len(one.kept) for one in self._streams.values()) > _MOST_BYTES
        ):
            self._streams.popitem(last=False)
        return stream

    def there(self, file: OpenFile, kind: str) -> Stream:
        """The stream of the file, wherever it is."""
        stream = self._streams.get((file.dev, file.ino, file.born))
        return self.at(file, kind, stream.begin if stream else 0)

    def tail(self, file: OpenFile, offset: int, count: int, of: Callable[[], str]) -> str:
        """A fingerprint, which is asked for again with each look at a file that has not changed."""
        status = file.status()
        key = (file.dev, file.ino, status.st_size, status.st_mtime_ns, offset, count)
        if key not in self._tails:
            self._tails[key] = of()
        return self._tails[key]
