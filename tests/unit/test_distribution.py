"""Files that need the same costly server run in one process, those that need RocketMQ in three."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distribution import TOGETHER, preferred

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
    assert TOGETHER[file] == "tests/faults/test_crashes.py"


def test_whoever_kills_engines_shares_one() -> None:
    users = [file for file in (ROOT / "tests/faults").glob("test_*.py") if "own_engine: Engine" in file.read_text()]
    assert {TOGETHER[str(file.relative_to(ROOT))] for file in users} == {"tests/faults/test_crashes.py"}


WITH, WITHOUT = "tests/system/replication/test_topics.py", "tests/unit/test_distribution.py"
BY_A_FIXTURE_OF_THEIRS = ["tests/contract/systems/test_sink_contract.py", "tests/faults/test_windows.py"]


@pytest.mark.parametrize("file", [WITH, *BY_A_FIXTURE_OF_THEIRS])
def test_a_process_that_has_rocketmq_gets_what_needs_it_first(file: str) -> None:
    assert preferred([WITHOUT, file], with_rocketmq=True) == file
    assert preferred([file, WITHOUT], with_rocketmq=False) == WITHOUT


def test_a_process_with_nothing_of_its_kind_left_takes_the_other_kind() -> None:
    assert preferred([WITHOUT], with_rocketmq=True) is None
    assert preferred([WITH], with_rocketmq=False) is None
