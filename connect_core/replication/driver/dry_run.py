"""What records would become: the pipeline of a document without a run. Pure, but for the schemas of a registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from connect_core.pipeline.fields import Fields
from connect_core.pipeline.references import names_in, read_condition
from connect_core.pipeline.rules import Rules
from connect_core.pipeline.shaping import Pipeline
from connect_core.replication.worker.schemas import lookup_of
from connect_core.sdk.values import Json, Reject


class Matching:
    """What the condition names of a payload is looked for in it as it is: a record that a run would reject, as not of
    the fields that the document says, is found as well. Other formats than JSON, and keys, need what `parse` says."""

    def __init__(self, condition: str, parse: Json, path: str | None) -> None:
        kinds = {one.kind for one in names_in(read_condition(condition)).values()}
        needs_format = "payload" in kinds and (parse.get("format", "json") != "json" or "key_format" in parse)
        document: Json = {"filter": {"when": condition}} | ({"parse": parse} if needs_format else {})
        self._pipeline = Pipeline(document, path, lookup_of(document))

    def offsets(self, records: pa.RecordBatch) -> Sequence[int]:
        if not len(records):
            return []
        passed, _ = self._pipeline.passing(records)
        offsets: Sequence[int] = passed.records.column("offset").to_pylist()
        return offsets


def outputs_of(
    pipeline: Json, records: pa.RecordBatch, path: str | None = None
) -> tuple[Iterator[tuple[str, dict[str, Any]]], Sequence[Reject]]:
    """The rule and the row of each output, in order, and the records that are rejected. Without rules a record that
    passes is its own output, of the rule "". `path` is that of the file whose lines the records are."""
    passed, rejected = Pipeline(pipeline, path, lookup_of(pipeline)).passing(records)
    if "rules" not in pipeline:
        return (("", row) for row in passed.records.to_pylist()), rejected
    return _outputs(Rules(pipeline["rules"]), passed), rejected


def step_by_step(pipeline: Json, records: pa.RecordBatch, path: str | None = None) -> Iterator[tuple[str, int, bytes]]:
    """The name of each transform, the offset of each record that passes it, and its value behind it, written as JSON.
    Rules come later."""
    steps = pipeline["transforms"]
    for count, step in enumerate(steps, 1):
        passed, _ = Pipeline(pipeline | {"transforms": steps[:count]}, path, lookup_of(pipeline)).passing(records)
        [name] = step
        yield from ((name, row["offset"], row["value"]) for row in passed.records.to_pylist())


def _outputs(rules: Rules, passed: Fields) -> Iterator[tuple[str, dict[str, Any]]]:
    names = rules.names(passed)
    while len(passed):
        outputs, _, covered = rules.shaped(passed)
        yield from ((names.pop(0), row) for row in outputs.to_pylist())
        passed = passed.behind(covered)
