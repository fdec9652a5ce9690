"""What comes out of a slot of rows that fulfil a condition, and of what was asked for and is cancelled."""

from __future__ import annotations

from contextlib import closing

import pytest

from connect_core.errors import ConfigError
from connect_core.sdk.plugin import SnapshotWish
from connect_core.systems.postgresql.changes import chunk_rows, chunks
from connect_core.systems.postgresql.changes.snapshot_requests import cancel_snapshot, request_snapshot
from connect_core.systems.postgresql.changes.source import progress_of
from tests.contract.systems.test_postgresql_snapshots import ALL, NO_KEY, Snapshot, database, snapshot

__all__ = ["database", "snapshot"]
pytestmark = pytest.mark.server

BAD = [("r", 7, "x"), ("r", 8, "y")]
BREAKS = "1 / (id - 3) <> 5"
"""At the second chunk."""


@pytest.fixture
def read(snapshot: Snapshot) -> Snapshot:
    """The rows that were there have come."""
    assert snapshot.all() == [*BAD, *ALL]
    return snapshot


def ask(of: Snapshot, where: str | None = None, table: str = "rows") -> None:
    request_snapshot(of.options, SnapshotWish([table], where))


def cancel(of: Snapshot, *tables: str) -> list[str]:
    return cancel_snapshot(of.options, progress_of(of.at.evidence), tables)


def write(of: Snapshot) -> None:
    """As a driver does that has planned nothing yet."""
    with closing(of.database.connected(autocommit=True)) as session, session.cursor() as asking:
        chunks.write_chunks(asking, of.options, progress_of(of.at.evidence), (), "here")


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("body <> 'b'", [1, 3]),
        ("body = 'c' OR id = 1", [1, 3]),
        ("body LIKE '%b%' AND '%s' = '%s'", [2]),
        ("rows.body = 'c' AND ctid IS NOT NULL", [3]),
        ("false", []),
        ("body IS NULL", []),
        ("true", [1, 2, 3]),
    ],
)
def test_rows_that_fulfil_a_condition(read: Snapshot, where: str, ids: list[int]) -> None:
    ask(read, where)
    assert [number for op, number, _ in read.all() if op == "r"] == ids
    assert (read.due, read.look().partial) == ([], False)


def test_a_chunk_is_of_so_many_rows_whether_they_come_or_not(read: Snapshot) -> None:
    """So a statement takes no longer where few rows of a large table fulfil the condition."""
    read.database.run("INSERT INTO rows SELECT n, 'n' FROM generate_series(4, 40) n")
    assert len(read.all()) == 37
    ask(read, "id = 40")
    read.come()
    assert chunks.CHUNKS * 2 < 40
    told, looks = [], 0
    while read.due:
        told += read.come()
        looks += 1
        left = chunks.rows_left(read.options, progress_of(read.at.evidence))
        assert [(one.table, one.where) for one in left] in ([("public.rows", "id = 40")], [])
    assert (told, looks) == ([("r", 40, "n")], 3)


def test_a_row_that_changes_before_its_chunk_comes_as_that_change(
    read: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = chunks._wait_for_others

    def changed(asking: object) -> None:
        read.database.run("UPDATE rows SET body = 'new' WHERE id IN (1, 2)")
        wait(asking)  # type: ignore[arg-type]

    ask(read, "body IN ('a', 'b', 'c', 'new')")
    read.come()
    with monkeypatch.context() as patching:
        patching.setattr(chunks, "_wait_for_others", changed)
        write(read)
    told = read.all()
    assert told[:2] == [("u", 1, "new"), ("u", 2, "new")]
    assert ("r", 3, "c") in told
    assert ("r", 1, "a") not in told


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("1=1) OR (1=1", "closes a parenthesis"),
        ("true) UNION SELECT id, body FROM bad WHERE (true", "closes a parenthesis"),
        ("true; DROP TABLE rows", "';'"),
        ("true --", "'--'"),
        ("id IN (SELECT id FROM bad)", "a subquery"),
        ("nothing = 1", 'The server does not take the condition: column "nothing" does not exist'),
        ("id", "argument of WHERE must be type boolean"),
        ("id = 'a'", "invalid input syntax for type integer"),
        ("id >", "syntax error"),
        ("id = 1, true", "argument of WHERE must be type boolean"),
        ("count(*) > 1", "aggregate functions are not allowed in WHERE"),
        ("bad.id = 1", "missing FROM-clause entry"),
    ],
)
def test_what_is_no_condition_is_refused_and_not_kept(read: Snapshot, where: str, said: str) -> None:
    with pytest.raises(ConfigError, match="ondition") as refused:
        ask(read, where)
    assert said in refused.value.what
    assert refused.value.where.endswith(", table public.rows")
    assert (read.all(), read.due) == ([], [])


def test_a_condition_that_fails_on_the_way_holds_up_no_other(read: Snapshot) -> None:
    ask(read, BREAKS)
    ask(read, table="bad")
    read.database.run("INSERT INTO bad VALUES (9, 'z')")
    assert read.all() == [("c", 9, "z"), ("r", 1, "a"), ("r", 2, "b"), *BAD, ("r", 9, "z")]
    assert read.seen.beside is not None
    said = str(read.seen.beside.as_error())
    assert "rows of table public.rows that fulfil the condition of a snapshot: DivisionByZero (22012)" in said
    assert "1 / (id" not in said, "a condition may have values"
    assert "waybill snapshot NAME --table public.rows --cancel" in said
    assert read.due == ["rows"]
    read.database.run("DELETE FROM rows WHERE id = 3")
    assert [one[:2] for one in read.all()] == [("d", 3)], "the others have come"
    assert (read.due, read.seen.beside) == ([], None)


def test_what_fails_is_cancelled(read: Snapshot) -> None:
    """Another snapshot of the table that is asked for beside comes, and the run that hears of it does not fail."""
    ask(read, "body = 'c'")
    read.database.run("ALTER TABLE rows ADD other int")
    ask(read, "other IS NULL")
    read.database.run("ALTER TABLE rows DROP other")
    assert [one for one in read.all() if one[0] == "r"] == [("r", 3, "c")]
    assert read.seen.beside is not None
    assert "UndefinedColumn" in str(read.seen.beside.as_error())
    assert cancel(read, "rows") == ["public.rows"]
    ask(read, "body = 'a'")
    assert read.look().beside is None, "what is behind the cancellation is not known yet"
    assert read.all() == [("r", 1, "a")]
    assert (read.due, read.look().beside) == ([], None)
    for _ in range(2):
        cancel(read)
    assert (read.all(), read.due) == ([], [])


def test_what_is_said_behind_a_watermark_without_a_chunk_is_heard(read: Snapshot) -> None:
    """No place is kept there, and nothing comes that closes it while the rows fail that are due."""
    ask(read, BREAKS)
    for _ in range(4):
        read.come()
    cancel(read, "rows")
    ask(read, "body = 'a'")
    assert [one for _ in range(4) for one in read.come()] == [("r", 1, "a")]
    assert (read.due, read.look().partial) == ([], False)


@pytest.mark.parametrize("where", [None, "id > 0"])
def test_what_is_cancelled_in_its_midst_comes_no_more(read: Snapshot, where: str | None) -> None:
    """Chunks that were written before, or are by a driver that has not heard of it, are not taken behind it."""
    read.database.run("INSERT INTO rows SELECT n, 'n' FROM generate_series(4, 60) n")
    assert len(read.all()) == 57
    ask(read, where)
    read.come()
    assert len(read.come()) == chunks.CHUNKS * 2
    cancel(read, "rows")
    write(read)
    read.database.run("INSERT INTO rows VALUES (61, 'later')")
    assert read.all() == [("c", 61, "later")]
    assert read.due == []


def test_what_a_connector_begins_with_is_not_cancelled(snapshot: Snapshot) -> None:
    for tables in (("rows",), ("bad", "rows"), ()):
        with pytest.raises(ConfigError, match="are still to come for which nobody has asked"):
            cancel(snapshot, *tables)
    snapshot.database.run(*NO_KEY)
    ask(snapshot, "id = 2")
    assert snapshot.come(max_records=1) == [], "the request"
    assert snapshot.due == ["bad", "rows", "rows"]
    assert cancel(snapshot, "rows") == ["public.rows"]
    assert snapshot.all() == ALL
    assert snapshot.due == ["bad"]


def test_a_table_that_is_gone_is_cancelled(read: Snapshot) -> None:
    ask(read, "id = 2")
    read.come()
    read.database.run("DROP TABLE rows")
    cancel(read, "rows")
    assert (read.all(), read.due) == ([], [])


def test_a_condition_that_takes_long_is_ended(read: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_rows, "CONDITION_S", 0.5)
    ask(read, "pg_sleep(2) IS NOT NULL")
    ask(read, "id = 8", table="bad")
    assert read.all() == [("r", 8, "y")]
    assert read.seen.beside is not None
    assert "QueryCanceled (57014)" in str(read.seen.beside.as_error())


def test_a_condition_writes_nothing(read: Snapshot) -> None:
    read.database.run(
        "CREATE FUNCTION writes() RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO bad VALUES (99, 'written'); RETURN true; END $$"
    )
    ask(read, "writes()")
    assert read.all() == []
    assert read.seen.beside is not None
    assert "ReadOnlySqlTransaction" in str(read.seen.beside.as_error())
    assert read.database.run("SELECT count(*) FROM bad WHERE id = 99") == [(0,)]


def test_two_that_fail_on_their_way_bring_nothing_in_turn(read: Snapshot) -> None:
    """What waits is that of a condition, not all of its table."""
    ask(read, BREAKS)
    ask(read, f"{BREAKS} AND true")
    ask(read)
    assert read.all() == [("r", 1, "a"), ("r", 2, "b"), ("r", 1, "a"), ("r", 2, "b"), *ALL]
    for _ in range(3):
        assert (read.all(), read.due, bool(read.seen.beside)) == ([], ["rows", "rows"], True)
    cancel(read)
    assert (read.all(), read.due) == ([], [])
