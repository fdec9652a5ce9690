"""Offsets are moved by a request while their connector is paused or stopped: no run then takes them up halfway."""

from __future__ import annotations

from connect_core.errors import ConfigError, LeaseHeld
from connect_core.ledger import Connector
from connect_core.replication.driver.status import status_of
from connect_core.service import connectors
from connect_core.service.opened import Opened, Say


class StillRuns(ConfigError):
    """The connector has to be paused or stopped before."""


def require_still(opened: Opened, found: Connector, say: Say) -> None:
    """Raises StillRuns, and LeaseHeld where it stands still and another change is under way."""
    name = found.name
    facts = connectors.facts_of(opened, [found], say)[name]
    now = status_of(facts).state
    if now in ("paused", "stopped"):
        return
    if facts.switch in ("paused", "stopped") and not any(run.state == "running" for run in facts.runs):
        longest_s = 2 * opened.settings.lease_ttl_s  # a lease that is not renewed any more is judged by twice that
        raise LeaseHeld(
            f"Another change is made to connector {name}: it holds the lease of a task, and no run is at work",
            where=f"connector {name}",
            next_step="Nothing was changed; try again when it has ended: if its process on this host was killed, in"
            f" {longest_s:g} s at the latest",
        )
    raise StillRuns(
        f"Connector {name} is {now}, and its offsets are moved while it is paused or stopped",
        next_step=f"POST /api/v1/connectors/{name}/pause",
    )
