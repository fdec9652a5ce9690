"""A replica takes over: reading goes on in its log behind what was read of the former server, or the source says why
that cannot be proven."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from connect_core.errors import WaybillError
from connect_core.sdk.values import Position
from connect_core.stack import ports
from connect_core.systems.mysql.binlog import server_log, source
from connect_core.systems.mysql.binlog.dumping import log_from
from connect_core.systems.mysql.binlog.gtid_states import parsed_state
from connect_core.systems.mysql.binlog.log_events import FIRST_EVENT
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.probing import probe
from connect_core.systems.mysql.binlog.server_log import LogFiles
from connect_core.systems.mysql.binlog.taking_over import boundaries_of
from tests import mysql_replicas
from tests.faults.kit.processes import wait_for
from tests.mariadb import Database, MariaDB
from tests.mysql import MySQL
from tests.mysql_streams import Stream, crash_with, newest_file

pytestmark = pytest.mark.server

LONG_S = 20.0


class Pair:
    """Two servers with the same table, of which the stream has read the first one."""

    def __init__(self, first: MariaDB, second: MariaDB) -> None:
        self.first = Database(first)
        self.first.run("CREATE TABLE orders (id int PRIMARY KEY)")
        mysql_replicas.caught_up(second, first)
        self.second = Database.of(second, self.first.name)
        self.stream = Stream(self.first)

    def insert(self, *ids: int) -> None:
        """Each in a transaction of its own."""
        self.first.run(*(f"INSERT INTO orders VALUES ({one})" for one in ids))

    def catch_up(self) -> None:
        mysql_replicas.caught_up(self.second.server, self.first.server)

    def take_over(self) -> list[str]:
        """What the stream says of it, which reads what it can."""
        mysql_replicas.stop_following(self.second.server)
        self.first.server.kill()
        self.stream.database = self.second
        return self.stream.reads()


@pytest.fixture(scope="module", params=[MariaDB, MySQL], ids=["MariaDB", "MySQL"])
def servers(request: pytest.FixtureRequest, worker_folder: Path) -> Iterator[tuple[MariaDB, MariaDB]]:
    with mysql_replicas.two_servers(request.param, worker_folder / f"pair-{request.param.__name__}") as servers:
        yield servers


@pytest.fixture
def pair(servers: tuple[MariaDB, MariaDB]) -> Pair:
    """As if both were new."""
    first, second = servers
    if first.process is None or not first.process.is_alive:
        first.start()
    mysql_replicas.follow_anew(second, first)
    return Pair(first, second)


def test_reading_goes_on_behind_what_was_read(pair: Pair) -> None:
    """In another file, at another place, and also what the replica wrote as a server of its own."""
    pair.insert(1, 2)
    pair.stream.reads()
    pair.insert(3)
    pair.catch_up()
    pair.second.run("FLUSH BINARY LOGS")
    pair.stream.reads()
    pair.insert(4, 5)
    pair.catch_up()
    pair.second.run("FLUSH BINARY LOGS")
    before = pair.stream.at
    [said] = pair.take_over()
    assert "the log of another server is read from" in said
    assert pair.stream.ids == [1, 2, 3, 4, 5]
    assert before is not None
    assert pair.stream.at is not None
    assert pair.stream.at.incarnation == before.incarnation + 1
    pair.second.run("INSERT INTO orders VALUES (6)")
    assert pair.stream.reads() == []
    assert pair.stream.ids == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "statements",
    [
        ("INSERT INTO orders VALUES (2)",),
        ("CREATE TABLE others (id int)",),
        ("XA START 'x'", "INSERT INTO orders VALUES (2)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"),
    ],
    ids=["rows", "DDL", "XA"],
)
def test_a_replica_that_was_late_has_the_same_last_transaction(pair: Pair, statements: tuple[str, ...]) -> None:
    """It notes when the server began it, not when it came there."""
    mysql_replicas.stop_following(pair.second.server)
    with closing(pair.first.connected()) as session, closing(session.cursor()) as one:
        for statement in statements:
            one.execute(statement)
    pair.stream.reads()
    read = [*pair.stream.ids]
    time.sleep(2.1)  # a moment of the log is a second
    mysql_replicas.go_on_following(pair.second.server)
    pair.catch_up()
    assert "no others" in pair.take_over()[0]
    assert pair.stream.ids == read


def test_others_commit_while_the_connector_is_made(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its questions what the server has, and where its log ends."""

    def files(*given: Any) -> LogFiles:
        pair.insert(1, 2)
        return server_log.files_of(*given)

    monkeypatch.setattr(source, "files_of", files)
    pair.insert(100)
    pair.stream = Stream(pair.first)
    monkeypatch.undo()
    pair.insert(3)
    pair.stream.reads()
    pair.insert(4)
    pair.catch_up()
    assert "no others" in pair.take_over()[0]
    assert pair.stream.ids == [3, 4]


def test_all_that_was_read_is_there_and_nothing_else(pair: Pair) -> None:
    pair.insert(1)
    pair.stream.reads()
    pair.catch_up()
    assert "no others" in pair.take_over()[0]
    assert pair.stream.ids == [1]
    pair.second.run("INSERT INTO orders VALUES (2)")
    pair.stream.reads()
    assert pair.stream.ids == [1, 2]


def test_a_replica_that_lacks_what_was_delivered_is_told_of(pair: Pair) -> None:
    pair.insert(1)
    pair.catch_up()
    mysql_replicas.stop_following(pair.second.server)
    pair.insert(2)
    pair.stream.reads()
    [said] = pair.take_over()
    assert "does not have transactions whose changes were delivered" in said
    pair.second.run("INSERT INTO orders VALUES (3)")
    [said] = pair.stream.reads()
    assert "does not have transactions whose changes were delivered" in said


def test_a_transaction_of_the_replica_alone_before_what_was_read_is_told_of(pair: Pair) -> None:
    """The target would never get it."""
    pair.second.run("INSERT INTO orders VALUES (100)")
    pair.insert(1)
    pair.stream.reads()
    wait_for_row(pair.second, 1)
    [said] = pair.take_over()
    assert "were not read before others that were" in said


def test_a_transaction_of_the_replica_alone_behind_what_was_read_comes(pair: Pair) -> None:
    pair.insert(1)
    pair.catch_up()
    pair.stream.reads()
    pair.second.run("INSERT INTO orders VALUES (100)")
    pair.insert(2)
    wait_for_row(pair.second, 2)
    pair.take_over()
    assert pair.stream.ids == [1, 100, 2]


def test_what_the_replica_has_purged_is_told_of(pair: Pair) -> None:
    pair.insert(1)
    pair.stream.reads()
    pair.insert(2)
    pair.catch_up()
    pair.second.run("FLUSH BINARY LOGS")
    [*_, (last, *_)] = pair.second.run("SHOW BINARY LOGS")
    purge = f"PURGE BINARY LOGS TO '{last}'"
    wait_for(lambda: pair.second.run(purge, "SHOW BINARY LOGS")[0][0] == last, "the purge")
    [said] = pair.take_over()
    assert "purged there" in said


def test_a_transaction_that_was_read_in_part_is_told_of(pair: Pair) -> None:
    pair.first.run("INSERT INTO orders VALUES (1), (2), (3)")
    pair.catch_up()
    pair.stream.reads(most=2)
    assert pair.stream.ids == [1, 2]
    [said] = pair.take_over()
    assert "read in part" in said


def test_a_log_that_was_begun_again_is_no_other_server(pair: Pair) -> None:
    pair.insert(1)
    pair.stream.reads()
    begun_anew = "RESET MASTER" if type(pair.first.server) is MariaDB else "RESET BINARY LOGS AND GTIDS"
    time.sleep(1.1)  # files that were begun in one second are told apart by their sizes alone
    pair.first.run("FLUSH BINARY LOGS", begun_anew)
    pair.insert(2)
    [said] = pair.stream.reads()
    assert "begun again" in said


def test_a_server_that_calls_itself_otherwise_goes_on(pair: Pair) -> None:
    """MariaDB is called by its port, MySQL by a file."""
    server, stream = pair.first.server, pair.stream
    pair.first.run("INSERT INTO orders VALUES (1), (2)")
    stream.reads()
    at = stream.at
    pair.insert(3)
    server.kill()
    (server.folder / "data/auto.cnf").unlink(missing_ok=True)
    server.port = ports.free()
    server.start()
    pair.first = stream.database = Database.of(server, pair.first.name)
    pair.insert(4)
    [said] = stream.reads()
    assert "no others" in said
    assert stream.ids == [1, 2, 3, 4]
    assert at is not None
    assert stream.at is not None
    assert stream.at.incarnation == at.incarnation + 1, "what is behind this place may have other places by now"


def test_others_write_to_the_server_that_has_taken_over(pair: Pair) -> None:
    """Its log does not end while that is looked at, and what was read is in the file before."""
    pair.insert(1)
    pair.catch_up()
    pair.stream.reads()
    mysql_replicas.stop_following(pair.second.server)
    pair.first.server.kill()
    pair.second.run("FLUSH BINARY LOGS", "CREATE TABLE others (id int PRIMARY KEY AUTO_INCREMENT)")
    pair.stream.database, stop = pair.second, threading.Event()
    with closing(pair.second.connected()) as session, closing(session.cursor()) as others:
        writes = threading.Thread(target=_write_for, args=(others, stop, LONG_S))
        writes.start()
        pair.stream.look()
        is_busy = writes.is_alive()
        stop.set()
        writes.join()
    assert is_busy, "the look took as long as others wrote"


def _write_for(others: Cursor, stop: threading.Event, most_s: float) -> None:
    end = time.monotonic() + most_s
    while not stop.wait(0.001) and time.monotonic() < end:
        others.execute("INSERT INTO others VALUES ()")


def test_a_server_that_gives_out_numbers_again_is_told_of(pair: Pair, tmp_path: Path) -> None:
    """It was restored from a backup, on another machine; who has kept its id has transactions of the same numbers."""
    server, stream = pair.first.server, pair.stream
    pair.insert(1)
    stream.reads()
    server.kill()
    backup = tmp_path / "backup"
    subprocess.run(("cp", "-a", server.folder / "data", backup), check=True)  # with its owner
    server.start()
    pair.insert(2, 3)
    stream.reads()
    server.kill()
    time.sleep(1.1)  # MariaDB logs whole seconds
    shutil.rmtree(server.folder / "data")
    subprocess.run(("cp", "-a", backup, server.folder / "data"), check=True)
    server.port = ports.free()
    server.start()
    pair.first = stream.database = Database.of(server, pair.first.name)
    pair.insert(102, 103, 104)
    [said] = stream.reads()
    assert ("it has another transaction" if type(server) is MariaDB else "is another file now") in said
    assert stream.ids == [1, 2, 3]


OF_ANOTHER = {
    MariaDB: ("SET gtid_domain_id = 1", "SET server_id = 77"),
    MySQL: ("SET gtid_next = '00000000-0000-0000-0000-000000000077:1'",),
}


def test_numbers_that_are_given_out_again_are_told_of_whoever_wrote_last(pair: Pair, tmp_path: Path) -> None:
    """The last transaction that was read is the same in both histories: it is that of another server."""
    server, stream = pair.first.server, pair.stream

    def of_another() -> None:
        pair.first.run(*OF_ANOTHER[type(server)], "SET timestamp = 1700000000", "INSERT INTO orders VALUES (3)")

    pair.insert(1)
    pair.catch_up()
    stream.reads()
    mysql_replicas.stop_following(pair.second.server)
    server.kill()
    backup = tmp_path / "backup"
    subprocess.run(("cp", "-a", server.folder / "data", backup), check=True)  # with its owner
    server.start()
    pair.insert(2)
    of_another()
    stream.reads()
    server.kill()
    time.sleep(1.1)  # MariaDB logs whole seconds
    shutil.rmtree(server.folder / "data")
    subprocess.run(("cp", "-a", backup, server.folder / "data"), check=True)
    server.start()
    pair.insert(102)
    of_another()
    mysql_replicas.go_on_following(pair.second.server)
    pair.catch_up()
    [said] = pair.take_over()
    assert re.search("cannot be proven: it has another transaction [^ ]+ than the one that was read", said)
    assert stream.ids == [1, 2, 3]


def test_a_log_without_a_transaction_is_a_beginning(pair: Pair) -> None:
    mysql_replicas.follow_anew(pair.second.server, pair.first.server)
    pair.stream = Stream(pair.first)
    pair.insert(1, 2)
    pair.catch_up()
    pair.stream.reads()
    pair.insert(3)
    pair.catch_up()
    [said] = pair.take_over()
    assert "the log of another server is read from" in said
    assert pair.stream.ids == [1, 2, 3]


def test_a_replica_takes_over_before_anything_was_read(pair: Pair) -> None:
    mysql_replicas.follow_anew(pair.second.server, pair.first.server)
    pair.stream = Stream(pair.first)
    pair.insert(1)
    pair.catch_up()
    [said] = pair.take_over()
    assert said.endswith("and no others")
    assert pair.stream.ids == [1]


ENDS_WHAT_IS_KNOWN = {
    MariaDB: (("SET gtid_seq_no = 1",), "has the GTID 0-11-1, a number that was there before or came too late"),
    MySQL: (("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET gtid_next = 'ANONYMOUS'"), "has no GTID"),
}


def test_the_transaction_is_named_since_which_nobody_knows_what_was_read(pair: Pair) -> None:
    """Also when others have followed it."""
    settings, why = ENDS_WHAT_IS_KNOWN[type(pair.first.server)]
    pair.insert(1)
    pair.catch_up()
    mysql_replicas.stop_following(pair.second.server)
    with closing(pair.first.connected()) as session, closing(session.cursor()) as one:
        for statement in (*settings, pair.first.server.worded("SHOW MASTER STATUS")):
            one.execute(statement)
        file, place, *_ = one.fetchone() or ("", 0)
        one.execute("INSERT INTO orders VALUES (2)")
    pair.stream.reads()
    pair.insert(3)
    pair.stream.reads()
    assert pair.stream.ids == [1, 2, 3]
    [said] = pair.take_over()
    assert f"cannot be proven: the transaction at {file}:{place} {why}" in said


def test_a_place_that_is_there_is_no_proof_where_nobody_knows_what_was_read(pair: Pair) -> None:
    """Two servers may have begun their files in one second."""
    pair.insert(1)
    pair.stream.reads()
    at = pair.stream.at
    assert at is not None
    pair.stream.at = Position(at.incarnation, at.offset, {**at.evidence, "server": "another", "gtids": None})
    [said] = pair.stream.reads()
    assert "cannot be proven: the former one did not say what was before the place where reading began" in said


@pytest.fixture
def alike(pair: Pair) -> Pair:
    """Their newest files have one name, and were begun in one second. The second server lacks what was delivered, and
    its file is shorter."""
    mysql_replicas.stop_following(pair.second.server)
    begin_files_at_once(pair)
    pair.insert(*range(1, 40))
    pair.stream.reads()
    pair.second.run("INSERT INTO orders VALUES (101), (102)", "FLUSH BINARY LOGS", "INSERT INTO orders VALUES (103)")
    [said] = pair.take_over()
    assert "does not have transactions whose changes were delivered" in said
    return pair


def test_behind_a_loss_all_comes_that_the_log_of_the_other_server_has(alike: Pair) -> None:
    """Its file is no part of the one that was read."""
    alike.stream.accepts()
    assert alike.stream.reads() == []
    assert alike.stream.ids[-3:] == [101, 102, 103]


def test_behind_a_loss_a_replica_may_take_over_again(alike: Pair) -> None:
    """What was read is known from the begin of a file on."""
    alike.stream.accepts()
    alike.stream.reads()
    former, now = alike.first.server, alike.second.server
    former.start()
    mysql_replicas.follow_from_begin(former, now, alike.first.name)
    try:
        mysql_replicas.caught_up(former, now)
        alike.stream.database = alike.first
        assert "no others" in alike.stream.reads()[0]
        assert alike.stream.ids[-3:] == [101, 102, 103]
    finally:
        mysql_replicas.follow_no_more(former)


def test_a_file_that_has_lost_its_end_is_followed_by_the_next_one(pair: Pair) -> None:
    pair.insert(1)
    pair.stream.reads()
    pair.first.run("FLUSH BINARY LOGS")
    pair.insert(2)
    said_to_be_longer(pair.stream)
    assert pair.stream.ids == [1, 2]


def test_a_log_that_is_begun_again_in_the_second_in_which_it_was_begun_is_read_from_its_begin(pair: Pair) -> None:
    """It looks like a file that has lost its end; but then the server would have begun another one."""
    pair.insert(1)
    pair.stream.reads()
    pair.insert(2)
    said_to_be_longer(pair.stream)
    assert pair.stream.ids == [1, 1, 2]


def test_a_file_that_may_be_of_another_server_is_read_from_its_begin(pair: Pair) -> None:
    """Of MariaDB before 10.6 nobody knows which server it is."""
    pair.insert(1)
    pair.stream.reads()
    pair.insert(2)
    pair.first.run("FLUSH BINARY LOGS")
    pair.insert(3)
    said_to_be_longer(pair.stream, server="")
    assert pair.stream.ids == [1, 1, 2, 3]


def said_to_be_longer(stream: Stream, **more: str) -> None:
    """The file, than it is, in what is known of it; and what is read behind that loss."""
    at = stream.at
    assert at is not None
    offset = at.offset + 100_000
    stream.at = Position(at.incarnation, offset, {**at.evidence, "place": offset, **more})
    [said] = stream.reads()
    assert "is shorter than what was read of it" in said
    stream.accepts()
    stream.reads()


def begin_files_at_once(pair: Pair) -> None:
    """Files with one name and one moment, whatever they had before."""

    def newest(database: Database) -> str:
        return str(database.run("SHOW BINARY LOGS")[-1][0])

    while newest(pair.first) < newest(pair.second):
        pair.first.run("FLUSH BINARY LOGS")
    while newest(pair.second) < newest(pair.first):
        pair.second.run("FLUSH BINARY LOGS")
    begun = [0, 1]
    while begun[0] != begun[1]:
        for one in (pair.first, pair.second):
            one.run("FLUSH BINARY LOGS")
        begun = [
            server_log.begun_at(
                MysqlChangesOptions.model_validate({**one.options, "tables": ["orders"]}), "here", newest(one)
            )
            for one in (pair.first, pair.second)
        ]


@pytest.mark.parametrize("servers", [MariaDB], ids=["MariaDB"], indirect=True)
def test_a_replica_that_has_crashed_is_looked_through(pair: Pair) -> None:
    """Its files are searched for a transaction that it never logged, being made from a copy; one ends within an event,
    as MariaDB leaves it."""
    mysql_replicas.stop_following(pair.second.server)
    pair.first.run("SET server_id = 77", "INSERT INTO orders VALUES (1)")
    pair.second.run("SET sql_log_bin = 0", "INSERT INTO orders VALUES (1)")
    [(copied,)] = pair.first.run("SELECT @@GLOBAL.gtid_binlog_pos")
    pair.second.run(f"SET GLOBAL gtid_slave_pos = '{copied}'", "FLUSH BINARY LOGS")
    pair.second.run("SET gtid_domain_id = 5", "INSERT INTO orders SELECT seq FROM seq_1000_to_9999")
    name, size = newest_file(pair.second)
    crash_with(pair.second.server, name, size - 100)
    pair.second.run("FLUSH BINARY LOGS")
    mysql_replicas.go_on_following(pair.second.server)
    pair.insert(2)
    pair.stream.reads()
    wait_for_row(pair.second, 2)
    [said] = pair.take_over()
    assert "no others" in said
    assert pair.stream.ids == [1, 2]


ONLY_MYSQL = pytest.mark.parametrize("servers", [MySQL], ids=["MySQL"], indirect=True)
"""MariaDB has no tags, and no transaction without a GTID."""
SERVER_SAYS = re.compile("SET @@SESSION.GTID_NEXT= '(.*)'")


@ONLY_MYSQL
def test_a_replica_that_lacks_a_transaction_without_a_gtid_is_told_of(pair: Pair) -> None:
    """No number says that it is missing, and the next file begins as if it had never been there."""
    pair.insert(1)
    pair.catch_up()
    mysql_replicas.stop_following(pair.second.server)
    pair.first.run(*ENDS_WHAT_IS_KNOWN[MySQL][0], "INSERT INTO orders VALUES (2)")
    pair.first.run("SET GLOBAL gtid_mode = ON_PERMISSIVE", "FLUSH BINARY LOGS")
    pair.stream.reads()
    assert pair.stream.ids == [1, 2]
    [said] = pair.take_over()
    assert "the last transaction that was read has no GTID" in said


@ONLY_MYSQL
def test_the_probe_says_whether_a_replica_may_take_over(pair: Pair) -> None:
    def said() -> str:
        options = {**pair.first.options, "tables": ["orders"], "snapshot": "never", "uid": "one"}
        return "; ".join(one.what for one in probe(options))

    with_tag(pair.first, "batch", 1)
    assert "a replica may take over: transactions have GTIDs" in said()
    pair.first.run("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    assert "without a loss: gtid_mode is ON_PERMISSIVE" in said()
    pair.first.run("SET GLOBAL gtid_mode = ON", "RESET BINARY LOGS AND GTIDS")
    assert "a replica may take over: transactions have GTIDs" in said()


@ONLY_MYSQL
def test_transactions_that_the_server_holds_back_are_no_damage(pair: Pair) -> None:
    pair.first.run(*ENDS_WHAT_IS_KNOWN[MySQL][0], "INSERT INTO orders VALUES (1)")
    pair.first.run("SET GLOBAL gtid_mode = ON")
    with pytest.raises(WaybillError) as told:
        pair.stream.reads()
    assert "SET GLOBAL gtid_mode = ON_PERMISSIVE" in told.value.next_step
    assert "damaged" not in str(told.value) + told.value.next_step
    pair.first.run("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    pair.stream.reads()
    pair.first.run("SET GLOBAL gtid_mode = ON")
    assert pair.stream.ids == [1]


def with_tag(database: Database, tag: str, *ids: int) -> None:
    database.run(f"SET gtid_next = 'AUTOMATIC:{tag}'", *(f"INSERT INTO orders VALUES ({one})" for one in ids))


@ONLY_MYSQL
def test_reading_goes_on_behind_a_transaction_with_a_tag(pair: Pair) -> None:
    pair.insert(1)
    with_tag(pair.first, "batch", 2, 3)
    pair.stream.reads()
    with_tag(pair.first, "batch", 4)
    pair.insert(5)
    pair.catch_up()
    [said] = pair.take_over()
    assert ":batch:2)" in said
    assert pair.stream.ids == [1, 2, 3, 4, 5]
    with_tag(pair.second, "batch", 6)
    assert pair.stream.reads() == []
    assert pair.stream.ids == [1, 2, 3, 4, 5, 6]


@ONLY_MYSQL
def test_tags_were_there_before_the_connector(pair: Pair) -> None:
    with_tag(pair.first, "batch", 1)
    with_tag(pair.first, "other", 2)
    pair.stream = Stream(pair.first)
    with_tag(pair.first, "batch", 3)
    pair.stream.reads()
    pair.insert(4)
    pair.catch_up()
    assert "no others" in pair.take_over()[0]
    assert pair.stream.ids == [3, 4]


@ONLY_MYSQL
def test_others_commit_with_a_tag_while_the_connector_is_made(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def files(*given: Any) -> LogFiles:
        with_tag(pair.first, "batch", 1, 2)
        return server_log.files_of(*given)

    with_tag(pair.first, "batch", 100)
    monkeypatch.setattr(source, "files_of", files)
    pair.stream = Stream(pair.first)
    monkeypatch.undo()
    pair.insert(3)
    with_tag(pair.first, "batch", 4)
    pair.stream.reads()
    pair.insert(5)
    pair.catch_up()
    assert "no others" in pair.take_over()[0]
    assert pair.stream.ids == [3, 4, 5]


@ONLY_MYSQL
def test_a_tag_of_the_replica_alone_before_what_was_read_is_told_of(pair: Pair) -> None:
    """Its number is one that was read, without a tag."""
    with_tag(pair.second, "own", 100)
    pair.insert(1)
    pair.stream.reads()
    wait_for_row(pair.second, 1)
    [said] = pair.take_over()
    assert "were not read before others that were" in said
    assert ":own:1" in said


@ONLY_MYSQL
def test_a_tag_of_the_replica_alone_behind_what_was_read_comes(pair: Pair) -> None:
    with_tag(pair.first, "batch", 1)
    pair.catch_up()
    pair.stream.reads()
    with_tag(pair.second, "own", 100)
    with_tag(pair.first, "batch", 2)
    wait_for_row(pair.second, 2)
    assert "no others" in pair.take_over()[0]
    assert pair.stream.ids == [1, 100, 2]


@ONLY_MYSQL
def test_a_replica_that_lacks_a_transaction_with_a_tag_is_told_of(pair: Pair) -> None:
    pair.insert(1)
    pair.catch_up()
    mysql_replicas.stop_following(pair.second.server)
    with_tag(pair.first, "batch", 2)
    pair.stream.reads()
    [said] = pair.take_over()
    assert "does not have transactions whose changes were delivered" in said
    assert ":batch:1" in said


@ONLY_MYSQL
def test_a_file_begins_with_tags(pair: Pair) -> None:
    """On both servers, and what was read is where the file of the replica begins."""
    with_tag(pair.first, "batch", 1)
    pair.first.run("FLUSH BINARY LOGS")
    with_tag(pair.first, "other", 2)
    pair.stream.reads()
    pair.catch_up()
    pair.second.run("FLUSH BINARY LOGS")
    pair.insert(3)
    pair.catch_up()
    assert "no others" in pair.take_over()[0]
    assert pair.stream.ids == [1, 2, 3]


@ONLY_MYSQL
def test_what_was_read_is_what_the_server_says_of_its_log(pair: Pair) -> None:
    """Each transaction, and all before the begin of a file."""
    longest, alien = "a" + 30 * "_" + "9", str(uuid.uuid4())
    numbers = (1, 70_000, 1 << 32, (1 << 63) - 2)
    with closing(pair.first.connected()) as session, closing(session.cursor()) as one:
        for gtid in (
            "AUTOMATIC:b",
            f"AUTOMATIC:{longest}",
            "AUTOMATIC",
            *(f"{alien}:z9:{number}" for number in numbers),
        ):
            one.execute(f"SET gtid_next = '{gtid}'")
            one.execute("CREATE TABLE IF NOT EXISTS others (id int)")
        one.execute("SET gtid_next = 'AUTOMATIC:b'")
        one.execute("FLUSH BINARY LOGS")
    with_tag(pair.first, longest, 1)
    read, said = [], []
    for name, *_ in pair.first.run("SHOW BINARY LOGS"):
        options = MysqlChangesOptions.model_validate({**pair.first.options, "tables": ["orders"]})
        with log_from(options, "here", str(name), FIRST_EVENT, options.reader_id + 1, "") as log:
            places = [*boundaries_of(log, str(name))]
        read += [one.gtid for one in places if one.gtid]
        events = pair.first.run(f"SHOW BINLOG EVENTS IN '{name}'")
        said += [found[1] for event in events if (found := SERVER_SAYS.fullmatch(str(event[-1])))]
    assert read == said
    assert {one.count(":") for one in read} == {1, 2}
    [(executed,)] = pair.first.run("SELECT @@GLOBAL.gtid_executed")
    assert places[-1].state == parsed_state(str(executed), is_mariadb=False)
    [before] = [event[-1] for event in events if event[2] == "Previous_gtids"]
    assert places[0].state == parsed_state(str(before), is_mariadb=False)


def wait_for_row(database: Database, number: int) -> None:
    wait_for(lambda: bool(database.run(f"SELECT 1 FROM orders WHERE id = {number}")), f"row {number}")
