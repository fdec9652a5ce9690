"""What of a batch lies before a place, and what at or behind it. Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from connect_core.sdk.values import SourceBatch


def rows_before(batch: SourceBatch, place: int) -> pa.RecordBatch:
    """The rows with an offset below `place`."""
    return batch.records if place >= batch.next_offset else batch.records.slice(0, _rows(batch, place))


def part_before(batch: SourceBatch, place: int) -> SourceBatch:
    """What lies before `place`, which is at most the place behind the batch."""
    return SourceBatch(
        rows_before(batch, place),
        place,
        tuple((begin, min(end, place)) for begin, end in batch.holes if begin < place),
        tuple(reject for reject in batch.rejects if reject.offset < place),
        tuple(offset for offset in batch.filtered if offset < place),
        tuple(offset for offset in batch.doubtful if offset < place),
        batch.places,
    )


def part_behind(batch: SourceBatch, place: int) -> SourceBatch:
    """What lies at `place` or behind it."""
    return SourceBatch(
        batch.records.slice(_rows(batch, place)),
        batch.next_offset,
        tuple((max(begin, place), end) for begin, end in batch.holes if end > place),
        tuple(reject for reject in batch.rejects if reject.offset >= place),
        tuple(offset for offset in batch.filtered if offset >= place),
        tuple(offset for offset in batch.doubtful if offset >= place),
        batch.places,
    )


def _rows(batch: SourceBatch, place: int) -> int:
    return int(np.searchsorted(batch.records.column("offset").to_numpy(), place))
