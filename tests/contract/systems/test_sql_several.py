"""Several tables that SQLAlchemy reaches as one source: of a file of SQLite, and of a server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import Unreachable
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower
from connect_core.systems.sql.source import SqlTables
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.sql.source_peeking import newest_rows
from connect_core.systems.sql.source_probing import probe_source
from tests.contract.systems.test_sql_source import SETTLE_S, FileCase
from tests.elsewhere import URL, Elsewhere


class Shop:
    """Tables `orders`, `pay_in` and `pay_old`, with two rows each."""

    within = ""
    key = "id INTEGER PRIMARY KEY AUTOINCREMENT"

    def __init__(self, database: Any, **options: Any) -> None:
        self.database, self.options = database, options
        for table in ("orders", "pay_in", "pay_old"):
            self.make(table)

    def make(self, table: str, key: str = "") -> None:
        self.database.run(f"CREATE TABLE {table} ({key or self.key}, body varchar(20))")
        self.insert(table, f"{table} 1", f"{table} 2")

    def insert(self, table: str, *bodies: str) -> None:
        self.database.run(*(f"INSERT INTO {table} (body) VALUES ('{one}')" for one in bodies))

    def given(self, *tables: str, **more: Any) -> SqlSourceOptions:
        exclude = [self.name(one) for one in more.pop("exclude", ())]
        named = {"tables": [self.name(one) for one in tables], "exclude": exclude}
        return SqlSourceOptions.model_validate({"every_s": 0.02, **self.options, **named, **more})

    def name(self, table: str) -> str:
        return f"{self.within}.{table}" if self.within else table

    def source(self, *tables: str, **more: Any) -> SqlTables:
        return SqlTables(self.given(*tables, **more))

    def part(self, table: str) -> Partition:
        return Partition(self.name(table))

    def probed(self, *tables: str, **more: Any) -> dict[str, bool]:
        return {one.what: one.ok for one in probe_source(self.given(*tables, **more).model_dump(exclude_unset=True))}

    def peeked(self, *tables: str) -> list[Any]:
        found = newest_rows(self.given(*tables), 1)
        return [json.loads(value)["body"] for value in found.column("value").to_pylist()]


class ShopOfServer(Shop):
    key = "id bigserial PRIMARY KEY"

    def __init__(self, database: Elsewhere) -> None:
        [(self.within,)] = database.run("SELECT current_schema()")
        super().__init__(database, url=URL, settle_s=SETTLE_S)


@pytest.fixture
def of_file(tmp_path: Path) -> Shop:
    case = FileCase(tmp_path)
    case.run("DROP TABLE t")
    return Shop(case, url=case.options["url"])


@pytest.fixture
def of_server(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> ShopOfServer:
    return ShopOfServer(Elsewhere(postgres_url, monkeypatch))


@pytest.fixture(params=["of_file", pytest.param("of_server", marks=pytest.mark.server)])
def shop(request: pytest.FixtureRequest) -> Shop:
    found: Shop = request.getfixturevalue(request.param)
    return found


def arrived(follower: Follower) -> list[str]:
    return sorted(json.loads(value or b"{}")["body"] for value in follower.run())


def test_each_table_is_a_partition_with_a_topic(shop: Shop) -> None:
    source = shop.source("orders", "pay_*", exclude=["*_old"])
    assert source.partitions([]) == [shop.part("orders"), shop.part("pay_in")]
    assert [source.topic(one) for one in source.partitions([])] == ["orders", "pay_in"]
    follower = Follower(source)
    assert arrived(follower) == ["orders 1", "orders 2", "pay_in 1", "pay_in 2"]
    shop.insert("pay_in", "pay_in 3")
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


def test_a_row_that_comes_wakes_who_waits(shop: Shop) -> None:
    source = shop.source("pay_*")
    follower = Follower(source)
    follower.run()
    seen = source.available_offsets(follower.positions)
    shop.insert("pay_in", "pay_in 3")
    began = time.monotonic()
    source.wait(seen, 30)
    assert time.monotonic() - began < 10


def test_a_table_that_is_gone_is_told_and_the_others_are_read(shop: Shop) -> None:
    follower = Follower(shop.source("pay_*"))
    follower.run()
    shop.database.run("DROP TABLE pay_old")
    shop.insert("pay_in", "pay_in 3")
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
    shop.database.run("CREATE TABLE pay_by_name (id varchar(5) PRIMARY KEY, body varchar(20))")
    source = shop.source("pay_*")
    bounds = source.available_offsets(dict.fromkeys(source.partitions([])))
    failure = bounds[shop.part("pay_by_name")].failure
    assert failure is not None
    assert "primary key" in failure.what
    assert [one.failure for place, one in bounds.items() if place != shop.part("pay_by_name")] == [None, None]


def test_the_whole_tables_in_each_run(shop: Shop) -> None:
    follower = Follower(shop.source("pay_*", bulk=True))
    assert arrived(follower) == ["pay_in 1", "pay_in 2", "pay_old 1", "pay_old 2"]
    again = Follower(shop.source("pay_*", bulk=True), follower.positions)
    assert arrived(again) == ["pay_in 1", "pay_in 2", "pay_old 1", "pay_old 2"]


def test_a_database_that_is_away_is_no_failure_of_a_table(shop: Shop) -> None:
    known: Any = dict.fromkeys(shop.source("pay_*").partitions([]))
    shop.database.break_() if isinstance(shop.database, FileCase) else setattr(shop.database, "away", True)
    with pytest.raises(Unreachable):
        shop.source("pay_*").available_offsets(known)


def test_a_pattern_may_match_nothing_yet(shop: Shop) -> None:
    source = shop.source("other_*")
    assert source.partitions([]) == []
    assert source.available_offsets({}) == {}
    assert shop.probed("other_*")["no table matches yet: one that comes is read from the next run on"]


def test_what_a_person_sees_before_a_run(shop: Shop) -> None:
    shop.database.run("CREATE VIEW pay_seen AS SELECT * FROM pay_in")
    said = shop.probed("pay_*", "gone")
    assert said[f"table {shop.name('pay_in')} is there, its rows are numbered by id"]
    assert said[f"left out, no table but a view: {shop.name('pay_seen')}"]
    assert [what for what, ok in said.items() if not ok and f"table {shop.name('gone')}: There is no" in what]
    assert sorted(shop.peeked("pay_*")) == ["pay_in 2", "pay_old 2"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"table": "orders", "tables": ["pay_in"]}, "name one table as table, or several as tables, or write"),
        ({}, "name one table as table, or several as tables, or write a query"),
        ({"table": "orders", "exclude": ["a"]}, "exclude goes with tables"),
        ({"tables": ["main.orders"]}, "a table of SQLite has no schema"),
        ({"tables": ["o*"], "exclude": ["main.orders"]}, "a table of SQLite has no schema"),
        ({"url": URL, "settle_s": 1, "tables": ["orders"]}, "write SCHEMA.orders"),
    ],
)
def test_tables_are_named_in_one_way(of_file: Shop, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SqlSourceOptions.model_validate({**of_file.options, **more})


def test_no_table_of_a_file_comes_twice_under_two_spellings(of_file: Shop) -> None:
    """Capitals make no difference to SQLite: those that a document writes, nor those of a table that is renamed."""
    of_file.make("Émile")
    of_file.make("émile")
    follower = Follower(of_file.source("ORDERS", "Ord*", "orders", "?mile"))
    assert arrived(follower) == ["orders 1", "orders 2", "Émile 1", "Émile 2", "émile 1", "émile 2"]
    assert [one.key for one in follower.positions] == ["orders", "Émile", "émile"]
    of_file.database.run("ALTER TABLE orders RENAME TO o", "ALTER TABLE o RENAME TO Orders")
    of_file.insert("orders", "orders 3")
    source = of_file.source("ORDERS", "Ord*", "orders", "?mile")
    positions = {one: follower.positions.get(one) for one in source.partitions([*follower.positions])}
    assert arrived(Follower(source, positions)) == ["orders 3"]


@pytest.mark.server
def test_a_table_of_a_server_goes_by_the_name_that_is_listed(of_server: ShopOfServer) -> None:
    """Some servers find it under others, too."""
    of_server.database.run("CREATE TABLE elsewhere (id int)")
    [seen] = of_server.source("Orders").available_offsets({of_server.part("Orders"): None}).values()
    assert seen.failure is not None
    assert "There is no such table" in seen.failure.what


def test_what_sqlite_keeps_for_itself_is_left_out(of_file: Shop) -> None:
    """Also the tables of a search, which are no tables of people, and what cannot be named."""
    of_file.database.run("CREATE VIRTUAL TABLE pay_text USING fts5(body)", 'CREATE TABLE "pay.in" (id INTEGER)')
    of_file.make("pay_text_more")
    of_file.make("waybill_pay")
    named = [one.key for one in of_file.source("*").partitions([])]
    assert named == ["orders", "pay_in", "pay_old", "pay_text_more"]
    said = of_file.probed("*")
    assert said["left out, a virtual table: pay_text"]
    assert said["left out, a name with a point cannot be written in a document: pay.in"]


@pytest.mark.server
def test_the_delay_of_a_server_is_waited_for_once(of_server: ShopOfServer) -> None:
    """However many tables there are: the last one is read in the same run."""
    tables = [f"many_{number:02}" for number in range(12)]
    for table in tables:
        of_server.make(table)
    source = of_server.source("many_*", settle_s=1)
    began = time.monotonic()
    bounds = source.available_offsets(dict.fromkeys(source.partitions([])))
    assert [one.end for one in bounds.values()] == [3] * len(tables)
    assert 1 <= time.monotonic() - began < len(tables)
