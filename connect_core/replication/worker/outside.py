"""Outputs that go to a target which their range has not pinned (`sdk.sink.Growing`). Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from connect_core.pipeline.rejecting import reject_row
from connect_core.sdk.sink import Growing, Sink
from connect_core.sdk.values import Json, Reject

MAX_WANTED = 100
"""So many targets that are wanted are told at once."""


class Unpinned(NamedTuple):
    """The records that no target takes, once each; where the range ends, since the record there goes to a target that
    is not pinned; and what such targets are called."""

    rejected: tuple[Reject, ...] = ()
    end: int | None = None
    wanted: tuple[str, ...] = ()


def unpinned(sink: Sink, records: pa.RecordBatch, target: Json) -> Unpinned:
    if not isinstance(sink, Growing) or not sink.grows or not len(records):
        return Unpinned()
    outside = sink.outside(records, target)
    rejects: dict[int, Reject] = {}
    for row, kind, message in outside.refused:
        rejected = reject_row(records, row, "encode", kind, message)
        rejects.setdefault(rejected.offset, rejected)
    offsets = records.column("offset").to_numpy()[np.array(outside.rows, dtype=np.int64)].tolist()
    wanted = [(at, name) for at, name in zip(offsets, outside.names, strict=True) if at not in rejects]
    names = list(dict.fromkeys(name for _, name in wanted))
    return Unpinned(tuple(rejects.values()), wanted[0][0] if wanted else None, tuple(names[:MAX_WANTED]))
