"""What happens to records between read and write: batch -> batch, no I/O, no clock, no chance.

Today records pass as bytes, or are left out by a filter. Converters and transforms have their place here: each is one
more step of `Pipeline.shape`, and the digest of a pipeline changes with its document and its code.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.contracts import Json, Reject
from connect_core.pipeline.choosing import chosen

_CODE = "bytes-through/1"
"""Raised by whoever changes what a pipeline makes of a record: open ranges are pinned to it (rule 8)."""


@dataclass(frozen=True)
class Shaped:
    """`kept` goes on to the sink, `rejected` failed, `filtered` were left out on purpose (offsets of the rows)."""

    kept: pa.RecordBatch
    rejected: tuple[Reject, ...] = ()
    filtered: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pipeline:
    """Built from the pinned part of the document; the same document and code give the same digest and results."""

    document: Json

    def digest(self) -> str:
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(f"{_CODE}\n{text}".encode(), digest_size=8).hexdigest()

    def shape(self, records: pa.RecordBatch) -> Shaped:
        wanted = self.document.get("filter")
        if not wanted or not len(records):
            return Shaped(records)
        passes = chosen(records, wanted.get("tags", ()), wanted.get("headers", {}), wanted.get("sql", ""))
        left_out = records.column("offset").filter(pc.invert(passes))
        return Shaped(records.filter(passes), filtered=tuple(left_out.to_pylist()))
