"""What records would become: the pipeline of a document without a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from connect_core.pipeline.fields import Fields
from connect_core.pipeline.rules import Rules
from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.values import Json


def outputs_of(
    pipeline: Json, records: pa.RecordBatch, path: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rule and the row of each output, in order; `pipeline` is one with rules, `path` that of the file whose lines
    the records are."""
    passed = Pipeline({name: value for name, value in pipeline.items() if name != "rules"}, path).shape(records).kept
    rules = Rules(pipeline["rules"])
    names = rules.names(Fields(passed, path))
    while len(passed):
        outputs, _, covered = rules.shaped(passed, Fields(passed, path))
        yield from ((names.pop(0), row) for row in outputs.to_pylist())
        passed = passed.slice(covered)
