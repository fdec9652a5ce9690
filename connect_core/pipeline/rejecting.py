"""A row of a batch as a reject. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from connect_core.pipeline.letters import attributes
from connect_core.sdk.values import Json, Reject

MAX_ORIGINAL_BYTES = 4 * 1024 * 1024
"""What is kept of the payload of a rejected record: all that a message holds, by the defaults of a broker."""


def reject_row(records: pa.RecordBatch, row: int, stage: str, kind: str, message: str) -> Reject:
    """A row that goes no further, with all that it had."""
    return Reject(
        offset=records.column("offset")[row].as_py(),
        ordinal=records.column("ordinal")[row].as_py() or 0,
        stage=stage,
        kind=kind,
        message=message,
        topic=records.column("topic")[row].as_py(),
        **_kept(records, row),
    )


def as_read(rejects: Iterable[Reject], records: pa.RecordBatch) -> Iterator[Reject]:
    """Rejects of what these records became, with all that they came with."""
    offsets = records.column("offset").to_numpy()
    for reject in rejects:
        row = int(np.searchsorted(offsets, reject.offset))
        yield replace(reject, topic=records.column("topic")[row].as_py(), **_kept(records, row))


def _kept(records: pa.RecordBatch, row: int) -> Json:
    """Of a row; without attributes where its payload is too large to be kept."""
    original: bytes = records.column("value")[row].as_py() or b""
    whole = len(original) <= MAX_ORIGINAL_BYTES
    return {"original": original[:MAX_ORIGINAL_BYTES], "attributes": attributes(records, row) if whole else None}
