"""What a pipeline makes of single records: of those that a document has as examples. Pure."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.batches import typed_batch
from connect_core.sdk.plugin import TypedRecord
from connect_core.sdk.records import decode_headers
from connect_core.sdk.values import Json, Reject


class Made(NamedTuple):
    """Of one record: `outputs` with `payload`, `to`, `tags`, `key` and `headers`. A record is filtered when it has none
    and is not rejected."""

    outputs: list[Json]
    rejected: Reject | None


class SinglePipeline:
    """Takes record by record, each for itself, through what workers use for batches."""

    def __init__(self, document: Json) -> None:
        self._of_file = cache(lambda path: Pipeline(document, path))

    def made_of(self, record: TypedRecord, path: str | None = None) -> Made:
        """`path` is that of the file whose first line it is."""
        shaped = self._of_file(path).shape(typed_batch(record))
        return Made([_output(row) for row in shaped.kept.to_pylist()], next(iter(shaped.rejected), None))


def _output(row: Json) -> Json:
    set_by_rules = {name: row[name] for name in ("to", "tags", "key")}
    return {"payload": row["value"] or b"", "headers": decode_headers(row["headers"]), **set_by_rules}
