"""Transactions that MySQL packs (`binlog_transaction_compression`): each row once, wherever a range ends, also where
there are more rows than bytes of log."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from connect_core.errors import WaybillError
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import Position
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.source import MysqlChangesSource
from connect_core.systems.tables import taken_events
from tests.mariadb import Database, MariaDB

pytestmark = pytest.mark.server

PACKED = "SET SESSION binlog_transaction_compression = ON"


def numbers(first: int, count: int) -> str:
    """A table of them, `n`."""
    last = first + count - 1
    return f"(WITH RECURSIVE s(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n < {last}) SELECT n FROM s) t"


class Stream:
    """Of a database, from where its log ends."""

    def __init__(self, database: Database, *tables: str) -> None:
        self.database, self.partition = database, Partition(database.name)
        self.tables = [*tables]
        self.at: Position | None = None
        self.at = self.look(most=0)

    def look(self, most: int, into: list[tuple[int, bytes]] | None = None) -> Position:
        """One range of so many records at most."""
        usual = {"tables": self.tables, "every_s": 0.02, "snapshot": "never", "schemas": False, "uid": "one"}
        source = MysqlChangesSource(MysqlChangesOptions.model_validate({**self.database.options, **usual}))
        [seen] = source.available_offsets({self.partition: self.at}).values()
        assert seen.failure is None, seen.failure
        if seen.end == seen.begin:
            return Position(0, seen.end, seen.evidence)
        wanted, behind = range_of(self.partition, seen, max_records=most), seen.begin
        for batch in source.read(wanted, limit()):
            offsets = batch.records.column("offset").to_pylist()
            assert offsets == sorted({*offsets})
            assert all(behind <= one < batch.next_offset for one in offsets)
            assert not batch.rejects
            if into is not None:
                into += zip(offsets, batch.records.column("value").to_pylist(), strict=True)
            behind = batch.next_offset
        return Position(0, behind, source.evidence(wanted, behind))

    def rest(self, most: int = 1_000_000) -> list[tuple[int, bytes]]:
        """In ranges of so many records at most, until there is nothing. With their offsets."""
        came, before = list[tuple[int, bytes]](), -1
        while self.at and self.at.offset != before:
            before = self.at.offset
            self.at = self.look(most, came)
        return came


@pytest.fixture
def database(mysql: MariaDB) -> Database:
    database = Database(mysql)
    database.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(99))",
        "CREATE TABLE empty_ones (a int)",
        "CREATE TABLE others (id bigint PRIMARY KEY, note varchar(99))",
    )
    return database


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_events, "MOST_EVENTS", 40)


def write(database: Database) -> None:
    """Transactions with more rows than bytes, of tables that are wanted and of others, and small ones between them."""
    with closing(database.connected()) as connection, connection.cursor() as session:
        session.execute("SET SESSION cte_max_recursion_depth = 1000000")
        session.execute(PACKED)
        connection.begin()
        session.execute("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
        session.execute("SAVEPOINT a")
        session.execute("INSERT INTO orders VALUES (3, 'never')")
        session.execute("ROLLBACK TO a")
        session.execute(f"INSERT INTO empty_ones SELECT NULL FROM {numbers(1, 700)}")
        session.execute(f"INSERT INTO others SELECT n, 'x' FROM {numbers(1, 200)}")
        session.execute("UPDATE orders SET note = 'c'")
        connection.commit()
        session.execute(f"INSERT INTO empty_ones SELECT NULL FROM {numbers(1, 3000)}")
        session.execute("INSERT INTO orders VALUES (4, 'd')")
        session.execute("SET SESSION binlog_transaction_compression = OFF")
        session.execute("INSERT INTO orders VALUES (5, 'e')")
        session.execute(PACKED)
        session.execute(f"INSERT INTO others SELECT n, 'y' FROM {numbers(1000, 1000)}")
        session.execute("DELETE FROM orders WHERE id > 3")


ORDERS = ["c1a", "c2b", "u1c", "u2c", "c4d", "c5e", "d4d", "d5e"]


def orders(values: list[bytes]) -> list[str]:
    """What happened to them, in short."""
    said: list[Any] = [one for one in map(json.loads, values) if one["source"]["table"] == "orders"]
    rows = [(one["op"], one["after"] or one["before"]) for one in said]
    return [f"{op}{row['id']}{row['note']}" for op, row in rows]


@pytest.mark.parametrize("most", [1, 3, 301, 1_000_000])
@pytest.mark.parametrize("tables", [["orders"], ["*"], ["empty_ones", "orders"]])
def test_each_row_comes_once_wherever_a_range_ends(
    database: Database, small_batches: None, tables: list[str], most: int
) -> None:
    most = max(most, 300) if tables != ["orders"] else most
    stream = Stream(database, *tables)
    write(database)
    database.run("FLUSH BINARY LOGS")
    database.run(PACKED, f"INSERT INTO empty_ones SELECT NULL FROM {numbers(1, 50)}")
    came = [value for _, value in stream.rest(most)]
    assert orders(came) == ORDERS
    counted = {name: sum(f'"table":"{name}"'.encode() in one for one in came) for name in ("empty_ones", "others")}
    expected = {"empty_ones": 3750 if tables != ["orders"] else 0, "others": 1200 if tables == ["*"] else 0}
    assert counted == expected


def test_a_place_that_somebody_has_set_is_the_same_whichever_tables_are_read(database: Database) -> None:
    """Nothing says how far ahead it is but its file."""
    stream, other = Stream(database, "*"), Stream(database, "orders")
    write(database)
    every, some = stream.rest(), other.rest()
    assert [offset for offset, _ in some] == [offset for offset, value in every if orders([value])]
    for offset, _ in (every[0], every[500], every[-1], *some):
        other.at = Position(0, offset, {})
        assert other.rest() == [one for one in some if one[0] >= offset]


def test_a_packed_transaction_that_is_damaged_ends_the_reading(database: Database) -> None:
    stream = Stream(database, "*")
    database.run(PACKED, "INSERT INTO orders VALUES (1, 'a')")
    [(file, *_)] = database.run("SHOW BINARY LOG STATUS")
    database.run("FLUSH BINARY LOGS")
    path = database.server.folder / "data" / file
    sound = path.read_bytes()
    path.write_bytes(sound[:-160] + bytes((sound[-160] ^ 1,)) + sound[-159:])
    try:
        with pytest.raises(WaybillError, match=file):
            stream.rest()
    finally:
        path.write_bytes(sound)
    assert len(stream.rest()) == 1
