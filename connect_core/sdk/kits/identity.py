"""Which target a connection has come to, and which store of markers: others may have their names by now."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

from connect_core.sdk.kits.contract import method_of, must_be

_NONE: Mapping[str, TargetIdentity] = MappingProxyType({})


class TargetIdentity(NamedTuple):
    """`rows` tells the target from every other one that its name can mean, `markers` the same of where markers stand.
    `accepted`: a person has said that this target has the rows of the former one; `accepting` is how a person says so,
    for errors. `beside`: the same, by their names, of further targets that are written in the same transactions; of one
    that `has_rows` this connection has written some."""

    rows: str
    markers: str
    accepted: bool = False
    accepting: str = ""
    has_rows: bool = True
    beside: Mapping[str, TargetIdentity] = _NONE


@runtime_checkable
class Identified(Protocol):
    """A connection (`kits.transactions.TransactionConnection`) that knows this."""

    def identity(self) -> TargetIdentity:
        """Asked within a transaction. Behind a `write` it must be the target that this has written."""


def identity_of(connection: object) -> TargetIdentity | None:
    """None where the connection does not know."""
    if not isinstance(connection, Identified):
        return None
    given = connection.identity()
    must_be(TargetIdentity, given, f"The answer of {method_of(connection, 'identity')}")
    return given
