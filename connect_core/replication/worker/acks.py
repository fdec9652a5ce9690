"""When a source that pushes (`sdk.source.PushSource`) is acknowledged, by the worker that holds its connection.

Why so: docs/decisions/mqtt-push-source.md.
"""

from __future__ import annotations

from connect_core.observe import Step
from connect_core.replication.worker.range import WorkerRange
from connect_core.sdk.sink import Sink, Writer
from connect_core.sdk.source import PushSource, Source


class Acknowledger:
    """Only when something of a range is taken, and so will be settled with what it tells: of an acknowledgement that
    nothing tells of, a source could not know later that it was sent."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self._push_source = source if isinstance(source, PushSource) else None
        self._tells_records = sink.scan_tells_records

    def taken(self, worker_range: WorkerRange, writer: Writer) -> None:
        """What was taken of the range is made durable and acknowledged, but for what is behind a rejected record: that
        is not in the ledger before the range is settled. Into a sink that could not tell afterwards which records it
        holds, only what was settled before."""
        begin, end = worker_range.item.range.begin, worker_range.counts.end
        if self._push_source is None or end == begin:
            return
        if not self._tells_records:
            self._push_source.acknowledge(worker_range.item.range, begin)
            return
        if not worker_range.store(writer):
            return
        worker_range.reached(Step.BATCH_DURABLE)
        rejects = [reject.offset for reject in worker_range.counts.rejects]
        self._push_source.acknowledge(worker_range.item.range, min(rejects, default=end))
        worker_range.reached(Step.ACKNOWLEDGED)
