"""What Spark calls in its Python workers: one task is one lane or one search.

Pickled by reference, so that a worker takes the code that is installed beside it. Rows in: `index`, `request`; rows
out: `index`, `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

REQUEST_SCHEMA = pa.schema([pa.field("index", pa.int64()), pa.field("request", pa.binary())])
ANSWER_SCHEMA = pa.schema([pa.field("index", pa.int64()), pa.field("answer", pa.binary())])


def lanes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Works through the lane of this task."""
    from pyspark import TaskContext

    from connect_core.engine.worker import run_lane

    attempt_number = TaskContext.get().attemptNumber()
    yield from _answered(batches, lambda request: run_lane(request, attempt_number))


def staying(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Works through the lanes that the driver sends over a line, until it closes that."""
    from pyspark import TaskContext

    from connect_core.engine.worker import stay

    attempt_number = TaskContext.get().attemptNumber()
    yield from _answered(batches, lambda invitation: stay(invitation, attempt_number))


def searches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs the search of this task."""
    from connect_core.engine.worker import run_search

    yield from _answered(batches, run_search)


def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Says where its worker is and which code it runs, for a driver that asks before it plans anything."""
    from connect_core.engine.worker import place

    yield from _answered(batches, lambda _: place())


def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Answers with the request: the first job of a server, which loads what every other one needs."""
    from connect_core.replication.worker import lane  # noqa: F401

    yield from _answered(batches, lambda request: request)


def _answered(batches: Iterator[pa.RecordBatch], answer: Callable[[bytes], bytes]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        indexes, requests = batch.columns
        for index, request in zip(indexes.to_pylist(), requests.to_pylist(), strict=True):
            yield pa.record_batch([pa.array([index]), pa.array([answer(request)], pa.binary())], schema=ANSWER_SCHEMA)
