"""What is left of the promises of two ends."""

from __future__ import annotations

import pytest

from connect_core.cli import guarantees
from connect_core.sdk.guarantee import Delivery, Guarantee, of_route
from connect_core.sdk.kits.commits import CommitSink
from connect_core.sdk.kits.keyed import KeyedSink
from connect_core.sdk.kits.log_sink import LogSink
from connect_core.sdk.kits.log_source import LogSource
from connect_core.sdk.kits.polled import PolledSource
from connect_core.sdk.kits.received import ReceivedSource
from connect_core.sdk.kits.transactions import TransactionSink


@pytest.mark.parametrize(
    ("source", "sink", "route"),
    [
        ("exactly once", "exactly once", "exactly once"),
        ("exactly once", "at least once", "at least once"),
        ("at most once", "exactly once", "at most once"),
        ("at least once", "at least once", "at least once"),
        ("at most once", "at least once", "may be lost or repeated"),
        ("may be lost or repeated", "exactly once", "may be lost or repeated"),
        ("at least once", "may be lost or repeated", "may be lost or repeated"),
    ],
)
def test_a_route_promises_no_more_than_either_end(source: Delivery, sink: Delivery, route: Delivery) -> None:
    assert of_route(Guarantee(source), Guarantee(sink)).delivery == route


def test_a_route_depends_on_the_conditions_of_both_ends_each_once() -> None:
    both = of_route(Guarantee("exactly once", ("A.", "B.")), Guarantee("exactly once", ("B.", "C.")))
    assert both.conditions == ("A.", "B.", "C.")


def test_a_route_depends_on_what_its_policies_let_pass_as_well() -> None:
    both = of_route(Guarantee("exactly once", ("A.",)), Guarantee("exactly once", ("B.",)), ("C.",))
    assert both.conditions == ("A.", "B.", "C.")


def test_no_condition_makes_a_promise_of_none() -> None:
    nothing = of_route(Guarantee("at least once", ("A.",)), Guarantee("at most once", ("B.",)), ("C.",))
    assert nothing == Guarantee("may be lost or repeated")


@pytest.mark.parametrize(
    ("source", "sink", "route"),
    [
        ("each queue", "", "each queue"),
        ("each queue", "each key", "each key of each queue"),
        (None, "", None),
        (None, "each key", None),
        ("each queue", None, None),
    ],
)
def test_a_route_keeps_the_order_that_both_ends_keep(source: str | None, sink: str | None, route: str | None) -> None:
    ends = Guarantee("exactly once", order=source), Guarantee("exactly once", order=sink)
    assert of_route(*ends).order == route


@pytest.mark.parametrize(
    "kit", [CommitSink, KeyedSink, LogSink, LogSource, PolledSource, ReceivedSource, TransactionSink]
)
def test_no_kit_says_exactly_once_without_a_condition(kit: type) -> None:
    promised: Guarantee = vars(kit)["guarantee"]
    assert (promised.delivery, bool(promised.conditions)) == ("exactly once", True)


@pytest.mark.parametrize(
    ("kit", "order"), [(PolledSource, "each partition"), (LogSource, "each log"), (ReceivedSource, None)]
)
def test_a_kit_of_sources_keeps_the_order_that_its_source_gives(kit: type, order: str | None) -> None:
    """A queue sends again what was not acknowledged, behind what came later."""
    promised: Guarantee = vars(kit)["guarantee"]
    assert promised.order == order


@pytest.mark.parametrize(("order", "shown"), [("each file", "within each file"), (None, "none is promised")])
def test_order_is_shown_below_the_conditions(order: str | None, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    guarantees.show({"delivery": "exactly once", "conditions": ["A."], "order": order})
    assert capsys.readouterr().out == f"guarantee: exactly once, if\n  - A.\norder: {shown}\n"


def test_what_nobody_states_is_not_promised(capsys: pytest.CaptureFixture[str]) -> None:
    guarantees.show(None)
    assert capsys.readouterr().out == "guarantee: none is stated\n"
