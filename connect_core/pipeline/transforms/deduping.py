"""Duplicates within a range left out, column by column. Pure but for what a range remembers.

What is remembered of a key is the offset at which it came first, so that records which are shaped once more, in
whatever batches, become the same: a row is a duplicate when its key came at a lower offset, or before it in the same
record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.transforms.columns import column_at
from connect_core.pipeline.transforms.dedupe_steps import DedupeRows
from connect_core.pipeline.transforms.paths import Path
from connect_core.pipeline.transforms.texts import json_texts
from connect_core.pipeline.transforms.working import Seen, Work

_DIGEST_BYTES = 16


def dedupe(step: DedupeRows, work: Work) -> None:
    """Rows that are left out already remember nothing."""
    alive = np.flatnonzero(work.alive)
    if not len(alive):
        return
    found = _keys(work.rows, step.by).take(pa.array(alive)).dictionary_encode()
    _, first = np.unique(found.indices.to_numpy(), return_index=True)
    offsets = work.records.column("offset").to_numpy()[alive[first]]
    new = _new(found.dictionary.to_pylist(), offsets.tolist(), work.seen.setdefault(step, {}))
    work.alive = np.zeros(len(work.alive), dtype=np.bool_)
    work.alive[alive[first[list(new)]]] = True


def _keys(rows: pa.RecordBatch, paths: Iterable[Path]) -> pa.Array:
    """Each value with its length before it, so that no two keys are written alike."""
    texts = [json_texts(*column_at(rows, path)) for path in paths]
    parts = [
        pc.fill_null(pc.binary_join_element_wise(pc.binary_length(text).cast(pa.string()), text, ":"), "-")
        for text in texts
    ]
    return pc.binary_join_element_wise(*parts, ",") if len(parts) > 1 else parts[0]


def _new(keys: list[str], offsets: list[int], seen: Seen) -> list[int]:
    """The places of those that came first at this offset."""
    places = []
    for place, (key, offset) in enumerate(zip(keys, offsets, strict=True)):
        digest = hashlib.blake2b(key.encode(), digest_size=_DIGEST_BYTES).digest()
        if seen.setdefault(digest, offset) >= offset:
            places.append(place)
    return places
