"""What was moved and what waits, for the routes of Waybill's own API: in pages, the newest first; and moving positions.

Each function asks what the caller may, and raises NotFound for a connector that is not there for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from connect_core.errors import ConfigError, Fault
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Json
from connect_core.service import callers, dead_letters, lag, letter_replays, offsets, reports
from connect_core.service.dead_letters import Words
from connect_core.service.letter_replays import Replay
from connect_core.service.opened import Say, reading, working
from connect_core.service.pages import ListPage, page, place_of
from connect_core.service.standing_still import require_still
from connect_core.service.streams import ALL, of_stream
from connect_core.service.visible import NotFound, named, visible

_DIGITS = 18
"""Of the longest number that a letter may have."""


def runs(name: str, *, limit: int, after: str = "", stream: str = ALL) -> ListPage[Json]:
    callers.require("viewer")
    place, found = place_of(after, datetime, str), named(name)
    with reading() as opened:
        listed = opened.ledger.runs(found.uid, limit + 1, of_stream(stream), behind=place)
        told = reports.runs_told(opened.ledger, listed)
    return page(told, limit, lambda one: [one["started_at"], one["id"]])


def run(name: str, run_id: str) -> Json:
    """With the `total` of its receipts. Raises NotFound for an id that is none of this connector."""
    callers.require("viewer")
    uid = named(name).uid
    with reading() as opened:
        found = opened.ledger.run(uid, run_id)
        if found is None:
            raise NotFound(f"Connector {name} has no run {run_id}", next_step=f"GET /api/v1/connectors/{name}/runs")
        return reports.run_told(opened.ledger, found)


def receipts(
    name: str, *, limit: int, after: str = "", partition: str = "", run: str = "", stream: str = ""
) -> ListPage[Json]:
    """Of the live stream, unless a stream or a run is named."""
    callers.require("viewer")
    place, found = place_of(after, datetime, int), named(name)
    wanted = of_stream(stream or (ALL if run else LIVE))
    only = Partition(partition) if partition else None
    with reading() as opened:
        listed = opened.ledger.receipts(found.uid, run or None, wanted, limit + 1, partition=only, behind=place)
        told = [reports.receipt_of(found, one) for one in listed]
    return page(told, limit, lambda one: [one["settled_at"], one["range"]])


def gaps(name: str, *, limit: int, after: str = "") -> ListPage[Json]:
    """Records that were gone when they were to be read, or that a person left out."""
    callers.require("viewer")
    place, found = place_of(after, datetime, str, int), named(name)
    with reading() as opened:
        told = map(reports.gap_told, reports.gaps_of(opened.ledger, found))
        ordered = sorted(told, key=reports.place_of_gap, reverse=True)
    left = [one for one in ordered if place is None or reports.place_of_gap(one) < place]
    return page(left, limit, reports.place_of_gap)


def waiting(name: str) -> Json:
    """What waits in the source, by partition. Raises what the source raises."""
    callers.require("viewer")
    named(name)
    with reading() as opened:
        [told] = lag.lag(opened, name)
    return told


def all_waiting() -> list[Json]:
    """The same of every connector: one that cannot be asked has a `problem` and does not hide the others."""
    callers.require("viewer")
    there = list(visible().values())
    if not there:
        return []
    with reading() as opened:
        return lag.lag_of(opened, there)


def committed(name: str, *, stream: str = LIVE) -> list[Json]:
    """The committed position of each partition."""
    callers.require("viewer")
    named(name)
    with reading() as opened:
        return offsets.committed(opened, name, stream=stream)


def letters(name: str, words: Words, *, limit: int, after: str = "") -> ListPage[Json]:
    """Rejected records without their payloads."""
    callers.require("viewer")
    place = place_of(after, int)
    named(name)
    with reading() as opened:
        found = dead_letters.listed(opened, name, words, last=limit + 1, below=place[0] if place else None)
    return page(found, limit, lambda one: [one["id"]])


def letter(name: str, number: str) -> Json:
    """One rejected record with what it held: for who may read the source as well. Raises NotFound, NotAllowed, and
    ConfigError for a number that is no letter of this connector."""
    callers.require("admin", name)
    named(name)
    if not (number.isascii() and number.isdecimal()) or len(number) > _DIGITS:
        raise NotFound(
            f"Connector {name} has no dead letter {number}", next_step=f"GET /api/v1/connectors/{name}/dead-letters"
        )
    with reading() as opened:
        return dead_letters.shown(opened, name, int(number))


def replay_preview(name: str, wanted: Replay) -> Json:
    """Which rejected records such a replay would send, and which are left out; nothing is begun. `until` is when that
    was looked up: a replay of those stored before it sends none that is newer. Raises as a replay does."""
    callers.require("admin", name)
    named(name)
    now = datetime.now(UTC)
    with reading() as opened:
        found = letter_replays.preview(opened, name, wanted)
    told: Json = {"connector": name, "until": now, "letters": found.letters, "delivered": found.delivered}
    counts = [one._asdict() for one in found.counts]
    return told | {"counts": counts, "left_out": dict(found.left_out), "resumed": list(found.resumed)}


def move(
    name: str,
    wanted: Mapping[str, int | None],
    say: Say,
    *,
    why: str,
    preview: bool,
    seen: Mapping[str, int | None] | None = None,
) -> Json:
    """Moves the committed positions of the live stream, all or none; None stands for the oldest record. `before` is
    what takes it back. With `preview` nothing is changed. `seen` are offsets before, as a preview has told them. Raises
    NotAllowed, StillRuns, OffsetMoved where one of these is another now, LeaseHeld while a run works on one of these
    partitions, and ConfigError where `seen` has other partitions, and for a place where reading cannot go on."""
    callers.require("admin", name)
    found = named(name)
    if not wanted:
        raise ConfigError("There is nothing to move", faults=(Fault("offsets", "names no partition"),))
    with working() as opened:
        if not preview:
            require_still(opened, found, say)
        return offsets.set_offsets(
            opened, name, wanted, why=why, still=lambda _: None, say=say, preview=preview, seen=seen
        )
