"""Queries over two tables as a source, while processes are killed and others write both tables in long transactions:
what arrives is compared with what the database says, by SQL."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest

from tests import mariadb, postgres_tables
from tests.faults.kit import attempts
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.query_cases import Database, Shop, ShopOfMysql
from tests.side_by_side import side_by_side
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
WRITERS = 6
SOLD = "SELECT i.id, i.of_order, o.customer FROM items i JOIN orders o ON o.id = i.of_order"
CHANGED = (
    "SELECT i.id, i.price AS v, o.version AS w, GREATEST(i.at, o.at) AS at"
    " FROM items i JOIN orders o ON o.id = i.of_order"
)


@pytest.fixture(params=["postgresql", "mysql"])
def shop(request: pytest.FixtureRequest) -> Shop:
    if request.param == "mysql":
        return ShopOfMysql(mariadb.Database(request.getfixturevalue("mariadb")))
    return Shop(postgres_tables.Database(request.getfixturevalue("postgres_url")))


def apply(site: Site, shop: Shop, query: str, **more: Any) -> None:
    site.settings.update(SHORT_LEASES)
    options = {"query": query, "incrementing": "id", "every_s": 0.05, "open_transactions_s": 2, **more}
    [(system, given)] = shop.database.source("", **options).items()
    del given["table"]
    sink = {"file": {"path": "out.jsonl"}}
    site.apply("copy", {"source": {system: given}, "sink": sink, "limits": {"range_records": 150}})


def arrived(site: Site) -> list[Any]:
    return [json.loads(line) for line in (site.folder / "out.jsonl").read_text().splitlines()]


def check_receipts(site: Site, row: FaultRow, lines: list[Any]) -> None:
    receipts = site.json("receipts", "copy", "--last", "1000")["receipts"]
    row.duplicates = sum(one["possible_duplicates"] for one in receipts)
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == len(lines)
    assert row.duplicates == 0


def pause(chosen: random.Random) -> None:
    """Mostly short, and now and then as long as a run takes."""
    time.sleep(chosen.choice([0, 0.001, 0.01, 0.03, chosen.uniform(0, 0.5)]))


@contextmanager
def session_of(database: Database) -> Iterator[Any]:
    more = {} if isinstance(database, mariadb.Database) else {"autocommit": True}
    with closing(database.connected(**more)) as connection, connection.cursor() as session:
        yield session


# ------------------------------------------------------------------------------------------------------------ new rows


def sells(shop: Shop, writer: int, seed: float, stop: threading.Event) -> None:
    """Numbers of items are drawn before their order is there, where the database lets programs draw them."""
    chosen, done = random.Random(seed), 0
    with session_of(shop.database) as session:
        while not stop.is_set():
            done += 1
            session.execute("BEGIN")
            drawn = draw(session, shop, chosen)
            pause(chosen)
            shop.order(session, f"{writer}-{done}")
            pause(chosen)
            session.execute("SELECT MAX(id) FROM orders WHERE customer = %s", (f"{writer}-{done}",))
            [order] = session.fetchone()
            for number in [*drawn, *["DEFAULT"] * chosen.randint(1, 3)]:
                session.execute(f"INSERT INTO items (id, of_order, price) VALUES ({number}, {order}, {done})")
                pause(chosen)
            end(session, shop, f"{writer}-{done}", chosen)


def draw(session: Any, shop: Shop, chosen: random.Random) -> list[str]:
    if isinstance(shop, ShopOfMysql) or chosen.random() < 0.5:
        return []
    session.execute("SELECT nextval('items_id_seq')")
    return [str(session.fetchone()[0])]


def end(session: Any, shop: Shop, name: str, chosen: random.Random) -> None:
    how = chosen.random()
    if how < 0.2:
        session.execute("ROLLBACK")
    elif how < 0.35 and not isinstance(shop, ShopOfMysql):
        session.execute(f"PREPARE TRANSACTION '{name}'")
        pause(chosen)
        session.execute(f"COMMIT PREPARED '{name}'")
    else:
        session.execute("COMMIT")


def feed(shop: Shop, count: int) -> None:
    shop.sell("first", *range(count))


def check_sold(site: Site, shop: Shop, row: FaultRow) -> None:
    lines = arrived(site)
    found = Counter(line["id"] for line in lines)
    there = Counter(number for (number,) in shop.database.run(f"SELECT id FROM ({SOLD}) q"))
    row.lost, row.repeated = sum((there - found).values()), sum((found - there).values())
    row.reordered = int([line["id"] for line in lines] != sorted(found.elements()))
    assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
    check_receipts(site, row, lines)


def test_kills_beside_programs_that_write_both_tables(
    bare_site: Site, shop: Shop, row: FaultRow, seeded: random.Random
) -> None:
    row.describe("SIGKILL at random steps, writers busy", where="query → file", database="SQLite")
    feed(shop, 300)
    apply(bare_site, shop, SOLD)
    with side_by_side(partial(sells, shop), WRITERS, seeded):
        row.strikes()
        for number in range(5):
            bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            attempts.attempt(bare_site, "copy", *(("--window", "4s") if number % 2 else ()))
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    check_sold(bare_site, shop, row)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.fault(costly=True)
def test_a_process_killed_at_a_step(
    bare_site: Site, shop: Shop, row: FaultRow, seeded: random.Random, step: str
) -> None:
    row.describe(f"SIGKILL at {step}", where="query → file", database="SQLite")
    feed(shop, 1_000)
    apply(bare_site, shop, SOLD)
    bare_site.fault(step, passes=seeded.randrange(2))
    attempts.attempt(bare_site, "copy")
    row.strikes()
    feed(shop, 100)
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    check_sold(bare_site, shop, row)


# ------------------------------------------------------------------------------------------------------- changed rows


def changes(shop: Shop, writer: int, seed: float, stop: threading.Event) -> None:
    """Of an order all its items come again. Each program has orders of its own: no two wait for each other."""
    chosen = random.Random(seed)
    own = range(1 + writer, 61, WRITERS)
    with session_of(shop.database) as session:
        while not stop.is_set():
            session.execute("BEGIN")
            pause(chosen)
            for order in sorted(chosen.sample(own, 2)):
                if chosen.random() < 0.5:
                    session.execute(f"UPDATE orders SET version = version + 1, at = {shop.now} WHERE id = {order}")
                else:
                    session.execute(f"UPDATE items SET price = price + 1, at = {shop.now} WHERE of_order = {order}")
                pause(chosen)
            session.execute(chosen.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]))


def check_changed(site: Site, shop: Shop, row: FaultRow) -> None:
    lines = arrived(site)
    seen = defaultdict[int, list[tuple[int, int]]](list)
    for line in lines:
        seen[line["id"]].append((line["v"], line["w"]))
    newest = {number: (v, w) for number, v, w in shop.database.run(f"SELECT id, v, w FROM ({CHANGED}) q")}
    row.lost = sum(seen[number][-1:] != [version] for number, version in newest.items())
    row.repeated = sum(len(one) - len(set(one)) for one in seen.values())
    row.reordered = sum(one != sorted(one, key=sum) for one in seen.values())
    assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
    assert len(lines) > len(newest)
    check_receipts(site, row, lines)


def test_each_last_version_arrives_when_either_table_was_changed(
    bare_site: Site, shop: Shop, row: FaultRow, seeded: random.Random
) -> None:
    row.describe("SIGKILL at random steps, rows changed in long transactions", where="query → file", database="SQLite")
    shop.database.run("ALTER TABLE orders ADD version int NOT NULL DEFAULT 0", "CREATE INDEX o ON items (of_order)")
    for _ in range(60):
        shop.sell("Ann", 0, 0, 0)
    apply(bare_site, shop, CHANGED, timestamp="at", delay_s=0.2)
    with side_by_side(partial(changes, shop), WRITERS, seeded):
        row.strikes()
        for number in range(5):
            bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            attempts.attempt(bare_site, "copy", *(("--window", "6s") if number % 2 else ()))
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    check_changed(bare_site, shop, row)


# ------------------------------------------------------------------------------------------------------------ all rows


@pytest.mark.fault(costly=True)
def test_each_pass_has_each_row_once(bare_site: Site, shop: Shop, row: FaultRow, seeded: random.Random) -> None:
    row.describe("SIGKILL at random steps, the whole query in each run", where="query → file", database="SQLite")
    feed(shop, 400)
    apply(bare_site, shop, SOLD, bulk=True)
    row.strikes()
    for _ in range(4):
        bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
        attempts.attempt(bare_site, "copy")
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    lines = arrived(bare_site)
    found = [lines[place : place + 400] for place in range(0, len(lines), 400)]
    wrong = [one for one in found if [line["id"] for line in one] != [*range(1, 401)]]
    row.lost = row.repeated = len(wrong)
    row.reordered = 0
    assert wrong == []
    check_receipts(bare_site, row, lines)
