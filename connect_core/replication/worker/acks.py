"""When a source that pushes (`sdk.source.PushSource`) is acknowledged, by the worker that holds its connection.

Why so: docs/decisions/mqtt-push-source.md.
"""

from __future__ import annotations

from connect_core.observe import Step
from connect_core.replication.worker.range import WorkerRange
from connect_core.sdk.sink import Sink, Writer
from connect_core.sdk.source import PushSource, Source


class Acknowledger:
    """Of other sources, and into a sink that could not tell afterwards which records it holds,
    nothing is acknowledged."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self._push_source = source if isinstance(source, PushSource) and sink.scan_tells_records else None

    def taken(self, worker_range: WorkerRange, writer: Writer) -> None:
        """What was taken of the range is made durable and acknowledged, but for what is behind a rejected record: that
        is not in the ledger before the range is settled."""
        if self._push_source is None:
            return
        if worker_range.flush(writer) is None:
            return
        worker_range.reached(Step.BATCH_DURABLE)
        rejects = [reject.offset for reject in worker_range.counts.rejects]
        self._push_source.acknowledge(worker_range.item.range, min(rejects, default=worker_range.counts.end))
        worker_range.reached(Step.ACKNOWLEDGED)
