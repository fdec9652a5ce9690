"""A row of a batch as a reject. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from connect_core.sdk.values import Reject

MAX_ORIGINAL_BYTES = 64 * 1024
"""What is kept of a rejected record."""


def reject_row(records: pa.RecordBatch, row: int, stage: str, kind: str, message: str) -> Reject:
    """A row that goes no further, with the bytes it had."""
    return Reject(
        offset=records.column("offset")[row].as_py(),
        ordinal=records.column("ordinal")[row].as_py() or 0,
        stage=stage,
        kind=kind,
        message=message,
        original=_original(records, row),
        topic=records.column("topic")[row].as_py(),
    )


def as_read(rejects: Iterable[Reject], records: pa.RecordBatch) -> Iterator[Reject]:
    """Rejects of what these records became, with the payloads that they came with."""
    offsets = records.column("offset").to_numpy()
    for reject in rejects:
        yield replace(reject, original=_original(records, int(np.searchsorted(offsets, reject.offset))))


def _original(records: pa.RecordBatch, row: int) -> bytes:
    original: bytes = (records.column("value")[row].as_py() or b"")[:MAX_ORIGINAL_BYTES]
    return original
