"""What happens to records between read and write: batch -> batch, no I/O, no clock, no chance.

Today records pass as bytes. Converters, transforms and predicates have their place here: each is one more step of
`Pipeline.shape`, and the digest of a pipeline changes with its document and its code.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import pyarrow as pa

from connect_core.contracts import Json, Reject

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
        return Shaped(records)
