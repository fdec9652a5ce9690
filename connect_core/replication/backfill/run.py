"""An attempt of a backfill or a replay: what it takes from the connector.

`backfill_context` makes the context; `run_connector` and `run_task` then work as for the live stream. Everybody who
moves a backfill comes through here: the command, a scheduler's task, a Spark job.
"""

from __future__ import annotations

from dataclasses import replace

from connect_core.config import ALL, Resolved, Settings, diverted, load_document, resolve, with_policies
from connect_core.errors import ConfigError, Retriable
from connect_core.ledger import REPLAY_KIND, Backfill, Connector, Ledger
from connect_core.planning.backfill_plan import BackfillPlan
from connect_core.replication.driver.context import RunContext
from connect_core.sdk.values import LIVE, Json


def stored_backfill(ledger: Ledger, connector: Connector, stream: str) -> Backfill:
    """By its stream, or by the id that it was begun with. Raises ConfigError when nobody has begun it, or when
    several of different kinds have that id."""
    found = ledger.backfill(connector.uid, stream)
    if found is None:
        kinds = [ledger.backfill(connector.uid, f"{kind}-{stream}") for kind in ("backfill", "replay", REPLAY_KIND)]
        of_id = [one for one in kinds if one is not None]
        if len(of_id) == 1:
            return of_id[0]
        known = ", ".join(one.stream for one in ledger.backfills(connector.uid)) or "none"
        raise ConfigError(f"Connector {connector.name} has no backfill {stream!r}", next_step=f"There are: {known}")
    return found


def backfill_context(context: RunContext, stored: Backfill, settings: Settings) -> RunContext:
    """The live `context` of a connector as one for the attempts of `stored`, which is in the ledger.

    What is read, what becomes of it and where it goes are those of the revision that it began with, whatever the
    document says since. What is tolerated, and how dead letters are kept, is what the document says now. Tasks are
    those of the live assignment. It ends when all is moved: a window is for what is still to come.
    """
    resolved = backfill_resolved(context, stored, settings)
    replays_letters = stored.kind == REPLAY_KIND
    if replays_letters:  # what is rejected again stays a dead letter, and holds up no other
        resolved = replace(resolved, tolerance=ALL, reject_limit=None)
    return replace(
        context,
        connector=replace(context.connector, revision=stored.revision),
        resolved=resolved,
        resolve=lambda revision, pinned=None: backfill_resolved(context, stored, settings, pinned),
        stream=stored.stream,
        window_s=0.0,
        backfill_plan=BackfillPlan(stored.parts),
        accept_gaps=context.accept_gaps or bool(stored.asked.get("accept_gaps")),
        replays_letters=replays_letters,
        halted=lambda: context.halted() or _cancelled(context, stored.stream),
    )


def context_of_stream(live: RunContext, stream: str, settings: Settings) -> RunContext:
    """The `live` context itself for the live stream, else the one for attempts of a backfill that was begun."""
    if stream == LIVE:
        return live
    return backfill_context(live, stored_backfill(live.ledger, live.connector, stream), settings)


def backfill_resolved(
    context: RunContext, stored: Backfill, settings: Settings, pinned: Json | None = None
) -> Resolved:
    """The connector as the backfill began with it, writing to its own sink; connections as they were `pinned`."""
    connector, now = context.connector, context.resolved
    data = diverted(context.ledger.document(connector.uid, stored.revision), stored.sink)
    document = load_document(data, f"connector {connector.name}, {stored.stream}")
    tasks = context.ledger.assignment(connector.uid).tasks or now.tasks
    resolved = resolve(document.model_copy(update={"tasks": tasks}), context.home, settings, connector.uid, pinned)
    source = with_policies("source", resolved.source, now.source)
    sink = with_policies("sink", resolved.sink, now.sink)
    return replace(
        resolved,
        source=source,
        sink=sink,
        tolerance=now.tolerance,
        reject_limit=now.reject_limit,
        on_data_loss=now.on_data_loss,
        errors_sink=now.errors_sink,
        encrypt=now.encrypt,
    )


def gets_nowhere(connector: str, stream: str) -> Retriable:
    """What to raise after an attempt that is not done, and had nothing to move."""
    return Retriable(
        f"{stream} is not done, and there was nothing to move",
        where=f"connector {connector}",
        next_step=f"See what is left: waybill backfills show {connector} {stream}",
    )


def _cancelled(context: RunContext, stream: str) -> str:
    stored = context.ledger.backfill(context.connector.uid, stream)
    return "cancelled" if stored is None or stored.state == "cancelled" else ""
