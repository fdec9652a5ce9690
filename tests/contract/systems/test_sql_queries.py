"""Rows of a query of SQLite: which come, what the database says of the text, and what of a result is refused."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import ConfigError, DataError, Unreachable
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import Bounds, Position
from connect_core.systems.sql.source import rows_of
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.sql.source_peeking import newest_rows
from connect_core.systems.sql.source_probing import probe_source
from connect_core.systems.tables.reading import TableRows
from tests.changed_tables import DELAY_S, let_seconds_pass
from tests.contract.systems.test_sql_source import FileCase
from tests.elsewhere import URL
from tests.query_cases import JOIN, QUERY, prices

TIMED = "SELECT i.id, o.customer, i.price, max(i.at, o.at) AS at FROM items i JOIN orders o ON o.id = i.of_order"
_KEY, _AT = "id INTEGER PRIMARY KEY AUTOINCREMENT", "at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"


class Shop(FileCase):
    def make(self, columns: str = "") -> None:
        self.run(
            f"CREATE TABLE orders ({_KEY}, customer TEXT, {_AT})",
            f"CREATE TABLE items ({_KEY}, of_order BIGINT, price INT, {_AT})",
        )

    def given(self, query: str = JOIN, **more: Any) -> SqlSourceOptions:
        usual = {"url": self.options["url"], "query": query, "incrementing": "id", "every_s": 0.02}
        return SqlSourceOptions.model_validate({**usual, "lock_timeout_s": 0.5, **more})

    def source(self, query: str = JOIN, **more: Any) -> TableRows[Any]:
        return rows_of(self.given(query, **more))

    def timed(self, query: str = TIMED, **more: Any) -> TableRows[Any]:
        return self.source(query, timestamp="at", delay_s=DELAY_S, **more)

    def bounds(self, at: Position | None = None, query: str = JOIN, **more: Any) -> Bounds:
        return self.source(query, **more).available_offsets({QUERY: at})[QUERY]

    def probed(self, query: str = JOIN, **more: Any) -> dict[str, bool]:
        options = self.given(query, **more).model_dump(exclude_unset=True)
        return {one.what: one.ok for one in probe_source(options)}

    def sell(self, customer: str, *given: int) -> None:
        """An order and its items, in one transaction."""
        with closing(self.connected()) as database:
            database.execute("BEGIN IMMEDIATE")
            order = database.execute("INSERT INTO orders (customer) VALUES (?)", (customer,)).lastrowid
            rows = [(order, price) for price in given]
            database.executemany("INSERT INTO items (of_order, price) VALUES (?, ?)", rows)
            database.execute("COMMIT")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_each_row_of_a_join_comes_once(shop: Shop) -> None:
    shop.sell("Zoë", 5, 6)
    follower = Follower(shop.source())
    assert follower.run() == [
        '{"id":1,"customer":"Zoë","price":5}'.encode(),
        '{"id":2,"customer":"Zoë","price":6}'.encode(),
    ]
    shop.sell("Ann", 7)
    again = Follower(shop.source(), follower.positions)
    assert prices(again.run()) == [7]
    assert Follower(shop.source(), again.positions).run() == []


@pytest.mark.parametrize(
    "query",
    [
        f"{JOIN} WHERE i.price > 4",
        f"{JOIN} -- a comment",
        f"WITH sold AS ({JOIN}) SELECT * FROM sold",
        "SELECT of_order AS id, SUM(price) AS price FROM items GROUP BY of_order",
        "SELECT id, price FROM items UNION ALL SELECT 100 + id, price FROM items WHERE 1 = 0",
        'SELECT CAST(id AS INTEGER) AS id, "price" FROM items ORDER BY price LIMIT 10',
    ],
)
def test_shapes_of_a_query(shop: Shop, query: str) -> None:
    shop.sell("Zoë", 5)
    assert prices(Follower(shop.source(query)).run()) == [5]
    assert prices(Follower(shop.source(query, bulk=True)).run()) == [5]


def test_a_row_comes_again_when_one_of_its_tables_was_changed(shop: Shop) -> None:
    shop.sell("Zoë", 5, 6)
    shop.sell("Ann", 7)
    follower = Follower(shop.timed())
    assert prices(follower.run()) == [5, 6, 7]
    shop.run("UPDATE orders SET customer = 'Zoe', at = CURRENT_TIMESTAMP WHERE id = 1")
    assert prices(Follower(shop.timed(), follower.positions).run()) == [5, 6]


def test_a_change_of_an_open_transaction_is_not_passed_over(shop: Shop) -> None:
    shop.sell("Zoë", 5, 6)
    follower = Follower(shop.timed())
    follower.run()
    with closing(shop.connected()) as writing:
        writing.execute("BEGIN")
        writing.execute("UPDATE orders SET customer = 'Zoe', at = CURRENT_TIMESTAMP")
        let_seconds_pass()
        assert Follower(shop.timed(), follower.positions).run() == []
        writing.execute("COMMIT")
    assert prices(Follower(shop.timed(), follower.positions).run()) == [5, 6]


def test_no_row_is_passed_over_beside_writers(shop: Shop) -> None:
    shop.run("PRAGMA journal_mode = WAL")

    def write(writer: int) -> None:
        for number in range(25):
            shop.sell(f"{writer}/{number}", number, number)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    found, positions = list[bytes | None](), dict[Any, Any]()
    while any(thread.is_alive() for thread in threads):
        follower = Follower(shop.source(), positions)
        found += follower.run()
        positions = follower.positions
        time.sleep(0.01)
    found += Follower(shop.source(), positions).run()
    assert [json.loads(one or b"{}")["id"] for one in found] == list(range(1, 151))


def test_another_query_is_a_gap_until_somebody_says_so(shop: Shop) -> None:
    shop.sell("Zoë", 5)
    follower = Follower(shop.source())
    follower.run()
    again = Follower(shop.source(f"{JOIN} WHERE price > 0"), follower.positions)
    assert prices(again.run()) == [5]
    assert [gap.reason for gap in again.gaps] == [
        "the query was changed, or which of its columns tell rows apart",
    ]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELEKT",
        "SELECT id FROM items) AS q, (SELECT 1",
        "SELECT id FROM items; DELETE FROM items",
        "DELETE FROM items RETURNING id",
        "PRAGMA user_version = 5",
        "SELECT missing AS id FROM items",
        "SELECT missing(id) AS id FROM items",
        "SELECT ? AS id",
        "SELECT :id AS id",
        "SELECT * FROM waybill_query",
    ],
)
def test_the_database_judges_the_query_and_does_nothing_of_it(shop: Shop, query: str) -> None:
    shop.sell("Zoë", 5)
    with pytest.raises((ConfigError, ValueError)):
        shop.bounds(query=query)
    assert shop.run("SELECT count(*) FROM items") == [(1,)]
    assert shop.run("PRAGMA user_version") == [(0,)]
    assert shop.run("SELECT count(*) FROM sqlite_master WHERE name = 'waybill_query'") == [(0,)]


@pytest.mark.parametrize(
    ("query", "more", "words"),
    [
        ("SELECT price FROM items", {}, "The query has no column id"),
        ("SELECT customer AS id FROM orders", {}, "Column id of the query is TEXT, and incrementing needs whole"),
        ("SELECT id, id FROM items", {}, "Two columns of the query are called id"),
        ("SELECT id, price FROM items", {"timestamp": "at"}, "The query has no column at"),
        ("SELECT id, 1.5 + id AS n FROM items", {"timestamp": "n"}, "has no time of a form that is read"),
        (JOIN, {"incrementing": None}, "query needs incrementing"),
        (JOIN, {"url": URL, "settle_s": 1}, "query is of SQLite alone"),
        (JOIN, {"table": "items"}, "or write a query"),
    ],
)
def test_columns_that_do_not_fit(shop: Shop, query: str, more: dict[str, Any], words: str) -> None:
    shop.sell("Zoë", 5)
    with pytest.raises((ConfigError, DataError, ValueError), match=words):
        shop.bounds(query=query, **more)


def test_a_table_that_is_not_there_may_come(shop: Shop) -> None:
    with pytest.raises(Unreachable, match="no such table"):
        shop.bounds(query="SELECT id FROM later")


def test_two_rows_of_one_number_are_an_error_wherever_a_page_ends(shop: Shop) -> None:
    shop.sell("Zoë", 1, 2, 3)
    query = "SELECT (id + 2) / 2 AS id, price FROM items"
    for most in (1, 2, 3):
        follower = Follower(shop.source(query), max_records=most)
        with pytest.raises(DataError, match="Two rows have the number 2"):
            follower.run()


def test_a_row_without_a_number_or_a_time_stops_the_run(shop: Shop) -> None:
    shop.sell("Zoë", 1, 2)
    with pytest.raises(ConfigError, match="Column id of the query is NULL in a row"):
        shop.bounds(query="SELECT nullif(id, 1) AS id FROM items")
    with pytest.raises(DataError, match="no whole number"):
        shop.bounds(query="SELECT id || 'x' AS id FROM items")
    with pytest.raises(DataError, match="Column at of the row with number 1 has no time"):
        shop.timed("SELECT id, CASE WHEN id > 1 THEN at END AS at FROM items").available_offsets({QUERY: None})


def test_a_time_of_another_form_is_noticed_though_nothing_was_written(shop: Shop) -> None:
    """What a query gives may depend on the moment."""
    shop.sell("Zoë", 1)
    moment = time.time() + 1.2
    said = f"CASE WHEN julianday('now') > 2440587.5 + {moment} / 86400 THEN 'soon' ELSE at END"
    source = shop.timed(f"SELECT id, price, {said} AS at FROM items")
    follower = Follower(source)
    source.available_offsets({QUERY: None})
    time.sleep(1.4)
    with pytest.raises(DataError, match="has no time of a form"):
        source.available_offsets(follower.positions or {QUERY: None})


def test_a_row_that_cannot_be_computed_is_an_error_of_the_data(shop: Shop) -> None:
    shop.sell("{", 5)
    source = shop.source("SELECT i.id, json_extract(o.customer, '$.a') AS a FROM items i JOIN orders o")
    [seen] = source.available_offsets({QUERY: None}).values()
    with pytest.raises(DataError, match="cannot compute a row of the query"):
        list(source.read(range_of(QUERY, seen), limit()))


def test_values_are_told_apart_by_what_they_are(shop: Shop) -> None:
    shop.run("CREATE TABLE v (id INTEGER PRIMARY KEY, b BOOLEAN, d DATETIME, j JSON, x BLOB)")
    shop.run("INSERT INTO v VALUES (1, 1, '2026-01-02 03:04:05', '[1]', x'00')")
    query = "SELECT id, b, d, j, b + 1 AS n, 'ü' || id AS t, 0.5 AS r, hex(x) AS h, NULL AS e FROM v"
    assert Follower(shop.source(query)).run() == [
        '{"id":1,"b":true,"d":"2026-01-02T03:04:05","j":[1],"n":2,"t":"ü1","r":0.5,"h":"00","e":null}'.encode()
    ]
    source = shop.source("SELECT id, x FROM v")
    [seen] = source.available_offsets({QUERY: None}).values()
    [batch] = source.read(range_of(QUERY, seen), limit())
    assert [(one.offset, one.kind) for one in batch.rejects] == [(1, "Unfit")]


def test_a_table_that_was_altered_is_read_as_it_is_now(shop: Shop) -> None:
    shop.sell("Zoë", 5)
    source = shop.source("SELECT * FROM items")
    follower = Follower(source)
    assert b"more" not in (follower.run()[0] or b"")
    shop.run("ALTER TABLE items ADD COLUMN more TEXT")
    shop.sell("Ann", 6)
    assert b'"more":null' in (Follower(source, follower.positions).run()[0] or b"")


def test_what_a_person_sees_before_a_run(shop: Shop) -> None:
    shop.sell("Zoë", 5, 6)
    said = shop.probed()
    assert all(said.values())
    assert said["the database takes the query, its rows are numbered by id"]
    assert not all(shop.probed("SELECT 1 AS id, price FROM items").values())
    assert not all(shop.probed("SELECT nothing").values())
    timed = shop.probed(TIMED, timestamp="at")
    assert timed["rows that were changed are found by at"]
    assert timed["no program has the file as its writer at this moment"]
    found = newest_rows(shop.given(), 1)
    assert prices(found.column("value").to_pylist()) == [6]
