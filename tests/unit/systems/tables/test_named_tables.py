"""Which tables a document means."""

from __future__ import annotations

import pytest

from connect_core.systems.postgresql.plugin import PLUGIN
from connect_core.systems.tables.named_tables import NamedTables

THERE = ["public.orders", "public.pay_in", "public.pay_old", "sales.orders", "public.waybill_markers"]


@pytest.mark.parametrize(
    ("wanted", "excluded", "meant"),
    [
        (["public.orders"], [], ["public.orders"]),
        (["public.*"], [], ["public.orders", "public.pay_in", "public.pay_old"]),
        (["public.pay_*"], ["public.*_old"], ["public.pay_in"]),
        (["*.orders"], ["sales.*"], ["public.orders"]),
        (["public.orders", "public.?ay_in"], [], ["public.orders", "public.pay_in"]),
        (["public.waybill_markers"], [], ["public.waybill_markers"]),
        (["public.gone", "public.pay_in"], [], ["public.gone", "public.pay_in"]),
        (["public.orders"], ["public.orders"], []),
    ],
)
def test_names_and_patterns(wanted: list[str], excluded: list[str], meant: list[str]) -> None:
    named = NamedTables(wanted, excluded)
    assert named.now(THERE) == meant
    assert [one for one in THERE if named.mean(one)] == [one for one in meant if one in THERE]


@pytest.mark.parametrize(
    ("more", "feeds"),
    [
        ({"table": "orders"}, True),
        ({"table": "sales.orders"}, False),
        ({"tables": ["ord*"]}, True),
        ({"tables": ["ord*"], "exclude": ["orders"]}, False),
        ({"tables": ["sales.*"]}, False),
        ({"table": "orders", "host": "other"}, False),
    ],
)
def test_a_connector_that_reads_what_another_one_writes_is_known(more: dict[str, object], feeds: bool) -> None:
    place = {"host": "db", "database": "shop"}
    assert PLUGIN.feeds({**place, "table": "public.orders"}, {**place, **more}) is feeds
