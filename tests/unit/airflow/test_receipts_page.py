"""The page of receipts: each receipt, what became of each attempt, and no markup that came from outside."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from connect_core.sdk.values import Json
from connect_core.work import COUNTS

MOMENT = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)


Rendered = Callable[[str, str, Json], str]


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    """Imported here: Airflow's web server brings libraries that warn of each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from connect_core.airflow.receipts_page import rendered
    return rendered


def receipt(partition: str, begin: int) -> Json:
    counts = dict.fromkeys(COUNTS, 7) | {"read": None}
    place = {"partition": partition, "stream": "live", "begin": begin, "end": begin + 1_000}
    rest = {
        "gaps": 2,
        "set_aside": [],
        "found_before": 3 if partition == "b" else 0,
        "bytes_written": 4_321,
        "seconds": 0.25,
        "settled_at": MOMENT,
        "digest_sent": "0123456789abcdefXX",
    }
    return {**place, **counts, **rest}


def test_each_receipt_is_a_row_in_order(rendered: Rendered) -> None:
    total = dict.fromkeys(COUNTS, 14) | {"ranges": 2}
    told = {"runs": [], "receipts": [receipt("b", 0), receipt("a", 1_000)], "total": total}
    page = rendered("replicate.orders", "manual__1", told)
    assert page.index("<td>a</td>") < page.index("<td>b</td>")
    assert "14 delivered" in page
    assert "<td>unknown</td>" in page  # nobody knows how many were read
    assert "<td>0123456789abcdef</td>" in page
    assert "12:30:00" in page
    assert page.count("were in the target before") == 1
    assert "<p>b from 0: 3 records were in the target" in page


def test_what_stopped_an_attempt_is_told_and_escaped(rendered: Rendered) -> None:
    failed = {"id": "r1", "task": 0, "engine": "spark", "state": "failed", "started_at": MOMENT}
    told = {
        "runs": [failed | {"failure": {"what": "<b>away</b>"}}, failed | {"id": "r2", "failure": None}],
        "receipts": [],
        "total": dict.fromkeys(COUNTS, 0) | {"ranges": 0},
    }
    page = rendered("replicate.<i>", "manual__1", told)
    assert "Nothing was settled in this run." in page
    assert "&lt;b&gt;away&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "<i>" not in page
