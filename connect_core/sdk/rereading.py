"""What a target holds now of ranges that were settled, against what their receipts say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.records import Lineage
from connect_core.sdk.values import Json

Identities = NDArray[np.void]
_IDENTITY = np.dtype([("offset", np.int64), ("ordinal", np.int32)])


class Claim(NamedTuple):
    """What a receipt says of `[begin, end)`: `outputs` records were in the target when it was settled, whose digest is
    `digest` (empty where nobody could know it), and at most `copies` more of the same; `where` says what was written,
    `target` what the range had pinned. `sought`: some of them had been there before, so that `where` does not tell of
    all; then `before` is the `where` of the receipt before it, of the same partition."""

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


@dataclass
class _Seen:
    """Of one range: the sum over the first copy of each record, which records these are, and how often all were met.
    `place` is where the first one was."""

    digest: RecordDigest
    identities: Identities
    rows: int = 0
    place: str = ""


class Tally:
    """Adds up what is read again of several ranges, records of which may stand between each other."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = list(claims)
        nothing = np.empty(0, dtype=_IDENTITY)
        self._seen = {one.range_id: _Seen(RecordDigest(one.lineage), nothing) for one in claims}

    def add(self, lineage: Lineage, records: pa.RecordBatch, place: str) -> None:
        """Records of RECORD_SCHEMA, with the offset and ordinal that they had; `place` is where they were read."""
        offsets = records.column("offset").to_numpy()
        for one in self._claims:
            mine = (offsets >= one.begin) & (offsets < one.end)
            if one.lineage == lineage and mine.any():
                _take(self._seen[one.range_id], records.filter(pa.array(mine)), place)

    def reread(self, one: Claim, *, expired: bool = False) -> Reread:
        """`expired`: the target has deleted some of the places in which its records stood."""
        seen = self._seen[one.range_id]
        there, copies = len(seen.identities), seen.rows - len(seen.identities)
        what = f"{there:,} of {one.outputs:,} records are there"
        if there < one.outputs and expired and copies <= one.copies:
            return Reread(one.range_id, Verdict.GONE, f"{what} still: the target deletes its oldest", seen.place)
        if there != one.outputs:
            return Reread(one.range_id, Verdict.DIFFERS, what, seen.place)
        if copies > one.copies:
            what = f"{copies:,} copies are there, and its receipt tells of {one.copies:,}"
            return Reread(one.range_id, Verdict.DIFFERS, what, seen.place)
        if not one.digest:
            return Reread(one.range_id, Verdict.UNCOMPARED, "Its receipt has no digest to compare with", seen.place)
        if seen.digest.text() == one.digest:
            return Reread(one.range_id, Verdict.SAME)
        return Reread(
            one.range_id, Verdict.DIFFERS, "All records are there, and some are not what was sent", seen.place
        )


def _take(seen: _Seen, records: pa.RecordBatch, place: str) -> None:
    identities = np.empty(len(records), dtype=_IDENTITY)
    identities["offset"] = records.column("offset").to_numpy()
    identities["ordinal"] = records.column("ordinal").fill_null(0).to_numpy()
    distinct, first = np.unique(identities, return_index=True)
    new = first[~np.isin(distinct, seen.identities)]
    seen.rows += len(records)
    seen.place = seen.place or place
    seen.identities = np.concatenate([seen.identities, identities[new]])
    seen.digest.add(records if len(new) == len(records) else records.take(pa.array(new)))
