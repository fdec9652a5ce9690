"""Partitions that are not simply active: which, since when and why, for plan, lag and connectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from connect_core.ledger import PartitionState
    from connect_core.replication.driver.preview import Preview
    from connect_core.sdk.records import Partition


def of_states(states: Mapping[Partition, PartitionState]) -> list[dict[str, Any]]:
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


def of_previews(previews: Iterable[Preview]) -> list[dict[str, Any]]:
    """As the next run would find them."""
    keys = ("partition", "state", "since", "reason")
    return [{key: getattr(one, key) for key in keys} for one in previews if one.state != "active"]
