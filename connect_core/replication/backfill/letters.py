"""Beginning a replay of dead letters: which of them, through the document of today, into its target.

It is a backfill whose parts are numbers of dead letters (`connect_core/ledger/letter_replays.py`); its attempts are
those of any other (`run`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from connect_core import clock, systems
from connect_core.config import Resolved, Settings, revealed, sink_changes
from connect_core.errors import ConfigError
from connect_core.ledger import REPLAY_KIND, Backfill, LetterChoice, Wanted, WritersSeen, new_run_id, replay_stream
from connect_core.replication.backfill.run import backfill_resolved
from connect_core.replication.backfill.start import require_apart
from connect_core.replication.backfill.targets import stored_beside
from connect_core.replication.driver.context import RunContext
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import ByOffset
from connect_core.sdk.values import Json


def begun_letters(
    context: RunContext,
    settings: Settings,
    wanted: Wanted,
    choice: LetterChoice,
    *,
    again: bool,
    sink: Mapping[str, str],
    asked: Json,
    who: str,
    why: str,
) -> Backfill | None:
    """Stored with the letters that it takes: of those `wanted` none that came after the `choice` was shown. None when
    there are none any more. `context` is that of the live stream. Raises ConfigError when the document of today, or its
    sink, cannot take them."""
    ledger, connector = context.ledger, context.connector
    stream = replay_stream(new_run_id(clock.utc()))
    draft = Backfill(
        uid=connector.uid,
        stream=stream,
        kind=REPLAY_KIND,
        revision=connector.revision,
        asked=asked,
        parts=(),
        sink=sink_changes(connector.document, sink, stream, context.home, settings),
        who=who,
        why=why,
    )
    resolved = backfill_resolved(context, draft, settings)
    _require_any_order(resolved)
    require_apart(context, settings, resolved, draft)
    _require_named(context, {partition for partition, _ in choice.sent})
    shown = replace(wanted, newest=choice.newest)
    partitions = ledger.partitions(connector.uid).keys()

    def store(seen: WritersSeen) -> Backfill | None:
        require_apart(context, settings, resolved, draft)
        return ledger.begin_letter_replay(draft, shown, partitions, again=again, seen=seen)

    return stored_beside(ledger, store)


def _require_any_order(resolved: Resolved) -> None:
    """Raises ConfigError for a target that takes the higher offset for the newer record: numbers of dead letters say
    nothing of that, and a row could be passed over, or replaced by an older one."""
    if isinstance(systems.sink(revealed(resolved.sink)), ByOffset):
        raise ConfigError(
            "The sink knows by offsets which of two records is newer, and dead letters are numbered in another order",
            where=f"connector {resolved.name}, sink {resolved.sink.system}",
            next_step="Move the records again from the source: waybill backfill NAME --range PARTITION:BEGIN-END",
        )


def _require_named(context: RunContext, partitions: set[Partition]) -> None:
    """Raises ConfigError where the source of today is of another kind than the one that has read them."""
    with ExitStack() as resources:
        source = systems.source(revealed(context.resolved.source), resources)
        for partition in sorted(partitions):
            try:
                source.topic(partition)
            except Exception as error:
                raise ConfigError(
                    f"{partition.key} is no partition of a source {context.resolved.source.system}",
                    where=f"connector {context.connector.name}",
                    next_step="Its dead letters were read by another source: choose others with --partition",
                ) from error
