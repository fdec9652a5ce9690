"""Progress in words: share, speed, and how long it will still take."""

from __future__ import annotations

import pytest

from connect_core.replication.driver.context import Progress
from connect_core.service.run_report import TaskSpeed, added, listener, percent, span


def at(done: int, records: int, planned: int = 1000) -> Progress:
    return Progress(task=0, done=done, planned=planned, records=records)


def test_the_first_word_has_no_pace_yet() -> None:
    assert TaskSpeed(at(100, 10), since=5.0).words(at(100, 10), 5.0) == "10%, 10 records"


def test_the_pace_is_that_since_the_first_word() -> None:
    """What an earlier attempt has done counts as done, and says nothing of how fast this one is."""
    speed = TaskSpeed(at(600, 10), since=5.0)
    assert speed.words(at(700, 1510), 15.0) == "70%, 1,510 records, 150/s, about 30 s left"
    assert speed.words(at(1000, 4000), 15.0) == "100%, 4,000 records, 399/s"


def test_without_headway_there_is_no_estimate() -> None:
    speed = TaskSpeed(at(600, 10), since=5.0)
    assert speed.left_s(at(600, 10), 50.0) is None
    assert speed.left_s(at(700, 10), 5.0) is None
    assert speed.words(at(600, 10), 50.0) == "60%, 10 records"


@pytest.mark.parametrize(("done", "planned", "share"), [(0, 0, 100), (999, 1000, 99), (1000, 1000, 100), (0, 3, 0)])
def test_a_hundred_percent_is_everything(done: int, planned: int, share: int) -> None:
    assert percent(at(done, 0, planned)) == share


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (99, "99 s"), (120, "2 min"), (5940, "99 min"), (11100, "3 h 5 min")]
)
def test_an_estimate_is_as_exact_as_it_can_be(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_a_listener_writes_the_first_and_the_last_word_of_each_task() -> None:
    lines: list[str] = []
    told = listener(lines.append)
    for task in (0, 1):
        for done in (10, 20, 30, 1000):
            told.progress(Progress(task, done, 1000, done))
    assert [line.split(",")[0] for line in lines] == ["task 0: 1%", "task 0: 100%", "task 1: 1%", "task 1: 100%"]


def test_several_runs_are_one() -> None:
    run = {"connector": "c", "seconds": 1.5, "ranges": 2, "read": 10, "tasks": [{"run": "r1"}]}
    again = {**run, "tasks": [{"run": "r2"}]}
    assert added([run]) == run
    assert added([run, again]) == {
        "connector": "c",
        "seconds": 3.0,
        "ranges": 4,
        "read": 20,
        "tasks": [{"run": "r1"}, {"run": "r2"}],
    }
