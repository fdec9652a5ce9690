"""What the kits for sources have in common: which errors concern one partition, and which all of them."""

from __future__ import annotations

from connect_core.errors import ConfigError, Failure, LeaseHeld, PartitionUnreachable, Unreachable, WaybillError


def failure_of_one(error: WaybillError) -> Failure:
    """The failure of the partition at which the author's code raised `error`; the others continue. Raises the error
    again where it concerns all: the server does not answer, another attempt has taken over, the document is wrong. An
    author who knows better raises PartitionUnreachable."""
    concerns_all = isinstance(error, (Unreachable, LeaseHeld, ConfigError))
    if concerns_all and not isinstance(error, PartitionUnreachable):
        raise error
    return Failure.of(error)
