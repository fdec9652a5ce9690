"""What a target holds now of ranges that were settled, against what their receipts say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.records import Coordinates, Lineage
from connect_core.sdk.values import Json

Identities = NDArray[Any]
_IDENTITY = np.dtype([("offset", np.int64), ("ordinal", np.int32)])


class Claim(NamedTuple):
    """What a receipt says of `[begin, end)`: `outputs` records were in the target when it was settled, whose digest is
    `digest` (empty where nobody could know it), and at most `copies` more of the same; `where` says what was written,
    `target` what the range had pinned. `sought`: some of them had been there before, so that `where` does not tell of
    all; then `before` is the `where` of a receipt behind whose records they stand: the newest earlier one of the
    partition of which nothing was sought."""

    range_id: int
    lineage: Lineage
    begin: int
    end: int
    outputs: int
    digest: str
    where: Json
    target: Json
    copies: int = 0
    sought: bool = False
    before: Json = {}  # noqa: RUF012  never changed: a NamedTuple's default cannot be made by a factory


class Verdict(StrEnum):
    SAME = "same"
    """Every record is there, once, as it was sent."""
    DIFFERS = "differs"
    """Records are missing, are there more often than the receipt says, or are others."""
    GONE = "gone"
    """The target no longer keeps records as old as these."""
    UNCOMPARED = "uncompared"
    """As many records as were sent are there; nobody knows the digest that they should have."""


class Reread(NamedTuple):
    """What the target holds of a range now. `what` is a sentence without its full stop, empty for SAME; `place` is
    where in the target."""

    range_id: int
    verdict: Verdict
    what: str = ""
    place: str = ""


@runtime_checkable
class Rereadable(Protocol):
    """A sink whose targets can be read again."""

    def reread(self, claims: Sequence[Claim]) -> Iterator[Reread]:
        """One for each of these ranges, in any order; they are all that one run of a task has settled. Read-only."""


@runtime_checkable
class Traceable(Protocol):
    """A sink in whose targets one record can be found again. Read-only."""

    def places(self, claim: Claim, offset: int) -> list[tuple[int, str]]:
        """Where outputs of the record at `offset` stand, which is in the range of the claim: the ordinal of each, and
        its place as a person would name it; copies too. Empty where nothing is there."""

    def at_place(self, place: str) -> list[Coordinates]:
        """Which record stands at a place: none where it is no record of Waybill. Raises ConfigError where a place is
        named in another way, or nothing stands there."""

    def with_key(self, target: Json, key: str) -> list[Coordinates]:
        """Which records in the targets that a range has pinned have this key. Raises ConfigError where targets cannot
        be asked for keys."""


@dataclass
class _Seen:
    """Of one range: the sum over the first copy of each record, which records these are, and how often all were met.
    `place` is where the first one was."""

    digest: RecordDigest
    parts: list[Identities] = field(default_factory=list)
    highest: int = -1
    rows: int = 0
    place: str = ""

    def take(self, records: pa.RecordBatch, place: str) -> None:
        identities = np.empty(len(records), dtype=_IDENTITY)
        identities["offset"] = records.column("offset").to_numpy()
        identities["ordinal"] = records.column("ordinal").fill_null(0).to_numpy()
        new = self._new(identities)
        self.rows += len(records)
        self.place = self.place or place
        self.highest = max(self.highest, int(identities["offset"].max()))
        self.parts.append(identities[new])
        self.digest.add(records if len(new) == len(records) else records.take(pa.array(new)))

    def _new(self, identities: Identities) -> Identities:
        """The rows of what was not met before. Most come in order, each once: then nobody compares them with all."""
        offsets = identities["offset"]
        if offsets[0] > self.highest and (np.diff(offsets) > 0).all():
            return np.arange(len(offsets))
        distinct, first = np.unique(identities, return_index=True)
        return first[~np.isin(distinct, np.concatenate(self.parts))] if self.parts else first

    @property
    def there(self) -> int:
        return sum(map(len, self.parts))


class Tally:
    """Adds up what is read again of several ranges, records of which may stand between each other. Ranges of one
    lineage do not overlap."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims: dict[Lineage, list[Claim]] = {}
        for one in sorted(claims, key=lambda one: one.begin):
            self._claims.setdefault(one.lineage, []).append(one)
        self._seen = {one.range_id: _Seen(RecordDigest(one.lineage)) for one in claims}

    def add(self, lineage: Lineage, records: pa.RecordBatch, place: str) -> None:
        """Records of RECORD_SCHEMA, with the offset and ordinal that they had; `place` is where they were read."""
        mine, offsets = self._claims.get(lineage, []), records.column("offset").to_numpy()
        first = bisect_right(mine, int(offsets.min()), key=lambda one: one.end)
        for one in takewhile(lambda one: one.begin <= offsets.max(), mine[first:]):
            within = (offsets >= one.begin) & (offsets < one.end)
            if within.any():
                self._seen[one.range_id].take(records.filter(pa.array(within)), place)

    def reread(self, one: Claim, *, expired: int = 0) -> Reread:
        """`expired`: of so many places at which its records can have stood the target has deleted what was there."""
        seen = self._seen[one.range_id]
        missing, copies = one.outputs - seen.there, seen.rows - seen.there
        what = f"{seen.there:,} of {one.outputs:,} records are there"
        if 0 < missing <= expired and copies <= one.copies:
            return Reread(one.range_id, Verdict.GONE, f"{what} still: the target deletes its oldest", seen.place)
        if missing:
            return Reread(one.range_id, Verdict.DIFFERS, what, seen.place)
        if copies > one.copies:
            what = f"{copies:,} copies are there, and its receipt tells of {one.copies:,}"
            return Reread(one.range_id, Verdict.DIFFERS, what, seen.place)
        if not one.digest:
            return Reread(one.range_id, Verdict.UNCOMPARED, "Its receipt has no digest to compare with", seen.place)
        if seen.digest.text() == one.digest:
            return Reread(one.range_id, Verdict.SAME)
        what = "All records are there, and some are not what was sent"
        return Reread(one.range_id, Verdict.DIFFERS, what, seen.place)
