"""What is promised of records between two systems, and on what that depends. A promise never comes without its
conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Delivery = Literal["exactly once", "at least once", "at most once", "may be lost or repeated"]
"""How often a record of the source arrives in the target."""


class Guarantee(NamedTuple):
    """What one end, or a route between two, promises, if each of the `conditions` holds: a sentence each."""

    delivery: Delivery
    conditions: tuple[str, ...] = ()
    order: str | None = None
    """Within what records keep their order, as "each file". A sink that keeps the order of its source says "", one that
    keeps less of it "each key". None: no order is promised."""


def of_route(source: Guarantee, sink: Guarantee, policies: Iterable[str] = ()) -> Guarantee:
    """What is left of the promises of its two ends, under the conditions of both, and of the connector's `policies`.
    Where nothing is left, there is nothing that could depend on a condition."""
    delivery = _weakest((source.delivery, sink.delivery))
    conditions = () if delivery == "may be lost or repeated" else (*source.conditions, *sink.conditions, *policies)
    return Guarantee(delivery, tuple(dict.fromkeys(conditions)), _order(source.order, sink.order))


def _order(source: str | None, sink: str | None) -> str | None:
    if source is None or sink is None:
        return None
    return f"{sink} of {source}" if sink else source


def _weakest(ends: Sequence[Delivery]) -> Delivery:
    weaker = {one for one in ends if one != "exactly once"}
    if not weaker:
        return "exactly once"
    return weaker.pop() if len(weaker) == 1 else "may be lost or repeated"
