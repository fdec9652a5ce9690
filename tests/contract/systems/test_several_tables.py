"""Several tables of one database as one source, of either database."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from connect_core.errors import Unreachable
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower
from connect_core.systems.mysql.source import MysqlTables
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_peeking import newest_rows as newest_of_mysql
from connect_core.systems.mysql.source_probing import probe_source
from connect_core.systems.postgresql.source import PostgresTables
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_peeking import newest_rows
from connect_core.systems.postgresql.source_probing import probe
from connect_core.systems.tables.several import SeveralTables
from tests import mariadb, postgres_tables
from tests.mysql import ONLY_MARIADB

pytestmark = pytest.mark.server


class Shop:
    """Tables `orders`, `pay_in` and `pay_old`, with two rows each."""

    def __init__(self, database: Any) -> None:
        self.database, self.is_mysql = database, isinstance(database, mariadb.Database)
        self.within = database.options["database"] if self.is_mysql else "public"
        for table in ("orders", "pay_in", "pay_old"):
            self.make(table)

    def make(self, table: str, key: str = "id bigint PRIMARY KEY") -> None:
        self.database.run(f"CREATE TABLE {table} ({key}, body varchar(20))")
        self.database.run(f"INSERT INTO {table} VALUES (1, '{table} 1'), (2, '{table} 2')")

    def given(self, *tables: str, **more: Any) -> dict[str, Any]:
        usual = {"tables": [*tables], "every_s": 0.02, "open_transactions_s": 0.2}
        return {**self.database.options, **usual, **more}

    def source(self, *tables: str, **more: Any) -> SeveralTables:
        given = self.given(*tables, **more)
        if self.is_mysql:
            return MysqlTables(MysqlSourceOptions.model_validate(given))
        return PostgresTables(PostgresSourceOptions.model_validate(given))

    def part(self, table: str) -> Partition:
        return Partition(f"{self.within}.{table}")

    def probed(self, *tables: str, **more: Any) -> dict[str, bool]:
        return {one.what: one.ok for one in (probe_source if self.is_mysql else probe)(self.given(*tables, **more))}

    def peeked(self, *tables: str) -> list[Any]:
        given = self.given(*tables)
        if self.is_mysql:
            found = newest_of_mysql(MysqlSourceOptions.model_validate(given), 1)
        else:
            found = newest_rows(PostgresSourceOptions.model_validate(given), 1)
        return [json.loads(value)["body"] for value in found.column("value").to_pylist()]


@pytest.fixture(params=["postgresql", "mysql"])
def shop(request: pytest.FixtureRequest) -> Shop:
    if request.param == "mysql":
        return Shop(mariadb.Database(request.getfixturevalue("mariadb")))
    return Shop(postgres_tables.Database(request.getfixturevalue("postgres_url")))


def arrived(follower: Follower) -> list[str]:
    return sorted(json.loads(value or b"{}")["body"] for value in follower.run())


def test_each_table_is_a_partition_with_a_topic(shop: Shop) -> None:
    source = shop.source("orders", "pay_*", exclude=["*_old"])
    assert source.partitions([]) == [shop.part("orders"), shop.part("pay_in")]
    assert [source.topic(one) for one in source.partitions([])] == ["orders", "pay_in"]
    follower = Follower(source)
    assert arrived(follower) == ["orders 1", "orders 2", "pay_in 1", "pay_in 2"]
    shop.database.run("INSERT INTO pay_in VALUES (3, 'pay_in 3')")
    again = Follower(shop.source("orders", "pay_*", exclude=["*_old"]), follower.positions)
    assert arrived(again) == ["pay_in 3"]


def test_a_table_that_comes_is_read_and_wakes_who_waits(shop: Shop) -> None:
    source = shop.source("pay_*")
    follower = Follower(source)
    follower.run()
    seen = source.available_offsets(follower.positions)
    shop.make("pay_more")
    source.wait(seen, 30)
    positions = {**follower.positions, shop.part("pay_more"): None}
    assert arrived(Follower(shop.source("pay_*"), positions)) == ["pay_more 1", "pay_more 2"]


def test_a_table_that_is_gone_is_told_and_the_others_are_read(shop: Shop) -> None:
    follower = Follower(shop.source("pay_*"))
    follower.run()
    shop.database.run("DROP TABLE pay_old", "INSERT INTO pay_in VALUES (3, 'pay_in 3')")
    source = shop.source("pay_*")
    known = [*follower.positions]
    assert set(source.partitions(known)) == set(known)
    bounds = source.available_offsets(follower.positions)
    failure = bounds[shop.part("pay_old")].failure
    assert failure is not None
    assert "There is no such table" in failure.what
    assert (bounds[shop.part("pay_in")].failure, bounds[shop.part("pay_in")].end) == (None, 4)
    excluding = shop.source("pay_*", exclude=["pay_old"])
    assert excluding.partitions(known) == [shop.part("pay_in")]
    assert excluding.available_offsets({shop.part("pay_old"): None})[shop.part("pay_old")].failure is None


def test_one_that_cannot_be_read_exactly_holds_up_no_other(shop: Shop) -> None:
    shop.make("pay_by_name", "id varchar(5) PRIMARY KEY")
    bounds = shop.source("pay_*").available_offsets(dict.fromkeys(shop.source("pay_*").partitions([])))
    wrong = {one.key.rpartition(".")[2]: seen.failure.what for one, seen in bounds.items() if seen.failure}
    assert list(wrong) == ["pay_by_name"]
    assert "not one column of whole numbers" in wrong["pay_by_name"]
    said = shop.probed("pay_*")
    assert [what for what, ok in said.items() if not ok and "pay_by_name" in what]
    assert all(ok for what, ok in said.items() if "pay_by_name" not in what)


def test_an_open_transaction_holds_up_its_table_alone_and_is_waited_for_once(shop: Shop) -> None:
    before = Follower(shop.source("orders", "pay_*"))
    before.run()
    shop.database.run("INSERT INTO pay_old VALUES (3, 'pay_old 3')")
    with closing(shop.database.connected()) as connection, connection.cursor() as writing:
        for table in ("orders", "pay_in"):
            writing.execute("BEGIN" if table == "orders" else "SELECT 1")
            writing.execute(f"INSERT INTO {table} VALUES (3, 'late')")
            shop.database.run(f"INSERT INTO {table} VALUES (4, '{table} 4')")
        follower = Follower(shop.source("orders", "pay_*"), before.positions)
        assert arrived(follower) == ["pay_old 3"]
        connection.commit()
    assert arrived(Follower(shop.source("orders", "pay_*"), follower.positions)) == [
        "late",
        "late",
        "orders 4",
        "pay_in 4",
    ]


def test_the_whole_tables_in_each_run(shop: Shop) -> None:
    follower = Follower(shop.source("pay_*", bulk=True))
    assert len(arrived(follower)) == 4
    assert len(arrived(Follower(shop.source("pay_*", bulk=True), follower.positions))) == 4


def test_a_database_that_is_away_is_no_failure_of_a_table(shop: Shop) -> None:
    source = shop.source("pay_*", host="127.0.0.1", port=1)
    with pytest.raises(Unreachable):
        source.partitions([])
    with pytest.raises(Unreachable):
        source.available_offsets({shop.part("pay_in"): None})


def test_a_pattern_may_match_nothing_yet(shop: Shop) -> None:
    assert shop.source("later_*").partitions([]) == []
    assert [what for what in shop.probed("later_*") if "no table matches yet" in what]
    assert shop.peeked("pay_*") == ["pay_in 2", "pay_old 2"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"table": "orders"}, "name one table as table, or several as tables"),
        ({"tables": []}, "name one table as table, or several as tables"),
        ({"tables": [], "table": "orders", "exclude": ["x"]}, "exclude goes with tables"),
    ],
)
def test_tables_are_named_in_one_way(shop: Shop, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        shop.source("orders", **more)


@pytest.fixture
def family(postgres_url: str) -> Shop:
    """Table `log`, from which `log_a` inherits, and from that `log_b`: each has a row."""
    shop = Shop(postgres_tables.Database(postgres_url))
    shop.database.run(
        "CREATE TABLE log (id bigserial PRIMARY KEY, body text)",
        "CREATE TABLE log_a (PRIMARY KEY (id)) INHERITS (log)",
        "CREATE TABLE log_b (PRIMARY KEY (id)) INHERITS (log_a)",
        *(f"INSERT INTO {table} (body) VALUES ('{table}')" for table in ("log", "log_a", "log_b")),
    )
    return shop


def test_rows_of_a_table_that_inherits_come_once_with_those_of_the_other(family: Shop) -> None:
    source = family.source("log*")
    assert source.partitions([]) == [family.part("log")]
    assert arrived(Follower(source)) == ["log", "log_a", "log_b"]
    assert family.peeked("log*") == ["log_b"]
    assert [
        what for what, ok in family.probed("log*").items() if ok and "with those of public.log: public.log_a" in what
    ]
    children = family.source("log*", exclude=["log"])
    assert children.partitions([]) == [family.part("log_a")]
    assert arrived(Follower(children)) == ["log_a", "log_b"]


def test_a_child_that_was_read_before_is_retired_when_its_parent_is_read(family: Shop) -> None:
    follower = Follower(family.source("log_a"))
    follower.run()
    source = family.source("log*")
    assert source.partitions([*follower.positions]) == [family.part("log")]
    seen = source.available_offsets(follower.positions)[family.part("log_a")]
    assert seen.begin == seen.end


def test_a_child_that_is_named_beside_its_parent_is_refused_by_name(family: Shop) -> None:
    source = family.source("log", "log_a")
    bounds = source.available_offsets(dict.fromkeys(source.partitions([])))
    failure = bounds[family.part("log_a")].failure
    assert failure is not None
    assert "inherits from public.log, which is read, too" in failure.what
    assert bounds[family.part("log")].failure is None
    assert [what for what, ok in family.probed("log", "log_a").items() if not ok and "table public.log_a: " in what]


@pytest.mark.parametrize("more", [{}, {"bulk": True}])
def test_a_child_that_numbers_its_rows_apart_has_its_parent_refused(family: Shop, more: dict[str, Any]) -> None:
    family.database.run("ALTER TABLE log_b ALTER id DROP DEFAULT")
    bounds = family.source("log*", **more).available_offsets({family.part("log"): None})
    failure = bounds[family.part("log")].failure
    assert failure is not None
    assert "log_b inherits from the table, and may give its rows numbers" in failure.what
    children = family.source("log_b", **more)
    assert children.available_offsets(dict.fromkeys(children.partitions([])))[family.part("log_b")].failure is None


@pytest.mark.parametrize("shop", ["postgresql", pytest.param("mysql", marks=ONLY_MARIADB)], indirect=True)
def test_the_probe_names_what_no_pattern_means(shop: Shop) -> None:
    quote = "`" if shop.is_mysql else '"'
    shop.database.run(
        "CREATE VIEW pay_view AS SELECT * FROM orders",
        f"CREATE TABLE {quote}pay_in.old{quote} (id bigint PRIMARY KEY)",
        "CREATE TABLE pay_history (id bigint PRIMARY KEY) WITH SYSTEM VERSIONING"
        if shop.is_mysql
        else "CREATE MATERIALIZED VIEW pay_history AS SELECT * FROM orders",
    )
    said = [what for what in shop.probed("pay_*") if "left out" in what]
    other = "a system-versioned table" if shop.is_mysql else "no table but a materialized view"
    assert said == sorted(
        [
            f"left out, a name with a point cannot be written in a document: {shop.within}.pay_in.old",
            f"left out, {other}: {shop.within}.pay_history",
            f"left out, no table but a view: {shop.within}.pay_view",
        ]
    )
    assert not [what for what in shop.probed("orders") if "left out" in what]


def test_the_probe_names_patterns_that_match_nothing(shop: Shop) -> None:
    said = shop.probed("orders", "PAY_*", "x*", "pay_*")
    assert [what for what, ok in said.items() if ok and "matches no table" in what] == [
        f"{shop.within}.PAY_* matches no table yet; {shop.within}.pay_in is there, in other capitals",
        f"{shop.within}.x* matches no table yet",
    ]


def test_the_probe_says_of_a_locked_table_that_it_is_and_goes_on(shop: Shop) -> None:
    with closing(shop.database.connected()) as connection, connection.cursor() as locking:
        locking.execute("LOCK TABLES orders WRITE" if shop.is_mysql else "BEGIN")
        if not shop.is_mysql:
            locking.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        said = shop.probed("orders", "pay_in", lock_timeout_s=0.2)
    [wrong] = [what for what, ok in said.items() if not ok]
    assert "orders: Another session held a lock for longer than lock_timeout_s" in wrong
    assert [what for what, ok in said.items() if ok and "pay_in is there" in what]


def test_the_probe_names_the_table_and_the_right_that_is_missing(shop: Shop) -> None:
    user = f"lim{uuid4().hex[:8]}"
    if shop.is_mysql:
        rights = [f"CREATE USER {user} IDENTIFIED BY 'only for tests'", f"GRANT INSERT ON pay_in TO {user}"]
        rights.append(f"GRANT SELECT ON performance_schema.* TO {user}")  # which MySQL asks for
    else:
        rights = [f"CREATE ROLE {user} LOGIN PASSWORD 'only for tests'"]
    shop.database.run(*rights, f"GRANT SELECT ON orders TO {user}")
    try:
        said = shop.probed("orders", "pay_in", user=user, password="only for tests")
    finally:
        shop.database.run(f"DROP USER {user}" if shop.is_mysql else f"DROP OWNED BY {user}; DROP ROLE {user}")
    [wrong] = [what for what, ok in said.items() if not ok]
    assert f"{user} lacks SELECT on {shop.within}.pay_in" in wrong
    assert [what for what, ok in said.items() if ok and "orders is there" in what]


def test_a_table_that_the_server_finds_by_two_names_is_read_by_one(worker_folder: Path) -> None:
    """To such a server capitals make no difference."""
    server = mariadb.MariaDB(worker_folder / "small-names", settings={"lower_case_table_names": "1"})
    with contextmanager(mariadb.running)(server):
        shop = Shop(mariadb.Database(server))
        for read, twice, by in (("orders", "Orders", "ord*"), ("Orders", "ORDERS", "Orders")):
            source = shop.source(twice, by) if "*" in by else shop.source(by, twice)
            bounds = source.available_offsets(dict.fromkeys(source.partitions([])))
            failure = bounds[shop.part(twice)].failure
            assert failure is not None
            assert "its rows would come twice" in failure.what
            assert bounds[shop.part(read)].failure is None
            said = shop.probed(twice, by) if "*" in by else shop.probed(by, twice)
            [wrong] = [what for what, ok in said.items() if not ok]
            assert wrong.startswith(f"table {shop.within}.{twice}: To the server the table is {shop.within}.{read}")
        assert not [ok for ok in shop.probed("Orders").values() if not ok]
        assert arrived(Follower(shop.source("Orders"))) == ["orders 1", "orders 2"]
