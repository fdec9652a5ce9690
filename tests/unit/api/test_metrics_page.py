"""docs/metrics.md lists the metrics that there are, as the code describes them."""

from __future__ import annotations

from pathlib import Path

from connect_core.service.metrics import CATALOGUE, DETAILED, OTHERS, full_name

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


def rows() -> list[str]:
    return [f"| `{full_name(one)}` | {one.kind} | {', '.join(one.labels)} | {one.help} |" for one in CATALOGUE.values()]


def test_the_page_lists_every_metric_as_it_is() -> None:
    listed = [line for line in PAGE.read_text().splitlines() if line.startswith(("| `waybill_", "| `rocketmq_"))]
    assert listed == rows(), "the rows of the page are to be:\n" + "\n".join(rows())


def test_the_page_says_the_limit() -> None:
    assert f"The oldest {DETAILED:,} connectors" in PAGE.read_text()
    assert f'connector="{OTHERS}"' in PAGE.read_text()
