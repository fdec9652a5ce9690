"""What is different where the source pushes (`contracts.Inbox`): when it is acknowledged, and what an attempt left.

Used by a lane, in its worker, and by a task's driver. Why so: docs/decisions/mqtt-inbox.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.contracts import Inbox, OpenRange, Outcome, Receipt, Sink, Source, Writer
from connect_core.found import Found
from connect_core.observe import Step
from connect_core.replication.losses import reconstructed
from connect_core.replication.passage import Passage


class Acknowledging:
    """The worker's side. Of other sources, and into a sink that could not tell afterwards which records it holds,
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


def left(inbox: Inbox, items: Sequence[OpenRange]) -> list[Outcome]:
    """The driver's side: ranges whose attempt left no receipt, looked for in the target, are closed behind the highest
    record that is there. What is not there was not acknowledged, and comes again. So does a record of which only some
    outputs are there: it is delivered again with all of them, and those are told as possible repeats."""
    return [Outcome(item.id, _closed(inbox, item)) for item in items]


def _closed(inbox: Inbox, item: OpenRange) -> Receipt:
    found = item.found or Found()
    recovered = inbox.recovered(item.range, found)
    end = found.behind_highest(item.range.begin, item.range.end)
    come_again = found.prefix.records + found.prefix.unsure  # in such a target: nothing of this was acknowledged
    repeats = recovered.possible_repeats + found.possible_repeats + found.in_parts() + come_again
    return reconstructed(item, end, recovered.evidence, repeats)
