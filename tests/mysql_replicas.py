"""A server and its replica, which may take over: of MariaDB, or of MySQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connect_core.systems.mysql.binlog.gtid_states import GtidState, parsed_state
from tests.mariadb import Database, MariaDB, running
from tests.mysql import MySQL

_ANEW = {MariaDB: "RESET MASTER", MySQL: "RESET BINARY LOGS AND GTIDS"}
_STOPS = {MariaDB: "STOP SLAVE", MySQL: "STOP REPLICA"}
_FOLLOWS = {
    MariaDB: (
        "RESET SLAVE ALL",
        "SET GLOBAL gtid_slave_pos = ''",
        "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {port}, master_user = 'tester',"
        " master_use_gtid = slave_pos, master_connect_retry = 1",
        "START SLAVE",
    ),
    MySQL: (
        "RESET REPLICA ALL",
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'tester',"
        " SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1",
        "START REPLICA",
    ),
}
_STATE = {MariaDB: "SELECT @@GLOBAL.gtid_binlog_pos", MySQL: "SELECT @@GLOBAL.gtid_executed"}
_LATEST_S = 20.0


@contextmanager
def two_servers(kind: type[MariaDB], folder: Path) -> Iterator[tuple[MariaDB, MariaDB]]:
    """The second one may follow the first one, and logs what it gets."""
    more = {"log_slave_updates": "ON"} if kind is MariaDB else {}
    first, second = (kind(folder / number, settings={"server-id": number, **more}) for number in ("11", "12"))
    with contextmanager(running)(first), contextmanager(running)(second):
        yield first, second


def sql(server: MariaDB, *statements: str) -> list[tuple[object, ...]]:
    return Database.of(server, "mysql").run(*statements)


def follow_anew(replica: MariaDB, server: MariaDB) -> None:
    """With logs that are begun again, in which no place of one is a place of the other."""
    stop_following(replica)
    for one in (server, replica):
        sql(one, _ANEW[type(one)])
    sql(replica, "FLUSH BINARY LOGS")
    _follow(replica, server)


def follow_from_begin(replica: MariaDB, server: MariaDB, without: str) -> None:
    """A server that has purged nothing, also what the replica wrote there before, which it does not take
    for its own with another id."""
    sql(replica, f"DROP DATABASE {without}", _ANEW[type(replica)], "SET GLOBAL server_id = 99")
    _follow(replica, server)


def _follow(replica: MariaDB, server: MariaDB) -> None:
    sql(replica, *(one.format(port=server.port) for one in _FOLLOWS[type(replica)]))


def follow_no_more(replica: MariaDB) -> None:
    stop_following(replica)
    sql(replica, _FOLLOWS[type(replica)][0], f"SET GLOBAL server_id = {replica.settings['server-id']}")


def stop_following(replica: MariaDB) -> None:
    sql(replica, _STOPS[type(replica)])


def go_on_following(replica: MariaDB) -> None:
    sql(replica, _FOLLOWS[type(replica)][-1])


def caught_up(replica: MariaDB, server: MariaDB, *, at_least: bool = False) -> None:
    """Returns when the replica has what the server has now; `at_least` while others write."""
    wanted, until = _state(server), time.monotonic() + _LATEST_S
    while not (wanted.is_within(_state(replica)) if at_least else _state(replica) == wanted):
        assert time.monotonic() < until, (_state(replica), wanted)
        time.sleep(0.05)


def applied_all(replica: MariaDB) -> None:
    """Returns when a replica whose server is gone has written what it got."""
    before = None
    while (now := _state(replica)) != before:
        before = now
        time.sleep(1.0)


def _state(server: MariaDB) -> GtidState:
    [(text,)] = sql(server, _STATE[type(server)])
    state = parsed_state(str(text), is_mariadb=type(server) is MariaDB)
    assert state is not None
    return state
