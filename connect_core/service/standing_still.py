"""Offsets are moved by a request while their connector is paused or stopped: no run then takes them up halfway."""

from __future__ import annotations

from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.service import connectors
from connect_core.service.opened import Opened, Say


class StillRuns(ConfigError):
    """The connector has to be paused or stopped before."""


def require_still(opened: Opened, found: Connector, say: Say) -> None:
    """Raises StillRuns."""
    name = found.name
    now = connectors.states(opened, [found], say)[name].state
    if now not in ("paused", "stopped"):
        raise StillRuns(
            f"Connector {name} is {now}, and its offsets are moved while it is paused or stopped",
            next_step=f"POST /api/v1/connectors/{name}/pause",
        )
