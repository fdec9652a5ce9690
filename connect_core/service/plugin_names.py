"""One plug-in of a list of them, as `plugins` tells it, by what a person calls it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from connect_core.errors import ConfigError
from connect_core.sdk.values import Json


def of_name(told: Sequence[Json], name: str) -> list[Json]:
    """Those of them that have this name, or are a class of this name; all of them where it is empty. Raises
    ConfigError."""
    found = [one for one in told if not name or name == one["name"] or name in one["classes"]]
    if name and not found:
        near = get_close_matches(name, sorted({one["name"] for one in told}), n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise ConfigError(f'There is no plug-in "{name}"', next_step=f"{meant}`waybill plugins` shows all")
    return found
