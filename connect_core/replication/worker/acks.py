"""When a source that pushes (`contracts.Inbox`) is acknowledged, by the worker that holds its connection.

Why so: docs/decisions/mqtt-inbox.md.
"""

from __future__ import annotations

from connect_core.contracts import Inbox, Sink, Source, Writer
from connect_core.observe import Step
from connect_core.replication.worker.range import Passage


class Acknowledging:
    """Of other sources, and into a sink that could not tell afterwards which records it holds,
    nothing is acknowledged."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self._inbox = source if isinstance(source, Inbox) and sink.tells_records else None

    def taken(self, passage: Passage, writer: Writer) -> None:
        """What the passage has taken is made durable and acknowledged, but for what is behind a rejected record: that
        is not in the ledger before the range is settled."""
        if self._inbox is None:
            return
        if passage.flush(writer) is None:
            return
        passage.told(Step.BATCH_DURABLE)
        rejects = [reject.offset for reject in passage.tally.rejects]
        self._inbox.acknowledge(passage.item.range, min(rejects, default=passage.tally.end))
        passage.told(Step.ACKNOWLEDGED)
