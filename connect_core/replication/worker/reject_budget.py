"""How many records of a partition may be rejected within a time, whatever runs: `errors.budget` of a document. Pure.

The receipts of that time say what was read and rejected before a range, which says how it goes on. The share is one of
1,000 records at least: of the first few anything would be too much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from connect_core.config.units import show_count, show_seconds
from connect_core.sdk.values import Reject
from connect_core.work import ReadLately, RejectLimit

LEAST_READ = 1_000
_ROUNDING = 1e-6
"""29 % of 100 are 29, whatever binary fractions say."""


def is_spent(limit: RejectLimit, lately: ReadLately, read: int, rejected: int) -> bool:
    """Whether one more would be too many, behind so many records of the range that were read and rejected."""
    return lately.rejected + rejected + 1 > _allowed(limit, lately.read + read) + _ROUNDING


def first_over(
    limit: RejectLimit,
    lately: ReadLately,
    read: int,
    rejected: int,
    rejects: Sequence[Reject],
    offsets: NDArray[np.int64],
) -> Reject | None:
    """The first of these rejects of a batch that is too many; the batch has rows at these offsets."""
    for place, reject in enumerate(rejects):
        behind = int(np.searchsorted(offsets, reject.offset, side="right"))
        if is_spent(limit, lately, read + behind, rejected + place):
            return reject
    return None


def words(limit: RejectLimit) -> str:
    """`100 records and 1% of those read in 1h`."""
    records = [] if limit.records is None else [show_count(limit.records, "record")]
    share = [] if limit.share is None else [f"{limit.share * 100:.4g}% of those read"]
    return f"{' and '.join([*records, *share])} in {show_seconds(limit.window_s)}"


def _allowed(limit: RejectLimit, read: int) -> float:
    of_records = float("inf") if limit.records is None else limit.records
    of_share = float("inf") if limit.share is None else limit.share * max(read, LEAST_READ)
    return min(of_records, of_share)
