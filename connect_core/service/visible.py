"""The connectors that a caller may know of, for functions behind routes: what is not for a caller is not there."""

from __future__ import annotations

import re
from difflib import get_close_matches

from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.service import callers, connectors


class NotFound(ConfigError):
    """What was asked for is not there."""


def visible() -> dict[str, Connector]:
    """All that the caller may know of, by name; none where there is no ledger yet."""
    return {name: one for name, one in connectors.by_name().items() if callers.sees(name)}


def visible_one(name: str) -> Connector | None:
    """None for one that is not there, or not for the caller to know of."""
    return connectors.named(name) if callers.sees(name) else None


def named(name: str) -> Connector:
    """Raises NotFound for one that is not there, or not for the caller to know of."""
    if (found := visible_one(name)) is None:
        near = get_close_matches(name, visible(), n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise NotFound(f"Connector {name} not found", next_step=f"{meant}GET /api/v1/connectors")
    return found


def may_write(name: str) -> None:
    """Raises NotAllowed where the caller may not create or change a connector of this name, whether it is there or
    not."""
    callers.require("admin", name)
    callers.require_name(name)


def without_others(message: str) -> str:
    """Without the names of connectors that the caller may not know of."""
    if callers.who() is None:
        return message
    others = [name for name in connectors.by_name() if not callers.sees(name)]
    for name in others:
        message = re.sub(rf"connector {re.escape(name)}(?![\w.-])", "another connector", message)
    return message
