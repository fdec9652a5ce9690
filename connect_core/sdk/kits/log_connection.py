"""A log as the author of a `LogSink` shows it: records in order, each with the mark that it was appended with.

Positions are int64 and ascend in the order of the records. They need not adjoin, and nobody computes with them but for
`position + 1`. 0 is before every record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pyarrow import RecordBatch

from connect_core import clock
from connect_core.sdk.kits.contract import method_of, must_be

_POLL_S = 0.005


class LogEntry(NamedTuple):
    """A record in the log. `mark` is what it carries in COORDINATES_PROPERTY; None where it has no such property."""

    position: int
    mark: str | None


class LogSlice(NamedTuple):
    """Entries in order. `behind` is the position to read on from; it is where the read began when nothing can be read
    yet."""

    entries: Sequence[LogEntry]
    behind: int


class StoredAt(NamedTuple):
    """Where a batch was stored: the position of its first record, and a position behind its last one. When there is
    room for more records between the two than the batch has, others may stand there."""

    first: int
    behind: int


class LogConnection(Protocol):
    """The author's way into the target. Each method raises Unreachable when the target does not answer."""

    def logs(self) -> Sequence[str]:
        """The names of the logs that the target has, in an order that does not change; new ones come last."""

    def begin(self, log: str) -> int:
        """0 while the log has all of its records; else the position of the oldest one that it still has, or its end
        when it has none."""

    def end(self, log: str) -> int:
        """A position behind every record that the log has acknowledged, to whomever. Returns when all of them can be
        read."""

    def append(self, log: str, marks: Sequence[str], records: RecordBatch) -> StoredAt:
        """Stores the rows in order, each with its mark in COORDINATES_PROPERTY; returns when the log has them for good.
        When it raises Unreachable, the log may have stored a first part of them. Raises RowsRefused when the log can
        never take one of these rows: then it has stored none."""

    def read(self, log: str, begin: int, end: int) -> LogSlice:
        """What can be read now of [begin, end): some or all of it, without holes."""


def slices(connection: LogConnection, log: str, begin: int, end: int, deadline: float) -> Iterator[LogSlice]:
    """Reads up to `end`, and waits for what cannot be read yet. Stops early at the deadline, a moment of
    `clock.monotonic`."""
    while begin < end and clock.monotonic() < deadline:
        part = connection.read(log, begin, end)
        must_be(LogSlice, part, f"The answer of {method_of(connection, 'read')}")
        if part.behind <= begin:
            clock.sleep(_POLL_S)
            continue
        yield part
        begin = part.behind
