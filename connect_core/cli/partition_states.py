"""Partitions that are not simply active: a line each, with since when and why, for plan, lag and connectors show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from connect_core.cli import output

if TYPE_CHECKING:
    from connect_core.ledger import PartitionState
    from connect_core.replication.driver.preview import Preview
    from connect_core.sdk.records import Partition

Told = dict[str, Any]


def of_states(states: Mapping[Partition, PartitionState]) -> list[Told]:
    """As the ledger keeps them."""
    return [
        {
            "partition": partition.key,
            "state": state.state,
            "since": state.since,
            "reason": state.reason,
            "kind": state.kind,
            "exit_code": state.exit_code,
        }
        for partition, state in states.items()
        if state.state != "active"
    ]


def of_previews(previews: Iterable[Preview]) -> list[Told]:
    """As the next run would find them."""
    keys = ("partition", "state", "since", "reason")
    return [{key: getattr(one, key) for key in keys} for one in previews if one.state != "active"]


def lines(told: Iterable[Told]) -> Iterator[str]:
    for one in told:
        since = f" since {output.cell(one['since'])}" if one["since"] else ""
        yield f"{one['state']}{since}: {one['partition']}" + (f": {one['reason']}" if one["reason"] else "")
