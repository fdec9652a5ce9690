"""Tables that a changed document names in other capitals."""

from __future__ import annotations

from typing import Any

import pytest

from connect_core.service.respelled_tables import respelled


def document(*names: str) -> dict[str, Any]:
    options = {"table": names[0]} if len(names) == 1 else {"tables": [*names]}
    return {"source": {"some": options}}


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (("Orders",), ("orders",), 1),
        (("Orders", "x"), ("ord*", "x"), 1),
        (("orders", "x"), ("ord*", "x"), 0),
        (("Orders", "x"), ("Ord*", "ord*"), 0),
        (("Orders",), ("customers",), 0),
        (("shop.Orders", "shop.X"), ("shop.orders", "shop.x"), 2),
        (("orders",), ("orders",), 0),
    ],
)
def test_what_is_told(before: tuple[str, ...], now: tuple[str, ...], told: int) -> None:
    assert len([*respelled(document(*before), document(*now))]) == told


def test_a_document_that_is_new_is_not_told_of() -> None:
    assert [*respelled({}, document("orders"))] == []
    assert [*respelled({"source": {"some": {"query": "SELECT 1"}}}, document("orders"))] == []
