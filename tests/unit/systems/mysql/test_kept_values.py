"""What a column keeps as it is, and what MySQL would change without a word."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.mysql.literals import check_values


def check_json(*texts: str | None) -> None:
    column: Any = SimpleNamespace(name="c", required=False, word="json")
    check_values(pa.field("c", pa.string()), pa.array(texts, pa.string()), column)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1.50, "b": [0.1, -0.0, 1e-7, 18446744073709551615, -9223372036854775808]}',
        '{"a": {"a": null}}',
        "no JSON: the server says so",
        "[" * 100_000,
        None,
    ],
)
def test_json_that_is_kept(text: str | None) -> None:
    check_json("1", text)


@pytest.mark.parametrize(
    "text",
    [
        '{"amount": 12345678901234567.89}',
        "123456789012345678901",
        "-9223372036854775809",
        "[0.1000000000000000055]",
        "1e400",
        '{"a": 1, "a": 2}',
    ],
)
def test_json_that_would_be_changed_is_refused(text: str) -> None:
    with pytest.raises(RowsRefused, match="would keep another number, or one of two equal names"):
        check_json("1", text)
