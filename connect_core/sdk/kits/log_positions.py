"""Where reading continues in a log whose records may have expired, or that may be another log by now (delivery
rule 10).

The evidence of a position is a mark: the offset and the digest of one record, the one just before the position where
there is one. It is compared before each plan and again with each request. So a log that was deleted and made anew is
recognised, also when it has grown past the position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from xxhash import xxh3_64_hexdigest

from connect_core.sdk.kits.log_answers import Ends, Logs, ends_of, fetched_of
from connect_core.sdk.records import Record
from connect_core.sdk.values import ORIGIN, Bounds, Gap, Json, Position

_AT_END = "at_end"
"""In the evidence of a position: the log ended there when it was read."""
_ENDED = "ended"
"""In the evidence of a position: the log was deleted, a gap says so, and nothing was seen of it since."""


class SourceMark(NamedTuple):
    """What a log is recognised by: one of its records."""

    offset: int
    digest: str

    @classmethod
    def of(cls, offset: int, record: Record) -> SourceMark:
        head = repr((record.key, record.headers, record.timestamp, record.topic, record.value is None)).encode()
        return cls(offset, xxh3_64_hexdigest(head + (record.value or b"")))

    @classmethod
    def in_evidence(cls, evidence: Json) -> SourceMark | None:
        return cls(evidence["offset"], evidence["digest"]) if "digest" in evidence else None


def evidence_of(mark: SourceMark | None, origin: str, *, at_end: bool = False) -> Json:
    """`origin` is that of the log, empty where it has none (`sdk.values.ORIGIN`)."""
    told: Json = mark._asdict() if mark else {}
    return told | ({ORIGIN: origin} if origin else {}) | ({_AT_END: True} if at_end else {})


def bounds_of(logs: Logs, log: str, at: Position | None) -> Bounds:
    """What can be read of a log now. Every way to lose records becomes a gap."""
    ends = ends_of(logs, log)
    if ends is None:
        return _deleted(at, logs.first_offset)
    if at is None:
        return Bounds(0, ends.begin, ends.begin, ends.end, _marked(logs, log, ends.begin, ends))
    if why := _why_another(logs, log, at, ends):
        gap = Gap(at.incarnation, at.offset, None, why)
        evidence = _marked(logs, log, ends.begin, ends)
        return Bounds(at.incarnation + 1, ends.begin, ends.begin, ends.end, evidence, (gap,))
    return _continued(logs, log, at, ends)


def _continued(logs: Logs, log: str, at: Position, ends: Ends) -> Bounds:
    known = SourceMark.in_evidence(at.evidence)
    begin = _first_there(logs, log, max(at.offset, ends.begin), ends)
    if begin == at.offset:
        evidence = evidence_of(known, _origin(ends)) if known else _marked(logs, log, begin, ends)
        return Bounds(at.incarnation, begin, ends.begin, ends.end, evidence)
    gap = Gap(at.incarnation, at.offset, begin, "expired" if begin == ends.begin else "missing")
    evidence = _marked(logs, log, begin, ends)
    if known and SourceMark.in_evidence(evidence) is None:
        evidence = evidence_of(known, _origin(ends))
    return Bounds(at.incarnation, begin, ends.begin, max(begin, ends.end), evidence, (gap,))


def _first_there(logs: Logs, log: str, begin: int, ends: Ends) -> int:
    """The first offset at or behind `begin` that holds a record, where each offset must hold one."""
    if logs.sparse or begin >= ends.end or fetched_of(logs, log, begin, begin + 1).records:
        return begin
    there = fetched_of(logs, log, begin, ends.end).records
    return there[0][0] if there else begin


def _why_another(logs: Logs, log: str, at: Position, ends: Ends) -> str:
    """Why this is not the log that the position is of; empty where nothing says so."""
    origin, mark = _origin(ends), SourceMark.in_evidence(at.evidence)
    if origin and at.evidence.get(ORIGIN, origin) != origin:
        return "recreated"
    if max(at.offset, mark.offset + 1 if mark else 0) > ends.end:
        return "rewound"
    if mark is None or mark.offset < ends.begin:  # an expired record says nothing of the others
        return ""
    there = dict(fetched_of(logs, log, mark.offset, mark.offset + 1).records).get(mark.offset)
    return "recreated" if there is not None and SourceMark.of(mark.offset, there) != mark else ""


def _marked(logs: Logs, log: str, begin: int, ends: Ends) -> Json:
    """The evidence of a position of which nothing was read: the record before it, or the first one behind it. An
    attempt that finishes a range later must know whether it is still this log."""
    place = max(begin - 1, ends.begin)
    records: Sequence[tuple[int, Record]] = ()
    if place < ends.end:
        records = fetched_of(logs, log, place, ends.end if logs.sparse else place + 1).records
    return evidence_of(SourceMark.of(*records[0]) if records else None, _origin(ends))


def _origin(ends: Ends) -> str:
    return hashlib.blake2b(ends.name.encode(), digest_size=8).hexdigest() if ends.name else ""


def _deleted(at: Position | None, first: int) -> Bounds:
    """A log that is not there. A gap from the position to an unknown end; an empty one where the log ended there when
    it was read. Either way a log of that name that comes later begins anew, at offset `first`."""
    if at is None:
        return Bounds(0, first, first, first, grows=False)
    if at.evidence.get(_ENDED):
        return Bounds(at.incarnation, at.offset, first, at.offset, at.evidence, grows=False)
    end, why = (at.offset, "ended") if at.evidence.get(_AT_END) else (None, "deleted")
    gap = Gap(at.incarnation, at.offset, end, why)
    return Bounds(at.incarnation + 1, first, first, first, {_ENDED: True}, (gap,), grows=False)
