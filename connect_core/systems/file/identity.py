"""Which file it is: inode, birth, device, fingerprints of its first bytes and of those before an offset.

A name says nothing (files are renamed), an inode little (file systems give a freed one to the next new file), a size
nothing (a file cut to zero may have grown past it again); together they tell a file that has grown from another one.
What they cannot tell: a file that was cut, and grew past the offset again with the same bytes in both fingerprints.
Files are looked at through one open descriptor, so that what was checked is what is read. Used by the file source on
driver and worker. Errors of the operating system become errors of our tree that name the path.
"""

from __future__ import annotations

import base64
import enum
import hashlib
import os
import stat
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from types import TracebackType
from typing import NamedTuple

from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.values import ORIGIN, Json
from connect_core.systems.file.birth import born_ns
from connect_core.systems.file.failures import telling

HEAD_BYTES = 1024
TAIL_BYTES = 4096
_BLOCK = 64 * 1024


@dataclass(frozen=True)
class Former:
    """A file that was read before the present one under the same path: read up to `offset` as `incarnation`. `tail` is
    the fingerprint of the last bytes that were read; of `tail_bytes` 0 where nobody knows it any more. `folder` is
    where it was when it was read."""

    incarnation: int
    dev: int
    ino: int
    head_bytes: int
    head: str
    offset: int
    born: int = 0
    tail_bytes: int = 0
    tail: str = ""
    folder: str = ""
    written: int = 0
    packed: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Past:
    """The files that were read before: the last few, and marks of the earlier ones that the pattern still names (see
    `former`)."""

    former: tuple[Former, ...] = ()
    older: str = ""

    def as_json(self) -> Json:
        return asdict(self) if self.former or self.older else {}

    @classmethod
    def of(cls, evidence: Json) -> Past:
        former = tuple(Former(**_known(Former, entry)) for entry in evidence.get("former", ()))
        return cls(former, evidence.get("older", ""))


NO_PAST = Past()


@dataclass(frozen=True)
class Evidence:
    """What a file looked like at `offset`; `path` is where it was. The `tail` fingerprint ends at `offset`, the
    `planned_tail` one at `planned_end`: a range that is read again must find what was planned.

    `finished` files were renamed and left alone: their last line is whole even without a line feed. `born` is when the
    file was made, 0 where nobody tells; `size` the most it was seen to hold when this was planned or settled, -1 where
    nobody looked. `origin` is what `sdk.values.ORIGIN` names. `written` is when it was written last, in nanoseconds
    since 1970. Of a compressed file offsets and fingerprints are of what is in it, without `tail`, and `packed` is what
    was seen of the file itself (`packed`).
    """

    path: str
    dev: int
    ino: int
    head_bytes: int
    head: str
    offset: int
    tail_bytes: int
    tail: str
    finished: bool = False
    planned_end: int = 0
    planned_tail: str = ""
    born: int = 0
    size: int = -1
    origin: str = ""
    written: int = 0
    packed: Json = field(default_factory=dict)
    past: Past = NO_PAST

    def as_json(self) -> Json:
        own = asdict(self)
        del own["past"]
        if not self.packed:
            del own["packed"]
        return {**own, **self.past.as_json(), ORIGIN: self.origin}

    @classmethod
    def of(cls, evidence: Json) -> Evidence | None:
        """None when nothing was seen: the position was given by a person, or its file was gone."""
        if "ino" not in evidence:
            return None
        return cls(**_known(cls, evidence), past=Past.of(evidence))


def _known(kind: type[Evidence | Former], stored: Json) -> Json:
    """Without what a later version may have added."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in stored.items() if name in names}


class FileVerdict(enum.Enum):
    """How a file compares with evidence of one: `SHORTER` and `DIFFERENT` have the same inode."""

    SAME = "same"
    OTHER = "other"
    SHORTER = "shorter"
    DIFFERENT = "different"


class FileLook(NamedTuple):
    """What a file holds from some place on: its `size`, and the place behind its last line feed. `complete`: a last
    line without one is whole, too. `partial`: there is more than was looked at, and `size` is one more than that."""

    size: int
    lines: int
    complete: bool = False
    partial: bool = False


class OpenFile:
    """A regular file, open. A context manager."""

    may_be_followed = True
    """Whether what comes next can be read as it comes."""

    def __init__(self, path: str, flags: int = os.O_RDONLY) -> None:
        """Raises ConfigError when it is something else than a file, Unreachable when it cannot be opened."""
        self.path = path
        with telling("cannot be opened", path):
            self.fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise ConfigError("Not a regular file", where=path, next_step="Name files only, or narrow the pattern")
        self.dev, self.ino = status.st_dev, status.st_ino

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def status(self) -> os.stat_result:
        with telling("cannot be looked at", self.path):
            return os.fstat(self.fd)

    def size(self) -> int:
        return self.status().st_size

    @cached_property
    def born(self) -> int:
        """When it was made, in nanoseconds since 1970; 0 where the file system does not tell."""
        return born_ns(self.fd)

    @property
    def made(self) -> int:
        """When what it holds was begun: of a compressed file that is not when the file itself was made."""
        return self.born

    def is_as(self, other: OpenFile | Evidence | Former) -> bool:
        """Whether it may be the same file, whatever its name and content."""
        if self.ino != other.ino or (self.born and other.born and self.born != other.born):
            return False
        return self.dev == other.dev or (0 < self.born == other.born and _is_renumbered(other))

    def was_left(self, former: Former) -> bool:
        """Whether it begins as that file did, and holds what was read of it. (A file that was cut does not.)"""
        if not former.head_bytes or not self.is_as(former) or not self.begins_as(former):
            return False
        holds = self.reaches(former.offset) and self.tail(former.offset, former.tail_bytes) == former.tail
        return holds or not former.tail_bytes

    def held(self) -> int:
        """As much of its size as is known."""
        return self.size()

    def size_since(self, former: Former) -> int:
        """Its size, for a file of which so much was read."""
        return self.size()

    def reaches(self, offset: int) -> bool:
        """Whether it holds so many bytes."""
        return self.size() >= offset

    def bytes_at(self, offset: int, count: int) -> bytes:
        """`count` bytes of its content from `offset`, fewer at its end."""
        return self.stored_at(offset, count)

    def stored_at(self, offset: int, count: int) -> bytes:
        """The same of the file as it is stored, which is another one where it is compressed."""
        with telling("cannot be read", self.path):
            data = os.pread(self.fd, count, offset)
            while len(data) < count and (more := os.pread(self.fd, count - len(data), offset + len(data))):
                data += more
        return data

    def look(self, begin: int) -> FileLook:
        """What it holds from `begin` on."""
        size = self.size()
        return FileLook(size, self.end_of_lines(begin, size))

    def holds(self, offset: int, data: bytes) -> bool:
        """Whether both ends of what was read at `offset` are there now, as they were read."""
        count = min(TAIL_BYTES, len(data))
        tail = offset + len(data) - count
        return self.bytes_at(offset, count) == data[:count] and self.bytes_at(tail, count) == data[-count:]

    def begins_as(self, seen: Evidence | Former) -> bool:
        """Whether its first bytes are those that were seen."""
        return self.head(seen.head_bytes) == seen.head

    def end_of_lines(self, begin: int, end: int | None = None) -> int:
        """The place behind the last line feed in [begin, end), or `begin`; `end` is the size when left out."""
        upper = self.size() if end is None else end
        while upper > begin:
            lower = max(begin, upper - _BLOCK)
            found = self.bytes_at(lower, upper - lower).rfind(b"\n")
            if found >= 0:
                return lower + found + 1
            upper = lower
        return begin

    def next_line(self, offset: int, end: int) -> int:
        """The place behind the first line feed in [offset, end), or `end`."""
        while offset < end:
            block = self.bytes_at(offset, min(_BLOCK, end - offset))
            found = block.find(b"\n")
            if found >= 0:
                return offset + found + 1
            if not block:
                return end
            offset += len(block)
        return end

    def head(self, count: int) -> str:
        return fingerprint(self.bytes_at(0, count))

    def tail(self, offset: int, count: int) -> str:
        """Of the `count` bytes before `offset`."""
        return fingerprint(self.bytes_at(offset - count, count))

    def verdict(self, seen: Evidence) -> FileVerdict:
        """Whether this is the file that was seen, grown or not."""
        if not self.is_as(seen):
            return FileVerdict.OTHER
        if self.size() < max(seen.offset, seen.planned_end):
            return FileVerdict.SHORTER
        same = self.head(seen.head_bytes) == seen.head and self.tail(seen.offset, seen.tail_bytes) == seen.tail
        return FileVerdict.SAME if same and self._is_planned(seen) else FileVerdict.DIFFERENT

    def _is_planned(self, seen: Evidence) -> bool:
        end = seen.planned_end
        return not end or self.tail(end, min(TAIL_BYTES, end)) == seen.planned_tail

    def evidence(
        self, offset: int, end: int = 0, *, size: int = -1, finished: bool = False, past: Past = NO_PAST
    ) -> Evidence:
        """What is seen of it at `offset`. `end` is behind the lines that are whole and so will not change any more,
        `size` what it holds, if somebody has looked."""
        head, tail_bytes = self.bytes_at(0, min(HEAD_BYTES, max(offset, end))), min(TAIL_BYTES, offset)
        ahead = end > offset
        return Evidence(
            path=self.path,
            dev=self.dev,
            ino=self.ino,
            head_bytes=len(head),
            head=fingerprint(head),
            offset=offset,
            tail_bytes=tail_bytes,
            tail=self.tail(offset, tail_bytes),
            finished=finished,
            born=self.born,
            size=size,
            origin=origin_of(self, head),
            written=self.status().st_mtime_ns,
            past=past,
            planned_end=end if ahead else 0,
            planned_tail=self.tail(end, min(TAIL_BYTES, end)) if ahead else "",
        )


def _is_renumbered(seen: OpenFile | Evidence | Former) -> bool:
    """Whether the folder that a file was in has another device now: a mount or a start of the machine may give another
    number to the same file system. As long as it has not, a file of another device is another one, such as one in a
    snapshot, which has the same inode and the same birth."""
    folder = (
        seen.folder if isinstance(seen, Former) else os.path.dirname(seen.path) if isinstance(seen, Evidence) else ""
    )
    try:
        return bool(folder) and os.stat(folder).st_dev != seen.dev
    except OSError:
        return False


def open_if_there(path: str) -> OpenFile | None:
    """The regular file at `path`; None when nothing is there. Raises when it is unreadable or no file."""
    try:
        return OpenFile(path)
    except WaybillError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def origin_of(file: OpenFile, head: bytes) -> str:
    """Eight characters that name a file by what it is and how it begins: a file that is cut, or written over in its
    place, begins anew. Empty before its first line is whole, and where the file system does not say when a file was
    made."""
    if not file.born or not head:
        return ""
    first = head[: head.find(b"\n") + 1] or head
    digest = hashlib.blake2b(b"%d %d " % (file.ino, file.born) + first, digest_size=6).digest()
    return base64.urlsafe_b64encode(digest).decode()


def fingerprint(data: bytes) -> str:
    """16 hex digits."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()
