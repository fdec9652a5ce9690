"""Tables whose changed rows are read by the time of their last change, in the suite of sources; and what may become of
their rows, their transactions and their clocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from connect_core.errors import ConfigError, Retriable
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.testing.sources import VALUES, SourceContract
from connect_core.sdk.values import ORIGIN, Position, Range
from connect_core.systems.mysql.source_probing import probe_source
from connect_core.systems.postgresql.source_probing import probe
from tests import mariadb, postgres_tables
from tests.changed_tables import ChangedCase, ChangedCaseOfMysql, let_seconds_pass

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def system(request: pytest.FixtureRequest) -> ChangedCase:
    if request.param == "mysql":
        return ChangedCaseOfMysql(mariadb.Database(request.getfixturevalue("mariadb")))
    return ChangedCase(postgres_tables.Database(request.getfixturevalue("postgres_url")))


class TestChangedRows(SourceContract):
    steps = 15

    @pytest.fixture
    def live(self) -> Range:
        pytest.skip("no range of a table is live: each has an end below which nothing comes")


@pytest.fixture
def writing(system: ChangedCase) -> Iterator[Any]:
    """Another program's session."""
    with closing(system.database.connected()) as connection, connection.cursor() as cursor:
        yield cursor


# ------------------------------------------------------------------------------------------------ what becomes of a row


def test_a_changed_row_comes_again_and_the_others_do_not(system: ChangedCase) -> None:
    system.append([b"one", b"two", b"three"])
    follower = Follower(system.source())
    assert follower.run() == [b"one", b"two", b"three"]
    let_seconds_pass()
    system.update(2, "two, changed")
    system.append([b"four"])
    again = Follower(system.source(), follower.positions)
    assert again.run() == [b"two, changed", b"four"]
    assert Follower(system.source(), again.positions).run() == []
    assert again.gaps == []


def test_of_several_versions_within_a_window_the_last_one_comes(system: ChangedCase) -> None:
    system.append([b"one"])
    follower = Follower(system.source())
    follower.run()
    for number in range(5):
        system.update(1, f"version {number}")
    assert Follower(system.source(), follower.positions).run() == [b"version 4"]


def test_a_row_that_changes_while_its_range_is_repeated_keeps_the_numbers_of_the_others(system: ChangedCase) -> None:
    """It leaves a hole, and comes in the next pass: nothing slips onto a number that was delivered."""
    system.append([b"one", b"two", b"three"])
    planned = range_of(system.partition, system.bounds())
    [batch] = system.source().read(planned, limit())
    assert batch.records.column("offset").to_pylist() == [1, 2, 3]
    let_seconds_pass()
    system.update(1, "one, changed")
    [batch] = system.source().read(planned, limit())
    assert batch.records.column("offset").to_pylist() == [2, 3]
    assert (batch.holes, batch.next_offset) == (((1, 2),), 4)
    follower = Follower(system.source(), {system.partition: Position(0, 4, planned.evidence)})
    assert follower.run() == [b"one, changed"]


def test_each_pass_has_an_incarnation_and_an_origin_of_its_own(system: ChangedCase) -> None:
    """So a target, or a ledger from a backup, takes no version of a row for another one."""
    system.append(VALUES)
    follower = Follower(system.source(), max_records=23)
    follower.positions[system.partition] = None
    follower.step()
    first = follower.positions[system.partition]
    assert first is not None
    assert system.bounds(first).evidence == first.evidence
    follower.run()
    system.update(7, "seven")
    second = Follower(system.source(), follower.positions)
    assert second.run() == [b"seven"]
    at = second.positions[system.partition]
    assert at is not None
    assert (first.incarnation, at.incarnation) == (0, 1)
    assert first.evidence[ORIGIN] != at.evidence[ORIGIN]


def test_what_comes_while_a_run_goes_on_is_for_the_next_one(system: ChangedCase) -> None:
    """Else a run would not end beside busy writers."""
    system.append([b"one"])
    follower = Follower(system.source())
    assert follower.run() == [b"one"]
    system.append([b"two"])
    let_seconds_pass()
    seen = follower.source.available_offsets(follower.positions)[system.partition]
    assert (seen.later, seen.end > seen.begin) == (True, True)
    seen = system.source().available_offsets(follower.positions)[system.partition]
    assert (seen.later, seen.end > seen.begin) == (False, True)


def test_times_of_whole_seconds_are_enough(system: ChangedCase) -> None:
    """Programs cut times, and columns keep less of them: rows of the second that is going on may still come."""
    coarse = system.columns.replace("timestamptz", "timestamp(0) with time zone").replace("(6)", "(0)")
    system.make(coarse)
    follower = Follower(system.source())
    arrived = follower.run()
    for number in range(12):
        system.append([b"%d" % number])
        let_seconds_pass(0.23)
        arrived += follower.run()
    let_seconds_pass(1.0)  # PostgreSQL rounds up: the last time may be one that is still to come
    arrived += Follower(system.source(), follower.positions).run()
    assert arrived == [b"%d" % number for number in range(12)]


def test_a_row_with_a_time_to_come_is_read_when_that_has_come(system: ChangedCase) -> None:
    system.append([b"one"])
    follower = Follower(system.source())
    assert follower.run() == [b"one"]
    later = f"{system.now} + INTERVAL '2' SECOND"
    system.database.run(f"INSERT INTO t VALUES (100, 'early', {later})")
    assert Follower(system.source(), follower.positions).run() == []
    let_seconds_pass(2.2)
    assert Follower(system.source(), follower.positions).run() == [b"early"]


# --------------------------------------------------------------------------------------------- transactions and clocks


def test_a_change_of_an_open_transaction_is_not_passed_over(system: ChangedCase, writing: Any) -> None:
    system.append([b"early"])
    follower = Follower(system.source())
    assert follower.run() == [b"early"]
    let_seconds_pass()
    writing.execute("BEGIN")
    system.insert(writing, 50, "late")
    let_seconds_pass()
    system.append([b"newest"])
    assert Follower(system.source(), follower.positions).run() == []
    seen = system.bounds(follower.positions[system.partition])
    assert (seen.partial, seen.begin) == (True, seen.end)
    writing.execute("COMMIT")
    assert Follower(system.source(), follower.positions).run() == [b"newest", b"late"]


def test_a_short_transaction_is_waited_for(system: ChangedCase, writing: Any) -> None:
    writing.execute("BEGIN")
    system.insert(writing, 50, "late")
    system.append([b"newest"])
    threading.Timer(0.5, writing.execute, ["COMMIT"]).start()
    assert Follower(system.source(open_transactions_s=20)).run() == [b"newest", b"late"]


def test_the_time_of_a_transaction_without_a_lock_yet_is_not_passed_over(postgres_url: str) -> None:
    """now() is the begin of the transaction: it may have been there for long before it writes the table."""
    system = ChangedCase(postgres_tables.Database(postgres_url))
    with closing(system.database.connected()) as connection, connection.cursor() as writing:
        writing.execute("SELECT now()")
        let_seconds_pass()
        system.append([b"newest"])
        let_seconds_pass()
        follower = Follower(system.source())
        assert follower.run() == []
        system.insert(writing, 50, "late")
        connection.commit()
    assert Follower(system.source(), follower.positions).run() == [b"newest", b"late"]


def test_a_prepared_transaction_is_open(postgres_url: str) -> None:
    system = ChangedCase(postgres_tables.Database(postgres_url))
    name = f"one {system.database.options['database']}"
    with closing(system.database.connected(autocommit=True)) as connection, connection.cursor() as writing:
        writing.execute("BEGIN")
        system.insert(writing, 50, "late")
        let_seconds_pass()
        source = system.source()
        follower = Follower(source)
        system.append([b"newest"])
        assert follower.run() == []
        writing.execute(f"PREPARE TRANSACTION '{name}'")
        assert follower.run() == []
        assert Follower(system.source()).run() == []
        writing.execute(f"COMMIT PREPARED '{name}'")
    assert Follower(system.source()).run() == [b"newest", b"late"]


def test_what_is_before_a_long_transaction_is_read_while_it_runs(system: ChangedCase, writing: Any) -> None:
    system.append([b"before"])
    let_seconds_pass()
    source = system.source()
    source.available_offsets({system.partition: None})  # sees that nobody writes
    writing.execute("BEGIN")
    system.insert(writing, 50, "late")
    assert Follower(source).run() == [b"before"]


def test_a_clock_that_goes_back_is_told_and_all_rows_are_read_again(
    system: ChangedCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.append([b"one", b"two"])
    follower = Follower(system.source())
    follower.run()
    source = system.source()
    monkeypatch.setattr(type(source), "now", _behind(type(source).now))
    again = Follower(source, follower.positions)
    [gap] = again.tell()
    assert (gap.loses, gap.warns, gap.begin, gap.end) == (False, True, 3, 3)
    assert "the clock of the database went back" in gap.reason
    monkeypatch.undo()
    assert Follower(system.source(), again.positions).run() == [b"one", b"two"]


def _behind(now: Any) -> Any:
    return lambda self, asking, table: now(self, asking, table) - 100


# -------------------------------------------------------------------------------------------------- what cannot be read


def test_a_table_made_again_is_another_one(postgres_url: str) -> None:
    system = ChangedCase(postgres_tables.Database(postgres_url))
    system.append(VALUES)
    follower = Follower(system.source())
    assert follower.run() == VALUES
    planned = range_of(system.partition, system.bounds(Position(0, 1, follower.positions[system.partition].evidence)))  # type: ignore[union-attr]
    system.make()
    system.append([b"new"])
    with pytest.raises(Retriable, match="made again"):
        list(system.source().read(replace(planned, begin=1), limit()))
    again = Follower(system.source(), follower.positions)
    assert again.run() == [b"new"]
    [gap] = again.gaps
    assert (gap.begin, gap.end, gap.reason) == (201, None, "recreated")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("id bigint PRIMARY KEY, body text", "The table has no column at"),
        ("id bigint PRIMARY KEY, body text, at date NOT NULL", "Column at is date, which says no time of a change"),
        ("id bigint PRIMARY KEY, body text, at timestamp NULL", "Column at takes NULL, and such rows would never"),
        ("id char(9), body text, at timestamp NOT NULL", "has no primary key"),
    ],
)
def test_a_table_of_which_rows_could_be_lost_is_refused(system: ChangedCase, columns: str, words: str) -> None:
    system.make(columns)
    with pytest.raises(ConfigError, match=words):
        system.bounds()


def test_times_without_a_zone_are_in_utc(system: ChangedCase) -> None:
    kinds = {"postgresql": "timestamp", "mysql": "datetime(6)"}
    is_mysql = isinstance(system, ChangedCaseOfMysql)
    kind, now = (kinds["mysql"], "UTC_TIMESTAMP(6)") if is_mysql else (kinds["postgresql"], "now() AT TIME ZONE 'UTC'")
    system.now = now
    system.make(f"id bigint PRIMARY KEY, body text, at {kind} NOT NULL")
    system.append([b"one"])
    follower = Follower(system.source())
    assert follower.run() == [b"one"]
    system.append([b"two"])
    assert Follower(system.source(), follower.positions).run() == [b"two"]


def test_a_negative_number_is_refused(system: ChangedCase) -> None:
    system.database.run(f"INSERT INTO t VALUES (-1, 'a', {system.now})")
    with pytest.raises(ConfigError, match="Numbers of rows must be from 0 to"):
        system.bounds()


def test_what_the_probe_says(system: ChangedCase) -> None:
    system.append([b"one"])
    system.database.run(f"INSERT INTO t VALUES (100, 'early', {system.now} + INTERVAL '2' DAY)")
    said = list(_probed(system))
    assert all(one.ok for one in said)
    words = [one.what for one in said]
    assert "rows that were changed are found by at" in words
    assert "no index begins with column at: each look reads the whole table" in words
    assert "rows with a time that is still to come, and which are read then: 1" in words
    system.make(system.columns.replace("timestamptz", "timestamp").replace("timestamp(6)", "datetime"))
    system.database.run("CREATE INDEX by_time ON t (at)")
    words = [one.what for one in _probed(system)]
    assert not [one for one in words if "no index" in one or "still to come" in one]
    assert [one for one in words if "says no time zone, and has to be written in UTC; sessions begin with" in one]


def _probed(system: ChangedCase) -> Iterator[ProbeResult]:
    return (probe_source if isinstance(system, ChangedCaseOfMysql) else probe)(system.options)
