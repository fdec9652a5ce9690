"""Backfills and replays that there are: what was asked for, how far each has come, and ending one for good.

`backfill_runs` begins them and goes on with them.
"""

from __future__ import annotations

from connect_core.ledger import Backfill, Ledger
from connect_core.planning.backfill_plan import BackfillPlan
from connect_core.sdk.values import Json
from connect_core.service.opened import Opened


def listed(opened: Opened, name: str = "") -> list[Json]:
    """Of a connector, or of all, the newest first."""
    names = {one.uid: one.name for one in opened.ledger.connectors()}
    uid = opened.ledger.connector(name).uid if name else None
    found = [one for one in opened.ledger.backfills(uid) if one.uid in names]
    return [told_of(opened.ledger, names[one.uid], one) for one in found]


def shown(opened: Opened, name: str, stream: str) -> Json:
    """What was asked for, its parts, and how far each has come, in positions. `open` are the ranges of a cancelled one
    that nobody will finish. `stream` as it is listed, or its id."""
    from connect_core.replication.backfill.run import stored_backfill  # brings the driver; a list does without

    connector = opened.ledger.connector(name)
    return told_of(opened.ledger, name, stored_backfill(opened.ledger, connector, stream))


def cancel(opened: Opened, name: str, stream: str, *, why: str = "") -> tuple[Json, bool]:
    """Ends it for good, at its next range boundary if it runs; and whether that changed anything."""
    from connect_core.replication.backfill.run import stored_backfill

    connector = opened.ledger.connector(name)
    stream = stored_backfill(opened.ledger, connector, stream).stream
    changed = opened.ledger.cancel_backfill(connector.uid, stream, who=opened.settings.user, why=why)
    return told_of(opened.ledger, name, stored_backfill(opened.ledger, connector, stream)), changed


def told_of(ledger: Ledger, name: str, stored: Backfill) -> Json:
    """One, as `shown` gives it, for a connector of this name."""
    plan = BackfillPlan(stored.parts)
    positions = ledger.positions(stored.uid, stored.stream, plan.partitions())
    return {
        "connector": name,
        "stream": stored.stream,
        "kind": stored.kind,
        "state": stored.state,
        "asked": stored.asked,
        "sink": stored.sink,
        "revision": stored.revision,
        "who": stored.who,
        "why": stored.why,
        "created_at": stored.created_at,
        "ended_at": stored.ended_at,
        "open": _given_up(ledger, stored) if stored.state == "cancelled" else [],
        "done": plan.done(positions),
        "planned": plan.length(positions),
        "parts": [
            {
                "partition": part.partition.key,
                "incarnation": part.incarnation,
                "begin": part.begin,
                "end": part.end,
                "done": BackfillPlan((part,)).done(positions),
            }
            for part in stored.parts
        ],
    }


def _given_up(ledger: Ledger, stored: Backfill) -> list[Json]:
    """The ranges that nobody will finish."""
    return [
        {"partition": one.range.partition.key, "begin": one.range.begin, "end": one.range.end}
        for one in ledger.open_ranges(stored.uid, stored.stream)
    ]
