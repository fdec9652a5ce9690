"""Before a connector is deleted: the other side of its source keeps nothing for it any more (`contracts.Lasting`).

Nobody works for the connector meanwhile: it is stopped, and all its leases are held until it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from connect_core import clock, systems
from connect_core.config import Settings, revealed
from connect_core.contracts import LIVE, Lasting
from connect_core.errors import LeaseHeld
from connect_core.ledger import Connector, Ledger, task_lease_id
from connect_core.replication.leasing import Held, Wanted, acquire
from connect_core.replication.preparing import holder, resolved, times

_AGAIN_S = 0.5


def has_to_part(connector: Connector) -> bool:
    """Whether the other side may keep something for it. Also of a document that this version does not take any more."""
    system = systems.SYSTEMS.get(next(iter(connector.document.get("source") or {}), ""))
    return system is not None and system.lasting


@contextmanager
def parted(
    ledger: Ledger, settings: Settings, home: Path, connector: Connector, say: Callable[[str], None]
) -> Iterator[list[str]]:
    """Gives what a person should know. The connector has to be stopped before. Raises LeaseHeld when a run does not
    end, and what the source raises when it cannot be told."""
    side = revealed(resolved(ledger, settings, home, connector).source)
    with ExitStack() as opened:
        source = systems.source(side, opened)
        opened.callback(_at_rest(ledger, settings, home, connector, say).release)
        known = ledger.positions(connector.uid, LIVE, list(ledger.partitions(connector.uid)))
        yield source.end(known) if isinstance(source, Lasting) else []


def _at_rest(ledger: Ledger, settings: Settings, home: Path, connector: Connector, say: Callable[[str], None]) -> Held:
    """A run that is under way ends at its next range boundary: it is waited for as long as a lease lives."""
    assignment, now = ledger.assignment(connector.uid), times(settings)
    tasks = sorted({share.task for share in assignment.shares.values()})
    version = assignment.version
    wanted = [Wanted(task_lease_id(connector.uid, LIVE, version, task), connector.uid, LIVE, version) for task in tasks]
    until = clock.monotonic() + now.quantum_s + now.ttl_s
    while True:
        try:
            return acquire(ledger, wanted, holder=holder(), home=home, times=now, say=say)
        except LeaseHeld:
            if clock.monotonic() > until:
                raise
            clock.sleep(_AGAIN_S)
