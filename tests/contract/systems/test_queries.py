"""A query in the place of a table, in either database: which rows it brings, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from connect_core.errors import ConfigError, DataError, Refused, Unreachable
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import Position
from connect_core.systems.mysql.metadata_locks import PLUGIN, SCHEMA, who_shows
from connect_core.systems.postgresql import source_query
from connect_core.systems.tables.queries import CHANGED, RECREATED
from tests import mariadb, postgres_tables
from tests.mariadb import Database as MysqlDatabase
from tests.query_cases import JOIN, QUERY, TIMED, Shop, ShopOfMysql, prices

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def shop(request: pytest.FixtureRequest) -> Shop:
    if request.param == "mysql":
        return ShopOfMysql(mariadb.Database(request.getfixturevalue("mariadb")))
    return Shop(postgres_tables.Database(request.getfixturevalue("postgres_url")))


@pytest.fixture
def of_postgres(postgres_url: str) -> Shop:
    return Shop(postgres_tables.Database(postgres_url))


@pytest.fixture
def of_mysql(mariadb: mariadb.MariaDB) -> ShopOfMysql:
    return ShopOfMysql(MysqlDatabase(mariadb))


def rows(values: list[bytes | None]) -> list[Any]:
    return [json.loads(value or b"{}") for value in values]


# ---------------------------------------------------------------------------------------------------- which rows come


def test_each_row_of_a_join_comes_once(shop: Shop) -> None:
    shop.sell("Zoë", 10, 20)
    follower = Follower(shop.source())
    assert rows(follower.run()) == [
        {"id": 1, "customer": "Zoë", "price": 10},
        {"id": 2, "customer": "Zoë", "price": 20},
    ]
    assert follower.run() == []
    shop.sell("Ann", 30)
    assert prices(Follower(shop.source(), follower.positions).run()) == [30]
    assert follower.gaps == []


def test_the_key_of_a_record_is_its_number(shop: Shop) -> None:
    shop.sell("Ann", 10, 20)
    found = shop.newest_of(shop.options_of.model_validate(shop.given()), 5)
    assert found.column("key").to_pylist() == ["1", "2"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, price FROM items -- all of them",
        "WITH dear AS (SELECT * FROM items WHERE price > 15) SELECT id, price FROM dear",
        "SELECT id, price FROM items WHERE price > (SELECT MIN(price) FROM items)",
        "SELECT id, MAX(price) AS price FROM items WHERE price > 10 GROUP BY id HAVING COUNT(*) = 1",
        "SELECT id, price FROM items WHERE price > 15 ORDER BY price DESC",
        "SELECT id, price, '%s; -- FOR UPDATE' AS note FROM items WHERE price > 15",
        r"SELECT id, price, 'it''s \ and \\' AS note FROM items WHERE price > 15",
    ],
)
def test_shapes_of_a_query(shop: Shop, query: str) -> None:
    shop.sell("Ann", 10, 30, 20)
    assert [one for one in prices(Follower(shop.source(query)).run()) if one > 10] == [30, 20]
    assert shop.peeked(1, query)[0]["price"] == 20


def test_a_query_of_which_nothing_is_there(shop: Shop) -> None:
    follower = Follower(shop.source())
    assert follower.run() == []
    shop.sell("Ann", 10)
    assert prices(follower.run()) == [10]


def test_many_rows_come_page_by_page(shop: Shop) -> None:
    shop.sell("Ann", *range(700))
    assert prices(Follower(shop.source(), max_records=130).run()) == [*range(700)]


# ------------------------------------------------------------------------------------------ transactions that are open


@pytest.mark.parametrize(
    "query", [JOIN, "SELECT * FROM sold", "SELECT id, customer_of(of_order) AS c, price FROM items"]
)
def test_a_row_of_an_open_transaction_is_not_passed_over(shop: Shop, query: str) -> None:
    """Whichever table it has written so far, and however the query comes to that."""
    make_view_and_function(shop)
    shop.sell("early", 1)
    follower = Follower(shop.source(query))
    assert prices(follower.run()) == [1]
    with shop.session() as writing:
        shop.order(writing, "late")
        shop.item(writing, 2)
        shop.sell("newest", 3)
        assert follower.run() == []
        assert Follower(shop.source(query), follower.positions).run() == []
        assert shop.bounds(follower.positions[QUERY], query).partial
        writing.execute("COMMIT")
    assert prices(Follower(shop.source(query), follower.positions).run()) == [2, 3]


def make_view_and_function(shop: Shop) -> None:
    view = "CREATE VIEW sold AS SELECT i.id, o.customer, i.price FROM items i JOIN orders o ON o.id = i.of_order"
    if isinstance(shop, ShopOfMysql):
        reads = "READS SQL DATA RETURN (SELECT customer FROM orders WHERE id = wanted)"
        function = f"CREATE FUNCTION customer_of(wanted bigint) RETURNS varchar(20) {reads}"
    else:
        reads = "LANGUAGE sql STABLE AS 'SELECT customer FROM orders WHERE id = wanted'"
        function = f"CREATE FUNCTION customer_of(wanted bigint) RETURNS varchar(20) {reads}"
    shop.database.run(view, function)


def test_a_writer_of_any_table_of_the_query_is_waited_for(shop: Shop) -> None:
    """The order is there before its items, and has the number."""
    query = "SELECT o.id, i.price FROM orders o JOIN items i ON i.of_order = o.id"
    with shop.session() as writing:
        shop.order(writing, "late")
        shop.item(writing, 1)
        shop.sell("newest", 2)
        follower = Follower(shop.source(query))
        assert follower.run() == []
        writing.execute("COMMIT")
    assert prices(follower.run()) == [1, 2]


def test_a_transaction_that_writes_the_other_table_alone(shop: Shop) -> None:
    shop.sell("Ann", 1)
    with shop.session() as writing:
        writing.execute("UPDATE orders SET customer = 'Bob'")
        shop.database.run("INSERT INTO items (of_order, price) VALUES (1, 2)")
        follower = Follower(shop.source())
        assert follower.run() == []
        assert shop.bounds().partial
        writing.execute("COMMIT")
    assert [one["customer"] for one in rows(follower.run())] == ["Bob", "Bob"]


def test_a_number_that_is_drawn_first_and_inserted_later(of_postgres: Shop) -> None:
    """No lock of a table says so, and the query hides from which sequence the numbers are."""
    query = "SELECT i.id + 0 AS id, i.price FROM items i JOIN orders o ON o.id = i.of_order"
    of_postgres.sell("Ann", 1)
    with of_postgres.session() as writing:
        writing.execute("SELECT nextval('items_id_seq')")
        of_postgres.sell("newest", 3)
        follower = Follower(of_postgres.source(query))
        assert follower.run() == []
        writing.execute("INSERT INTO items VALUES (currval('items_id_seq'), 1, 2)")
        writing.execute("COMMIT")
    assert prices(follower.run()) == [1, 2, 3]


def test_a_server_that_lists_locks_in_its_performance_schema(own_mariadb: mariadb.MariaDB) -> None:
    shop = ShopOfMysql(mariadb.Database(own_mariadb))
    shop.database.run(f"UNINSTALL SONAME IF EXISTS '{PLUGIN}'")
    with shop.session() as asking:
        assert who_shows(asking) == SCHEMA
    with shop.session() as writing:
        shop.order(writing, "late")
        shop.item(writing, 1)
        shop.sell("newest", 2)
        follower = Follower(shop.source())
        assert follower.run() == []
        writing.execute("COMMIT")
    assert prices(follower.run()) == [1, 2]
    named = [one for one in shop.probed() if "the query reads" in one]
    assert all(f"{shop.database.name}.{table}" in named[0] for table in ("items", "orders"))
    assert "performance_schema" in named[0]


# ----------------------------------------------------------------------------------------------------- the other modes


def timed(shop: Shop, **more: Any) -> Any:
    return shop.source(TIMED, timestamp="at", delay_s=0.1, **more)


def test_a_row_comes_again_when_one_of_its_tables_was_changed(shop: Shop) -> None:
    shop.sell("Ann", 1, 2)
    time.sleep(1.1)
    follower = Follower(timed(shop))
    assert [one["customer"] for one in rows(follower.run())] == ["Ann", "Ann"]
    shop.database.run(f"UPDATE orders SET customer = 'Bob', at = {shop.now}")
    assert [one["customer"] for one in rows(Follower(timed(shop), follower.positions).run())] == ["Bob", "Bob"]
    shop.database.run(f"UPDATE items SET price = 7, at = {shop.now} WHERE id = 2")
    assert [one["id"] for one in rows(Follower(timed(shop), follower.positions).run())] == [2]
    assert follower.gaps == []


def test_a_change_of_an_open_transaction_is_not_passed_over(shop: Shop) -> None:
    shop.sell("Ann", 1, 2)
    time.sleep(1.1)
    follower = Follower(timed(shop))
    follower.run()
    with shop.session() as writing:
        writing.execute(f"UPDATE orders SET customer = 'late', at = {shop.now} WHERE id = 1")
        time.sleep(1.2)
        shop.sell("newest", 3)
        time.sleep(1.2)
        assert follower.run() == []
        writing.execute("COMMIT")
    assert [one["customer"] for one in rows(Follower(timed(shop), follower.positions).run())] == [
        "late",
        "late",
        "newest",
    ]


def test_each_run_reads_the_whole_query(shop: Shop) -> None:
    shop.sell("Ann", 1, 2)
    follower = Follower(shop.source(bulk=True))
    assert prices(follower.run()) == [1, 2]
    shop.database.run("UPDATE items SET price = 5 WHERE id = 1")
    shop.sell("Bob", 3)
    again = Follower(shop.source(bulk=True), follower.positions)
    assert prices(again.run()) == [5, 2, 3]
    assert again.gaps == []


def test_a_pass_over_a_query_that_was_killed_is_finished_first(shop: Shop) -> None:
    shop.sell("Ann", 1, 2, 3)
    there = shop.bounds(bulk=True)
    middle = Position(there.incarnation, 2, there.evidence)
    follower = Follower(shop.source(bulk=True), {QUERY: middle})
    assert prices(follower.run()) == [2, 3, 1, 2, 3]


# ----------------------------------------------------------------------------------------- numbers that do not fit


def test_two_rows_of_one_number_are_an_error_wherever_a_page_ends(shop: Shop) -> None:
    """Of a join that is numbered by the table with fewer rows."""
    query = "SELECT o.id, i.price FROM orders o JOIN items i ON i.of_order = o.id"
    for _ in range(49):
        shop.sell("Ann", 1)
    shop.sell("Bob", 2, 3)
    for many in (1, 49, 50, 51, 1000):
        follower = Follower(shop.source(query), max_records=many)
        with pytest.raises(DataError, match="Two rows have the number 50") as raised:
            follower.run()
        assert "Name a column as incrementing that tells rows of the query apart" in raised.value.next_step
    assert any("two rows of the query have the number 50" in one for one in shop.probed(query))


def test_two_rows_of_one_number_where_a_statement_ends(shop: Shop) -> None:
    """In the middle of a page: rows 50 and 51 are of one number."""
    shop.database.run("INSERT INTO orders (customer) VALUES ('Ann')")
    shop.sell("Ann", *range(60))
    query = "SELECT CASE WHEN id > 50 THEN id - 1 ELSE id END AS id, price FROM items"
    with pytest.raises(DataError, match="Two rows have the number 50"):
        Follower(shop.source(query)).run()


def test_a_row_without_a_number_stops_the_run(shop: Shop) -> None:
    query = "SELECT i.id, o.customer FROM orders o LEFT JOIN items i ON i.of_order = o.id"
    shop.sell("Ann", 1)
    follower = Follower(shop.source(query))
    assert len(follower.run()) == 1
    shop.sell("nothing")
    with pytest.raises(ConfigError, match="Column id of the query is NULL in a row"):
        follower.run()
    assert any("is NULL in a row" in one for one, ok in shop.probed(query).items() if not ok)


def test_a_row_without_a_time_stops_the_run(shop: Shop) -> None:
    query = "SELECT id, NULLIF(at, at) AS at FROM orders"
    shop.sell("Ann")
    with pytest.raises(ConfigError, match="Column at of the query is NULL in a row"):
        Follower(shop.source(query, timestamp="at")).run()


def test_numbers_below_zero(shop: Shop) -> None:
    shop.sell("Ann", 1)
    with pytest.raises(ConfigError, match="Numbers of rows must be from 0"):
        Follower(shop.source("SELECT id - 5 AS id FROM items")).run()


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM items; SELECT 1",
        "SELECT id FROM items) q; DELETE FROM items; SELECT * FROM (SELECT 1 AS id",
        "SELECT id FROM items) q; COMMIT; BEGIN READ WRITE; DELETE FROM items; COMMIT; BEGIN; SELECT * FROM (SELECT 1",
        "SELECT 1 AS id) q, (SELECT 2 AS other",
        "DELETE FROM items",
        "INSERT INTO items (price) VALUES (9)",
        "SELECT id FROM items FOR UPDATE",
        "SELECT id FROM items WHERE",
        "SELECT none FROM items",
        "SELECT id FROM items /* without an end",
        "SELECT no_such_function(id) AS id FROM items",
        "SHOW TABLES",
        "UPDATE items SET price = 1",
        "id FROM items",
    ],
)
def test_the_server_judges_the_query_and_does_nothing_of_it(shop: Shop, query: str) -> None:
    shop.sell("Ann", 1)
    with pytest.raises(ConfigError, match="The database does not take the query") as raised:
        Follower(shop.source(query)).run()
    assert raised.value.where.endswith("/query")
    assert [ok for one, ok in shop.probed(query).items() if "does not take the query" in one] == [False]
    assert [*shop.database.run("SELECT COUNT(*), MAX(price) FROM items")] == [(1, 1)]


@pytest.mark.parametrize(
    ("query", "more", "words"),
    [
        ("SELECT id, price FROM items", {"incrementing": "no"}, "The query has no column no"),
        ("SELECT id, price FROM items", {"timestamp": "no"}, "The query has no column no"),
        ("SELECT id, price FROM items", {"timestamp": "price"}, "Column price of the query is int"),
        ("SELECT customer AS id FROM orders", {}, "and incrementing needs whole numbers"),
        ("SELECT AVG(price) AS id FROM items", {}, "and incrementing needs whole numbers"),
    ],
)
def test_columns_that_do_not_fit(shop: Shop, query: str, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Follower(shop.source(query, **more)).run()


def test_a_function_that_writes_is_refused(of_postgres: Shop, of_mysql: Shop) -> None:
    of_postgres.database.run(
        "CREATE FUNCTION writes() RETURNS bigint LANGUAGE sql AS 'INSERT INTO items (price) VALUES (9) RETURNING id'"
    )
    of_mysql.database.run(
        "CREATE FUNCTION writes() RETURNS bigint DETERMINISTIC MODIFIES SQL DATA"
        " BEGIN INSERT INTO items (price) VALUES (9); RETURN 1; END"
    )
    for shop in (of_postgres, of_mysql):
        shop.sell("Ann", 1)
        with pytest.raises(ConfigError, match="The database does not take the query"):
            Follower(shop.source("SELECT id, writes() AS price FROM items")).run()
        assert shop.database.run("SELECT COUNT(*) FROM items")[0][0] == 1


def test_a_table_that_is_not_there_may_come(shop: Shop) -> None:
    with pytest.raises(Unreachable, match="There is no such table"):
        Follower(shop.source("SELECT id FROM nowhere")).run()


def test_two_columns_of_one_name(shop: Shop) -> None:
    with pytest.raises(ConfigError, match=r"Two columns of the query are called price|Duplicate column name 'price'"):
        Follower(shop.source("SELECT id, price, price FROM items")).run()


def test_a_row_that_cannot_be_computed_is_an_error_of_the_data(of_postgres: Shop) -> None:
    of_postgres.sell("Ann", 1, 0)
    with pytest.raises(DataError, match="cannot compute a row of the query: DivisionByZero"):
        Follower(of_postgres.source("SELECT id, 10 / price AS price FROM items")).run()


def test_what_is_written_elsewhere_is_read_whole_alone(of_postgres: Shop) -> None:
    of_postgres.sell("Ann", 1)
    of_postgres.database.run(
        "CREATE MATERIALIZED VIEW kept AS SELECT id, price FROM items",
        "CREATE VIEW above AS SELECT * FROM kept",
    )
    for query in ("SELECT * FROM kept", "SELECT * FROM above"):
        with pytest.raises(ConfigError, match="kept is a materialized view"):
            Follower(of_postgres.source(query)).run()
        assert prices(Follower(of_postgres.source(query, bulk=True)).run()) == [1]


def test_a_table_without_transactions_is_read_whole_alone(of_mysql: Shop) -> None:
    of_mysql.database.run("CREATE TABLE plain (id int PRIMARY KEY, price int) ENGINE = MyISAM")
    of_mysql.database.run("INSERT INTO plain VALUES (1, 2)", "CREATE VIEW above AS SELECT * FROM plain")
    for query in ("SELECT * FROM plain", "SELECT * FROM above"):
        with pytest.raises(ConfigError, match="The engine of the table is MyISAM"):
            Follower(of_mysql.source(query)).run()
        assert prices(Follower(of_mysql.source(query, bulk=True)).run()) == [2]


def test_a_query_of_no_table_is_read_whole_alone(of_mysql: Shop) -> None:
    query = "SELECT 7 AS id, 1 AS price"
    with pytest.raises(ConfigError, match="reads no table whose writers the server shows"):
        Follower(of_mysql.source(query)).run()
    assert prices(Follower(of_mysql.source(query, bulk=True)).run()) == [1]


def test_a_user_who_sees_nothing_of_a_table_behind_a_view(of_mysql: ShopOfMysql) -> None:
    make_view_and_function(of_mysql)
    name = of_mysql.database.name
    of_mysql.database.run(
        "CREATE USER IF NOT EXISTS viewer@'127.0.0.1'", f"GRANT SELECT ON {name}.sold TO viewer@'127.0.0.1'"
    )
    of_mysql.database.run("GRANT SELECT ON performance_schema.* TO viewer@'127.0.0.1'")  # which MySQL asks for
    with pytest.raises(ConfigError, match=rf"reads table {name}\.(items|orders), of which viewer sees nothing"):
        Follower(of_mysql.source("SELECT * FROM sold", user="viewer")).run()
    with pytest.raises(Refused, match=r"may not read all of the query: SELECT command denied .*items"):
        Follower(of_mysql.source("SELECT * FROM items", user="viewer")).run()


def test_what_a_user_may_not_read_is_named(of_postgres: Shop) -> None:
    reader = f"reader_{of_postgres.database.options['database']}"
    of_postgres.database.run(
        f"CREATE ROLE {reader} LOGIN",
        f"GRANT SELECT ON items TO {reader}",
    )
    with pytest.raises(Refused, match="may not read all of the query: permission denied for table orders"):
        Follower(of_postgres.source(user=reader)).run()
    of_postgres.database.run(
        f"GRANT SELECT ON orders TO {reader}",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
    )
    with pytest.raises(Refused, match='would be affected by row-level security policy for table "orders"'):
        Follower(of_postgres.source(user=reader)).run()
    assert any("permission" not in one and "row-level" in one for one in of_postgres.probed(user=reader))
    of_postgres.database.run("ALTER TABLE orders DISABLE ROW LEVEL SECURITY")
    of_postgres.sell("Ann", 1)
    assert prices(Follower(of_postgres.source(user=reader)).run()) == [1]


# ---------------------------------------------------------------------------------------------- what changes meanwhile


def test_another_query_is_a_gap_until_somebody_says_so(shop: Shop) -> None:
    shop.sell("Ann", 1)
    follower = Follower(shop.source())
    follower.run()
    shop.sell("Bob", 2)
    other = Follower(shop.source("SELECT id, price FROM items"), follower.positions)
    there = shop.bounds(follower.positions[QUERY], "SELECT id, price FROM items")
    assert [(gap.loses, gap.begin, gap.end, gap.reason) for gap in there.gaps] == [(True, 2, None, CHANGED)]
    assert prices(other.run()) == [1, 2]


def test_another_query_of_times_is_a_gap_and_of_all_rows_is_none(shop: Shop) -> None:
    shop.sell("Ann", 1)
    time.sleep(1.1)
    follower = Follower(timed(shop))
    follower.run()
    other = shop.bounds(follower.positions[QUERY], "SELECT id, price, at FROM items", timestamp="at")
    assert [gap.reason for gap in other.gaps] == [CHANGED]
    whole = Follower(shop.source(bulk=True))
    whole.run()
    again = Follower(shop.source("SELECT id, price FROM items", bulk=True), whole.positions)
    assert (prices(again.run()), again.gaps) == ([1], [])


def test_the_same_query_in_other_columns_is_another_one(shop: Shop) -> None:
    query = "SELECT id, of_order, price FROM items"
    shop.sell("Ann", 1)
    follower = Follower(shop.source(query))
    follower.run()
    there = shop.bounds(follower.positions[QUERY], query, incrementing="of_order")
    assert [gap.reason for gap in there.gaps] == [CHANGED]


def test_a_table_made_again_is_a_gap(of_postgres: Shop) -> None:
    of_postgres.sell("Ann", 1, 2)
    follower = Follower(of_postgres.source())
    follower.run()
    of_postgres.database.run("DROP TABLE orders", f"CREATE TABLE orders ({Shop.key}, customer text)")
    assert of_postgres.bounds(follower.positions[QUERY]).gaps == ()  # it gives no numbers
    of_postgres.database.run("DROP TABLE items", f"CREATE TABLE items ({Shop.key}, of_order bigint, price int)")
    of_postgres.database.run("INSERT INTO orders VALUES (1, 'new')", "INSERT INTO items (of_order) VALUES (1)")
    [gap] = of_postgres.bounds(follower.positions[QUERY]).gaps
    assert (gap.loses, gap.reason) == (True, RECREATED)


def test_a_table_behind_a_view_or_an_expression_made_again_is_a_gap(of_postgres: Shop) -> None:
    query = "SELECT id + 0 AS id, price FROM items"
    of_postgres.sell("Ann", 1)
    follower = Follower(of_postgres.source(query))
    follower.run()
    of_postgres.database.run("DROP TABLE items", f"CREATE TABLE items ({Shop.key}, of_order bigint, price int)")
    assert [gap.reason for gap in of_postgres.bounds(follower.positions[QUERY], query).gaps] == [RECREATED]


def test_a_sequence_that_was_restarted_or_set_back_is_noticed(of_postgres: Shop) -> None:
    of_postgres.sell("Ann", 1, 2, 3)
    follower = Follower(of_postgres.source())
    follower.run()
    of_postgres.database.run("SELECT setval('items_id_seq', 1)")
    with pytest.raises(DataError, match="The sequence of column id is at 1"):
        follower.run()
    of_postgres.database.run("TRUNCATE items RESTART IDENTITY")
    [gap] = of_postgres.bounds(follower.positions[QUERY]).gaps
    assert gap.reason == "the sequence of column id was restarted or altered"


def test_a_sequence_that_gives_numbers_in_another_order_is_refused(of_postgres: Shop) -> None:
    of_postgres.database.run("ALTER SEQUENCE items_id_seq CACHE 20")
    with pytest.raises(ConfigError, match="has CACHE 20"):
        Follower(of_postgres.source()).run()


def test_what_is_written_anew_before_a_page_is_read_is_not_empty(
    of_postgres: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot that is older than that sees no row of it."""
    of_postgres.sell("Ann", *range(10))
    planned = range_of(QUERY, of_postgres.bounds())
    before = source_query.cluster_of

    def rewritten(*given: Any, **more: Any) -> str:
        found = before(*given, **more)
        of_postgres.database.run("ALTER TABLE items ALTER price TYPE bigint")
        return found

    monkeypatch.setattr(source_query, "cluster_of", rewritten)
    [batch] = of_postgres.source().read(planned, limit())
    assert prices(batch.records.column("value").to_pylist()) == [*range(10)]


# -------------------------------------------------------------------------------------------------- values, and people


VALUES = {
    "postgresql": "n numeric(9,2), f real, d double precision, b boolean, t text, c char(3), u uuid, y bytea, a date,"
    " m time, s timestamp, z timestamptz, j jsonb, k json, l integer[], i interval",
    "mysql": "n decimal(9,2), f float, d double, b tinyint(1), t varchar(9), c char(3), u char(36),"
    " y varbinary(9), a date, m time(3), s datetime(6), z timestamp(6) NULL, e enum('a','b'), w set('a','b'), r year,"
    " x bit(9), g bigint unsigned",
}
ROWS = {
    "postgresql": r"1, 1.50, 0.1, 0.1, true, 'Zoë ''%s', 'a', 'd3613260-ecc6-11f1-9fc3-02fc00000001', '\x00ff',"
    " '2026-01-02', '13:45:10.25', '2026-01-02 03:04:05.000006', '2026-01-02 03:04:05+02', '{\"a\": [1.10]}',"
    " '{\"a\":\n 1}', '{1,NULL}', '1 day 2 hours'",
    "mysql": "1, 1.50, 0.1, 0.1, 1, 'Zoë ''%s', 'a', 'd3613260-ecc6-11f1-9fc3-02fc00000001', x'00ff', '2026-01-02',"
    " '13:45:10.25', '2026-01-02 03:04:05.000006', '2026-01-02 03:04:05', 'a', 'a,b', 2026, 5, 18446744073709551615",
}


def test_values_are_those_of_the_table(shop: Shop) -> None:
    system = "mysql" if isinstance(shop, ShopOfMysql) else "postgresql"
    shop.database.run(f"CREATE TABLE v (id bigint PRIMARY KEY, {VALUES[system]})")
    shop.database.run(f"INSERT INTO v VALUES ({ROWS[system]})", "INSERT INTO v (id) VALUES (2)")
    of_table = {**shop.given(), "table": "v"}
    del of_table["query"]
    wanted = Follower(shop.rows_of(shop.options_of.model_validate(of_table))).run()
    assert Follower(shop.source("SELECT * FROM v")).run() == wanted
    assert Follower(shop.source("SELECT * FROM v ORDER BY id DESC LIMIT 10")).run() == wanted  # not merged


def test_what_a_person_sees_before_a_run(shop: Shop) -> None:
    shop.sell("Ann", 1, 2)
    said = shop.probed()
    assert set(said.values()) == {True}
    assert "the database takes the query, its rows are numbered by id" in said
    whole = shop.probed(bulk=True)
    assert set(whole.values()) == {True}
    assert "each run reads all of them again" in whole
    assert "rows that were changed are found by at" in shop.probed(TIMED, timestamp="at")
    assert [one["price"] for one in shop.peeked(1)] == [2]
