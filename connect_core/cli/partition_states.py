"""Partitions that are not simply active: a line each, with since when and why, for plan, lag and connectors show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from connect_core.cli import output


def lines(told: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Of those that are active nothing is said."""
    for one in told:
        if one["state"] == "active":
            continue
        since = f" since {output.cell(one['since'])}" if one["since"] else ""
        yield f"{one['state']}{since}: {one['partition']}" + (f": {one['reason']}" if one["reason"] else "")
