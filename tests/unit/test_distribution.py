"""Files that need the same costly server run in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distribution import TOGETHER

ROOT = Path(__file__).parents[2]
NAMES_IT = [
    str(file.relative_to(ROOT))
    for file in (ROOT / "tests/system").rglob("test_*.py")
    if "rocketmq_533" in file.read_text()
]
OF_ITS_FOLDER = [str(file.relative_to(ROOT)) for file in (ROOT / "tests/system/rocketmq").glob("test_*.py")]


@pytest.mark.parametrize("file", TOGETHER)
def test_a_file_that_is_named_is_there(file: str) -> None:
    assert (ROOT / file).is_file()


@pytest.mark.parametrize("file", [*NAMES_IT, *OF_ITS_FOLDER])
def test_whoever_needs_the_oldest_broker_shares_it(file: str) -> None:
    assert TOGETHER[file] == "tests/faults/test_clusters.py"
