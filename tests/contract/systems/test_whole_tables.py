"""Tables that are read whole, again and again, in either database; and what may become of them in between."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable

import pytest

from connect_core.errors import ConfigError, Retriable
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import ORIGIN, Position, SourceBatch
from connect_core.systems.mysql.source_probing import probe_source
from connect_core.systems.postgresql.source_probing import probe
from tests import mariadb, postgres_tables
from tests.changed_tables import ChangedCase, ChangedCaseOfMysql

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def system(request: pytest.FixtureRequest) -> ChangedCase:
    if request.param == "mysql":
        return ChangedCaseOfMysql(mariadb.Database(request.getfixturevalue("mariadb")))
    return ChangedCase(postgres_tables.Database(request.getfixturevalue("postgres_url")))


def bodies(values: Iterable[bytes | None]) -> list[str]:
    return [json.loads(value or b"{}")["body"] for value in values]


def of(batches: Iterable[SourceBatch]) -> list[str]:
    return [body for batch in batches for body in bodies(batch.records.column("value").to_pylist())]


def test_each_run_reads_all_rows(system: ChangedCase) -> None:
    system.append([b"one", b"two", b"three"])
    follower = Follower(system.whole())
    assert bodies(follower.run()) == ["one", "two", "three"]
    system.update(2, "two, changed")
    system.database.run("DELETE FROM t WHERE id = 1")
    system.append([b"four"])
    again = Follower(system.whole(), follower.positions)
    assert bodies(again.run()) == ["two, changed", "three", "four"]
    assert bodies(Follower(system.whole(), again.positions).run()) == ["two, changed", "three", "four"]
    assert again.gaps == []


def test_a_run_ends_with_its_pass_and_a_window_begins_the_next_one(system: ChangedCase) -> None:
    system.append([b"one"])
    source = system.whole(every_s=0.05)
    follower = Follower(source)
    assert bodies(follower.run()) == ["one"]
    assert source.available_offsets(follower.positions)[system.partition].later is False  # it is not due yet
    seen = source.available_offsets(follower.positions)
    source.wait(seen, 10)
    there = source.available_offsets(follower.positions)[system.partition]
    assert (there.later, there.incarnation, there.begin, there.end) == (True, 1, 1, 2)


def test_who_asks_twice_before_anything_is_planned_gets_a_pass_each_time(system: ChangedCase) -> None:
    """As progress and plans do."""
    system.append([b"one"])
    source = system.whole(every_s=3600)
    for _ in range(3):
        there = source.available_offsets({system.partition: None})[system.partition]
        assert (there.begin, there.end, there.later) == (1, 2, False)


def test_a_pass_that_was_killed_is_finished_first(system: ChangedCase) -> None:
    system.append([b"%d" % number for number in range(1, 8)])
    [there] = system.whole().available_offsets({system.partition: None}).values()
    middle = Position(there.incarnation, 4, there.evidence)
    system.update(2, "2, changed")
    follower = Follower(system.whole(), {system.partition: middle})
    assert bodies(follower.run()) == ["4", "5", "6", "7", "1", "2, changed", "3", "4", "5", "6", "7"]


def test_a_range_that_is_repeated_finds_each_row_at_its_number(system: ChangedCase) -> None:
    system.append([b"one", b"two", b"three"])
    source = system.whole()
    planned = range_of(system.partition, source.available_offsets({system.partition: None})[system.partition])
    assert of(source.read(planned, limit())) == ["one", "two", "three"]
    system.database.run("DELETE FROM t WHERE id = 2")
    system.update(3, "three, changed")
    [batch] = system.whole().read(planned, limit())
    assert batch.records.column("offset").to_pylist() == [1, 3]
    assert (batch.holes, of([batch])) == (((2, 3),), ["one", "three, changed"])


def test_each_pass_has_an_incarnation_and_an_origin_of_its_own(system: ChangedCase) -> None:
    """So a target, or a ledger from a backup, takes no version of a row for another one."""
    system.append([b"one"])
    first = Follower(system.whole())
    first.run()
    begun = first.positions[system.partition]
    second = Follower(system.whole(), first.positions)
    second.run()
    ended = second.positions[system.partition]
    assert begun is not None
    assert ended is not None
    assert (begun.incarnation, ended.incarnation) == (0, 1)
    assert begun.evidence[ORIGIN] != ended.evidence[ORIGIN]


def test_an_empty_table_has_nothing(system: ChangedCase) -> None:
    follower = Follower(system.whole())
    assert follower.run() == []
    system.append([b"one"])
    assert bodies(Follower(system.whole(), follower.positions).run()) == ["one"]
    system.database.run("DELETE FROM t")
    assert Follower(system.whole(), follower.positions).run() == []


def test_another_table_in_its_place_loses_the_rest_of_a_pass_alone(system: ChangedCase) -> None:
    """Of MySQL nothing tells them apart: there the rest of the pass is that of the new table."""
    system.append([b"one", b"two"])
    source = system.whole()
    there = source.available_offsets({system.partition: None})[system.partition]
    planned = range_of(system.partition, there)
    done = Position(there.incarnation, there.end, there.evidence)
    system.make()
    system.append([b"new"])
    assert bodies(Follower(system.whole(), {system.partition: done}).run()) == ["new"]
    if isinstance(system, ChangedCaseOfMysql):
        return
    with pytest.raises(Retriable, match="after this range was planned"):
        list(source.read(planned, limit()))
    middle = Follower(system.whole(), {system.partition: Position(there.incarnation, 2, there.evidence)})
    [gap] = middle.tell()
    assert (gap.loses, gap.begin, gap.end, gap.reason) == (True, 2, None, "recreated")
    assert bodies(Follower(system.whole(), middle.positions).run()) == ["new"]


def test_a_pass_is_never_over_the_whole_table_by_the_other_modes(system: ChangedCase) -> None:
    """A document that gets `bulk` later reads all rows; nothing is taken for read."""
    system.append([b"one", b"two"])
    follower = Follower(system.source())
    assert follower.run() == [b"one", b"two"]
    whole = Follower(system.whole(), follower.positions)
    assert bodies(whole.run()) == ["one", "two"]
    assert whole.gaps == []


def test_a_document_that_loses_bulk_tells_it_and_begins_with_the_oldest_row(system: ChangedCase) -> None:
    system.append([b"one", b"two"])
    follower = Follower(system.whole())
    follower.run()
    numbered = Follower(system.whole(bulk=False), follower.positions)
    assert bodies(numbered.run()) == ["one", "two"]
    assert [gap.loses for gap in numbered.gaps] == [True]


def test_it_needs_what_tells_rows_apart(system: ChangedCase) -> None:
    system.make("body varchar(20)")
    with pytest.raises(ConfigError, match="has no primary key"):
        system.whole().available_offsets({system.partition: None})
    with pytest.raises(ValueError, match="leave one of them out"):
        system.whole(timestamp="at")


def probed(system: ChangedCase) -> dict[str, bool]:
    timed = ("timestamp", "delay_s")
    options = {name: one for name, one in system.options.items() if name not in timed}
    found = (probe_source if isinstance(system, ChangedCaseOfMysql) else probe)({**options, "bulk": True})
    return {one.what: one.ok for one in found}


def test_a_server_that_takes_no_writes_is_read(system: ChangedCase) -> None:
    """By a user who may only read: nothing depends on who else writes. A standby of PostgreSQL is another test."""
    system.append([b"one"])
    user, is_mysql = f"r{uuid.uuid4().hex[:8]}", isinstance(system, ChangedCaseOfMysql)
    named = f"{user}@'127.0.0.1'" if is_mysql else user
    system.database.run(
        f"CREATE USER {named}" if is_mysql else f"CREATE ROLE {user} LOGIN", f"GRANT SELECT ON t TO {named}"
    )
    system.options = {**system.options, "user": user}
    if is_mysql:
        system.database.run("SET GLOBAL read_only = 1")
    try:
        assert bodies(Follower(system.whole()).run()) == ["one"]
        assert all(probed(system).values())
    finally:
        if is_mysql:
            system.database.run("SET GLOBAL read_only = 0", f"DROP USER {named}")
        else:
            system.database.run(f"REVOKE ALL ON t FROM {user}", f"DROP ROLE {user}")


def test_a_probe_says_so(system: ChangedCase) -> None:
    said = probed(system)
    assert said["each run reads all of them again"]
    assert all(said.values())
    assert not any("transactions" in what for what in said)
