"""Digests of records: sums over records, so that partial digests add up and order does not matter.

A record's hash is XXH3-64 (https://github.com/Cyan4973/xxHash) of its body, seeded with its coordinates and, when it
has any, its key, tags and user properties; a digest is the sum of these modulo 2^64. It finds what accidents do
(lost, repeated, swapped, damaged records); it is no protection against somebody who forges records.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from connect_core.sdk.batches import ordinals, without_nulls
from connect_core.sdk.digest_texts import LINES, MASK, format_digest
from connect_core.sdk.records import Lineage

_NO_ATTRIBUTES = b"\x00\x00"
# Odd 64-bit constants (from the golden ratio and from sqrt 2): offsets and ordinals land far apart as seeds.
_OFFSET_STEP, _ORDINAL_STEP = 0x9E3779B97F4A7C15, 0xB504F333F9DE6485


class RecordDigest:
    """Adds up the hashes of the records of one lineage."""

    def __init__(self, lineage: Lineage, value: int = 0) -> None:
        self._origin = np.uint64(xxh3_64_intdigest(lineage.prefix().encode()))
        self.value = value

    def add(self, records: pa.RecordBatch) -> None:
        """Adds every row of a batch of RECORD_SCHEMA."""
        bodies = records.column("value").to_pylist()
        if None in bodies:
            bodies = [body or b"" for body in bodies]
        seeds = self._seeds(records).tolist()
        self.value = (self.value + sum(map(xxh3_64_intdigest, bodies, seeds))) & MASK

    def add_sum(self, value: int) -> None:
        """Adds what another digest of the same lineage has added meanwhile: a difference of its values."""
        self.value = (self.value + value) & MASK

    def _seeds(self, records: pa.RecordBatch) -> NDArray[np.uint64]:
        seeds: NDArray[np.uint64] = (
            records.column("offset").to_numpy().astype(np.uint64) * np.uint64(_OFFSET_STEP) + self._origin
        )
        if (numbers := ordinals(records)) is not None:
            seeds += numbers.astype(np.uint64) * np.uint64(_ORDINAL_STEP)
        if any(records.column(name).null_count < len(records) for name in ("key", "tags", "headers")):
            seeds += _attribute_hashes(records)
        return seeds

    def text(self) -> str:
        return format_digest(self.value)


class LinesDigest:
    """Adds up the XXH3-64 of lines, without their line feeds: what a file holds of receipts, whatever their order."""

    def __init__(self) -> None:
        self._value = 0

    def add(self, values: pa.Array) -> None:
        """Adds every value of a binary column; a null is an empty line."""
        self.add_lines(value or b"" for value in values.to_pylist())

    def add_lines(self, lines: Iterable[bytes]) -> None:
        """Adds lines as they stand in a file, without their line feeds."""
        self._value = (self._value + sum(map(xxh3_64_intdigest, lines))) & MASK

    def text(self) -> str:
        return LINES + format_digest(self._value)


def _attribute_hashes(records: pa.RecordBatch) -> NDArray[np.uint64]:
    """Of each row's key, tags and headers; 0 when there is none of them."""
    key, tags = (without_nulls(records.column(name).cast(pa.binary()), b"") for name in ("key", "tags"))
    texts = pc.binary_join_element_wise(key, tags, _ordered(records.column("headers")), b"\x00")
    hashes = np.fromiter(map(xxh3_64_intdigest, texts.to_pylist()), dtype=np.uint64, count=len(texts))
    given = pc.not_equal(texts, pa.scalar(_NO_ATTRIBUTES, pa.binary())).to_numpy(zero_copy_only=False)
    return np.where(given, hashes, np.uint64(0))


def _ordered(headers: pa.Array) -> pa.Array:
    """The pairs of each row sorted: brokers and clients keep no order."""
    if headers.null_count == len(headers):
        return pa.scalar(b"", pa.binary())
    return pa.array([b"\x02".join(sorted((text or b"").split(b"\x02"))) for text in headers.to_pylist()], pa.binary())
