"""What excuses a history, and what does not: each case once stood in a history that was judged wrongly."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connect_core.errors import OffsetGone
from connect_core.rocketmq import Queue
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Gap
from tests.simulator.broker import Stored
from tests.simulator.checker import Given, Told
from tests.simulator.invariants import Story, repeats_looked_at
from tests.simulator.logfiles import Line, LogFile, Program
from tests.simulator.people import Person
from tests.simulator.source import Log

PATH = Path("/logs/a.log")
QUEUE = Queue("copy", "broker-a", 0)


def told(*moves: tuple[tuple[int, int], tuple[int, int]]) -> Told:
    """What a ledger says in which a person has made these moves, each from a file and a place to another one."""
    ledger = sqlite3.connect(":memory:")
    ledger.executescript(
        "CREATE TABLE offset_changes (id INTEGER PRIMARY KEY, partition_key, before, after);"
        "CREATE TABLE ranges (partition_key, state, begin_offset, planned_end, duplicates, possible_duplicates);"
        "CREATE TABLE gaps (partition_key, begin_offset, end_offset, reason);"
        "CREATE TABLE dead_letters (partition_key, record_offset);"
        "INSERT INTO ranges VALUES ('a', 'abandoned', 53, 164, 0, 0)"
    )
    for before, after in moves:
        places = [json.dumps({"incarnation": number, "offset": offset}) for number, offset in (before, after)]
        ledger.execute("INSERT INTO offset_changes (partition_key, before, after) VALUES ('a', ?, ?)", places)
    return Told.by(ledger)


def test_who_goes_on_in_a_later_file_leaves_the_rest_of_the_former_one() -> None:
    """Only what is lost there, and nothing of it may come again."""
    gone_on, moved_back = told(((0, 53), (1, 0))), told(((0, 53), (0, 0)))
    behind = Given("a", 74, b"d:10", lost="replaced")
    assert gone_on.accounts_for(behind)
    assert not moved_back.accounts_for(behind)
    assert not gone_on.accounts_for(Given("a", 74, b"d:10"))
    assert not gone_on.accounts_for(Given("a", 48, b"d:6", lost="replaced"))
    before = Given("a", 48, b"d:6")
    assert (gone_on.may_repeat(before), moved_back.may_repeat(before)) == (0, 1)


@pytest.mark.parametrize(
    ("hasty", "where", "what", "excused"),
    [
        (True, PATH, "replaced: from 10 to an unknown end", True),
        (False, PATH, "replaced: from 10 to an unknown end", False),
        (True, PATH, "replaced: from 5 to an unknown end", False),
        (True, PATH, "deleted: from 10 to an unknown end", False),
        (True, "/logs/b.log", "replaced: from 10 to an unknown end", False),
    ],
)
def test_a_file_thrown_away_before_it_was_seen_to_be_left_may_have_grown(
    hasty: bool, where: Path | str, what: str, excused: bool
) -> None:
    """Of that file alone, from its end on, and where another one took its place."""
    file = LogFile(None, 1, [Line(b"a:1:", 0, 0.0), Line(b"a:2:", 5, 0.0)], hasty=hasty)
    folder = SimpleNamespace(programs=[Program("a", PATH, files=[file])])
    person = Person(cast(Any, SimpleNamespace(folder=folder)), 0)
    error = OffsetGone(f"Records are gone ({what})", where=f"connector orders, task 0, partition {where}")
    assert person._thrown_away_in_haste(error) is excused


@pytest.mark.parametrize(
    ("closed", "younger", "asked_about", "excused"),
    [
        (True, True, "a-1.log", True),
        (False, True, "a-1.log", False),
        (True, False, "a-1.log", False),
        (True, True, "a.log.1", False),
    ],
)
def test_a_log_of_another_program_may_have_come_after_one_that_is_gone(
    closed: bool, younger: bool, asked_about: str, excused: bool
) -> None:
    """One that has such a name and was made since; and only where all that the log's own program wrote is gone."""
    log = Program("a", PATH, closed=closed)
    other = Program("other-a", PATH.with_name("a-1.log"), foreign=True)
    folder = SimpleNamespace(programs=[log, other], is_younger=lambda *both: both == (other, log) and younger)
    person = Person(cast(Any, SimpleNamespace(folder=folder)), 0)
    what = f"Records are gone ({PATH.with_name(asked_about)} may be the file that came next, or not)"
    assert person._may_have_come_next(OffsetGone(what, where=f"partition {PATH}")) is excused


def test_a_record_that_comes_after_it_was_told_as_a_gap_is_a_repeat_that_was_looked_at() -> None:
    """Of [2, 4) one record was there when the receipt told both as a gap, and one has come since."""
    gap = Gap(0, 2, 4, "expired")
    receipt = SimpleNamespace(begin=0, end=4, deduplicated=3, reconstructed=True, gaps=(gap,))
    came = {0: 10, 1: 20, 3: 30, 2: 40}
    message = SimpleNamespace(queue_offset=0)
    stored = [(QUEUE, Stored(cast(Any, message), at, "p", offset)) for offset, at in came.items()]
    step = SimpleNamespace(kind="settled", before=None, after=SimpleNamespace(offset=4))
    story = Story(
        partition=Partition("p"),
        log=Log(),
        receipts=[cast(Any, SimpleNamespace(receipt=receipt))],
        steps=[cast(Any, step)],
        gaps={(2, 4)},
        dead=set(),
        stored=stored,
        floors={QUEUE: 1},
        abandoned=[],
    )
    assert story.late == {2}
    assert repeats_looked_at(story) == 1
