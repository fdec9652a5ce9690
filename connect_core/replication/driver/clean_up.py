"""Before a connector is deleted: what is on its other sides keeps nothing for it any more (`sdk.source.RemoteState`).

Nobody works for the connector meanwhile: it is stopped, and all its leases are held until it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from connect_core import clock, systems
from connect_core.config import Settings, revealed
from connect_core.errors import LeaseHeld
from connect_core.ledger import UNFINISHED, Connector, Ledger, task_lease_id
from connect_core.masking import mask_secrets
from connect_core.replication.driver.leases import HeldLeases, LeaseRequest, acquire
from connect_core.replication.driver.prepare import holder, resolved, times
from connect_core.sdk.plugin import Role
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import RemoteState, Source
from connect_core.sdk.values import ERRORS_SINK, LIVE
from connect_core.work import Side

_AGAIN_S = 0.5
End = Literal["errors.sink", "sink", "source"]
_ROLES: Mapping[End, Role] = {"errors.sink": "sink", "sink": "sink", "source": "source"}
"""In the order in which they are told: when the second one cannot be, and the connector is resumed after all, a sink
that has lost its progress repeats, and says so; a source's session would be lost."""


def ends_with_remote_state(connector: Connector) -> list[End]:
    """Its ends whose other side may keep something for it. Also of a document that this version does not take any
    more."""
    document = connector.document
    written = {**document, "errors.sink": (document.get("errors") or {}).get("sink")}
    by_end = {end: systems.SYSTEMS.get(next(iter(written.get(end) or {}), "")) for end in _ROLES}
    return [end for end, system in by_end.items() if system is not None and _ROLES[end] in system.remote_state]


@contextmanager
def cleaned_up(
    ledger: Ledger, settings: Settings, home: Path, connector: Connector, say: Callable[[str], None]
) -> Iterator[list[str]]:
    """Gives what a person should know. The connector has to be stopped before. Raises LeaseHeld when a run does not
    end, and what an end raises that cannot be told."""
    now = resolved(ledger, settings, home, connector)
    sides = {"source": now.source, "sink": now.sink, "errors.sink": now.errors_sink}
    with ExitStack() as opened:
        wanted = [(_ROLES[end], side) for end in ends_with_remote_state(connector) if (side := sides[end])]
        ends = [_opened(role, side, opened) for role, side in wanted]
        opened.callback(_at_rest(ledger, settings, home, connector, say).release)
        known = ledger.positions(connector.uid, LIVE, list(ledger.partitions(connector.uid)))
        told = [said for end in ends if isinstance(end, RemoteState) for said in end.delete_remote_state(known)]
        yield list(map(mask_secrets, told))


def _opened(role: Role, side: Side, resources: ExitStack) -> Source | Sink:
    return systems.sink(revealed(side), resources) if role == "sink" else systems.source(revealed(side), resources)


def _at_rest(
    ledger: Ledger, settings: Settings, home: Path, connector: Connector, say: Callable[[str], None]
) -> HeldLeases:
    """A run that is under way ends at its next range boundary: it is waited for as long as a lease lives, also the last
    attempt of a backfill that was called off. One that was not goes on, attempt by attempt, and has to be."""
    assignment, now = ledger.assignment(connector.uid), times(settings)
    tasks = sorted({share.task for share in assignment.shares.values()})
    uid, version = connector.uid, assignment.version
    until = clock.monotonic() + now.quantum_s + now.ttl_s
    while True:
        try:
            wanted = [
                LeaseRequest(task_lease_id(uid, stream, version, task), uid, stream, version)
                for stream in _streams_at_rest(ledger, connector)
                for task in tasks
            ]
            return acquire(ledger, wanted, holder=holder(), home=home, times=now, say=say)
        except LeaseHeld:
            if clock.monotonic() > until:
                raise
            clock.sleep(_AGAIN_S)


def _streams_at_rest(ledger: Ledger, connector: Connector) -> list[str]:
    """Those of which an attempt may be at work. Raises LeaseHeld while a backfill is running: between two attempts
    nobody has its leases."""
    backfills = ledger.backfills(connector.uid)
    if running := next((one.stream for one in backfills if one.state == "running"), None):
        raise LeaseHeld(
            f"{running} is running",
            where=f"connector {connector.name}",
            next_step=f"Wait until it is done, or call it off: waybill backfills cancel {connector.name} {running}",
        )
    others = [one for one in backfills if one.state in UNFINISHED or ledger.live_leases(connector.uid, one.stream)]
    return [LIVE, ERRORS_SINK, *(one.stream for one in others)]
