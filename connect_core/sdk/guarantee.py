"""What is promised of a record between two systems, and on what that depends. A promise never comes without its
conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Delivery = Literal["exactly once", "at least once", "at most once", "may be lost or repeated"]
"""How often a record of the source arrives in the target."""


class Guarantee(NamedTuple):
    """What one end, or a route between two, promises, if each of the `conditions` holds: a sentence each."""

    delivery: Delivery
    conditions: tuple[str, ...] = ()


def of_route(source: Guarantee, sink: Guarantee) -> Guarantee:
    """What is left of the promises of its two ends, under the conditions of both."""
    conditions = tuple(dict.fromkeys((*source.conditions, *sink.conditions)))
    return Guarantee(_weakest((source.delivery, sink.delivery)), conditions)


def _weakest(ends: Sequence[Delivery]) -> Delivery:
    weaker = {one for one in ends if one != "exactly once"}
    if not weaker:
        return "exactly once"
    return weaker.pop() if len(weaker) == 1 else "may be lost or repeated"
