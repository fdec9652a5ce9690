"""What comes out of the log of MariaDB of rows that fulfil a condition, and of what was asked for and is cancelled."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Any

import pymysql
import pytest

from connect_core.errors import ConfigError
from connect_core.sdk.plugin import SnapshotWish
from connect_core.systems.mysql.binlog import chunks
from connect_core.systems.mysql.binlog.snapshot_requests import cancel_snapshot, request_snapshot
from connect_core.systems.mysql.binlog.source import progress_of
from tests.contract.systems.test_mysql_snapshots import ALL, Snapshot, before_the_end
from tests.mariadb import Database, MariaDB

pytestmark = pytest.mark.server

BAD = [("r", 7, "x"), ("r", 8, "y")]


@pytest.fixture
def read(mariadb: MariaDB) -> Snapshot:
    """The rows that were there have come."""
    database = Database(mariadb)
    database.run("CREATE TABLE bad (id int PRIMARY KEY, body varchar(20))", "INSERT INTO bad VALUES (7, 'x'), (8, 'y')")
    made = Snapshot(database, tables=["bad", "rows_"])
    assert everything(made) == [*BAD, *ALL]
    return made


def everything(of: Snapshot) -> list[Any]:
    """What a run brings."""
    told = of.come()
    while of.look(of.at).partial:
        told += of.come()
    return told + of.come()


def ask(of: Snapshot, where: str | None = None, table: str = "rows_") -> None:
    request_snapshot(of.options, SnapshotWish([table], where))


def cancel(of: Snapshot, *tables: str) -> list[str]:
    return cancel_snapshot(of.options, progress_of(of.at.evidence), tables)


def due(of: Snapshot) -> list[str]:
    return [one.place[1] for one in progress_of(of.at.evidence).tables]


def beside(of: Snapshot) -> str:
    failure = of.look(of.at).beside
    return str(failure.as_error()) if failure else ""


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("body <> 'b'", [1, 3]),
        ("body = 'c' OR id = 1", [1, 3]),
        ("body LIKE '%b%' AND '%s' = \"%s\"", [2]),
        ("rows_.body = 'c' AND `body` <> 'it''s'", [3]),
        ("false", []),
        ("body IS NULL", []),
        ("1 / (id - 3) IS NULL", [3]),
        ("true", [1, 2, 3]),
    ],
)
def test_rows_that_fulfil_a_condition(read: Snapshot, where: str, ids: list[int]) -> None:
    ask(read, where)
    assert [number for op, number, _ in everything(read) if op == "r"] == ids
    assert (due(read), read.look(read.at).partial, beside(read)) == ([], False, "")


def test_a_chunk_is_of_so_many_rows_whether_they_come_or_not(read: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a statement takes no longer where few rows of a large table fulfil the condition."""
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    read.database.run("INSERT INTO rows_ SELECT seq, 'n' FROM seq_4_to_10")
    assert len(everything(read)) == 7
    ask(read, "id = 10")
    read.come()
    told, looks = [], 0
    while due(read):
        told += read.come()
        looks += 1
        left = chunks.rows_left(read.options, progress_of(read.at.evidence))
        assert [(one.table, one.where) for one in left] in ([(f"{read.database.name}.rows_", "id = 10")], [])
    assert (told, looks) == ([("r", 10, "n")], 5)


def test_a_row_that_fulfils_it_changes_before_its_chunk_or_behind_it(
    read: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wants to change it waits for the chunk; a row that does not fulfil it waits for nobody."""

    def others() -> None:
        with closing(read.database.connected()) as session, session.cursor() as writing:
            writing.execute("SET innodb_lock_wait_timeout = 1")
            with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
                writing.execute("UPDATE rows_ SET body = 'new' WHERE id = 1")
            writing.execute("UPDATE rows_ SET body = 'a' WHERE id = 2")

    ask(read, "body = 'a'")
    read.come()
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    with before_the_end(monkeypatch, others):
        assert read.come() == [("u", 2, "a"), ("r", 1, "a")]
    assert everything(read) == []


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("1=1) OR (1=1", "closes a parenthesis"),
        ("true) UNION SELECT id, body FROM bad WHERE (true", "closes a parenthesis"),
        ("true; DROP TABLE rows_", "';'"),
        ("true -- ", "'--'"),
        ("true # ", "'#'"),
        ("true /*! OR 1 */", "'/*'"),
        ("id IN (SELECT id FROM bad)", "a subquery"),
        ("nothing = 1", "The server does not take the condition: Unknown column 'nothing'"),
        ("id >", "error in your SQL syntax"),
        ("id = 1, true", "Operand should contain 1 column"),
        ("count(*) > 1", "Invalid use of group function"),
        ("bad.id = 1", "Unknown column 'bad.id'"),
        ("nowhere(id)", "does not exist"),
        ("id = 1 INTO @a", "error in your SQL syntax"),
    ],
)
def test_what_is_no_condition_is_refused_and_not_kept(read: Snapshot, where: str, said: str) -> None:
    kept = read.database.run("SELECT count(*) FROM waybill_snapshots")
    with pytest.raises(ConfigError, match="ondition") as refused:
        ask(read, where)
    assert said in refused.value.what
    assert refused.value.where.endswith(f", table {read.database.name}.rows_")
    assert read.database.run("SELECT count(*) FROM waybill_snapshots") == kept
    assert (everything(read), due(read)) == ([], [])


def test_a_condition_that_fails_on_the_way_holds_up_no_other(read: Snapshot) -> None:
    read.database.run("ALTER TABLE rows_ ADD other int")
    ask(read, "other IS NULL AND body <> 'secret'")
    ask(read, "id > 0", table="bad")
    read.database.run("ALTER TABLE rows_ DROP other", "INSERT INTO bad VALUES (9, 'z')")
    assert everything(read) == [("c", 9, "z"), *BAD, ("r", 9, "z")]
    said = beside(read)
    name = f"{read.database.name}.rows_"
    assert f"rows of table {name} that fulfil the condition of a snapshot: error 1054" in said
    assert "secret" not in said, "a condition may have values"
    assert f"waybill snapshot NAME --table {name} --cancel" in said
    assert due(read) == ["rows_"]
    read.database.run("ALTER TABLE rows_ ADD other int")
    assert [one[:3] for one in everything(read)] == ALL
    assert (due(read), beside(read)) == ([], "")


def test_a_comparison_that_the_server_warns_of(read: Snapshot) -> None:
    """It would compare the text as a number, and take rows that nobody means."""
    ask(read, "body = 0")
    assert everything(read) == []
    assert "or the condition compares values of different types" in beside(read)
    cancel(read)
    assert (everything(read), due(read), beside(read)) == ([], [], "")


def test_a_condition_that_takes_long_is_ended(read: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CONDITION_S", 1)
    ask(read, "sleep(3) = 0")
    ask(read, "id = 1", table="bad")
    read.database.run("INSERT INTO bad VALUES (1, 'z')")
    assert everything(read) == [("c", 1, "z"), ("r", 1, "z")]
    assert re.search("error (1969|3024)", beside(read))


def test_what_fails_is_cancelled(read: Snapshot) -> None:
    """Another snapshot of the table that is asked for beside comes, and the run that hears of it does not fail."""
    read.database.run("ALTER TABLE rows_ ADD other int")
    ask(read, "body = 'c'")
    ask(read, "other IS NULL")
    read.database.run("ALTER TABLE rows_ DROP other")
    assert [one for one in everything(read) if one[0] == "r"] == [("r", 3, "c")]
    assert "error 1054" in beside(read)
    assert cancel(read, "rows_") == [f"{read.database.name}.rows_"]
    ask(read, "body = 'a'")
    for _ in range(2):
        seen = read.look(read.at)
        assert (seen.beside, seen.partial) == (None, True), "what is behind the cancellation is not known yet"
    assert everything(read) == [("r", 1, "a")]
    assert (due(read), beside(read)) == ([], "")
    for _ in range(2):
        cancel(read)
    assert (everything(read), due(read)) == ([], [])
    assert read.database.run("SELECT * FROM waybill_snapshots") == []


@pytest.mark.parametrize("where", [None, "id > 0"])
def test_what_is_cancelled_in_its_midst_comes_no_more(
    read: Snapshot, where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that are written by a driver that has not heard of it are not taken behind it."""
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    ask(read, where)
    read.come()
    assert read.come() == [("r", 1, "a"), ("r", 2, "b")]
    cancel(read, "rows_")
    read.write()
    read.database.run("INSERT INTO rows_ VALUES (61, 'later')")
    assert everything(read) == [("c", 61, "later")]
    assert due(read) == []


def test_what_a_connector_begins_with_is_not_cancelled(mariadb: MariaDB) -> None:
    snapshot = Snapshot(Database(mariadb))
    for tables in (("rows_",), ()):
        with pytest.raises(ConfigError, match="are still to come for which nobody has asked"):
            cancel(snapshot, *tables)
    ask(snapshot, "id = 2")
    assert everything(snapshot) == [*ALL, ("r", 2, "b")]


def test_what_a_connector_begins_with_comes_where_more_was_asked_for(
    mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MOST_ROWS", 1)
    snapshot = Snapshot(Database(mariadb))
    ask(snapshot, "id = 2")
    assert snapshot.come() == [("r", 1, "a"), ("r", 2, "b")]
    assert due(snapshot) == ["rows_", "rows_"]
    cancel(snapshot)
    assert everything(snapshot) == [("r", 3, "c")]


def test_a_table_that_is_gone_is_cancelled(read: Snapshot) -> None:
    ask(read, "id = 2")
    read.come()
    read.database.run("DROP TABLE rows_")
    cancel(read, "rows_")
    assert (everything(read), due(read)) == ([], [])


def test_two_that_fail_on_their_way_bring_nothing_in_turn(read: Snapshot) -> None:
    read.database.run("ALTER TABLE rows_ ADD price varchar(9)", "UPDATE rows_ SET price = IF(id = 3, 'none', id)")
    everything(read)
    ask(read, "price > 0")
    ask(read, "price > 0 AND true")
    ask(read, table="bad")
    told = [one[:2] for one in everything(read)]
    assert told == [("r", 1), ("r", 2), ("r", 1), ("r", 2), ("r", 7), ("r", 8)]
    for _ in range(3):
        assert (everything(read), due(read), bool(beside(read))) == ([], ["rows_", "rows_"], True)
