"""A row that one of several tables refuses is told with the table."""

from __future__ import annotations

import pytest

from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.tables.named_targets import naming


@pytest.mark.parametrize(
    ("table", "said", "told"),
    [
        ("", "A trigger leaves the row out", "A trigger leaves the row out"),
        ("public.a", "A trigger leaves the row out", "A trigger leaves the row out (table public.a)"),
        ("public.a", "Constraint few of table a forbids the row", "Constraint few of table a forbids the row"),
    ],
)
def test_a_refusal_names_its_table_once(table: str, said: str, told: str) -> None:
    with pytest.raises(RowsRefused) as refused, naming(table):
        raise RowsRefused("Kind", said)
    assert refused.value.what == told
