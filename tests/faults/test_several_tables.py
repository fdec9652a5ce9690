"""Several tables by one connector, while processes are killed, tables appear, and one has another name for a while:
each row is in its table's topic once, and in order."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from tests import mariadb, postgres_tables
from tests.changing_writers import Database
from tests.faults.kit import attempts
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.writers import beside
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
TABLES, ROUNDS = 3, 6
RENAMED = 0
"""The number of the table that is away in every second round."""


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


class Shop:
    """Tables `pay_N`, each of which gets rows."""

    def __init__(self, database: Database) -> None:
        self.database, self.there = database, list[str]()
        self._number = "bigint AUTO_INCREMENT" if isinstance(database, mariadb.Database) else "bigserial"

    def open(self, number: int) -> None:
        table = f"pay_{number}"
        self.database.run(f"CREATE TABLE {table} (id {self._number} PRIMARY KEY, note text)")
        self.sell(table, 60)
        self.there.append(table)

    def sell(self, table: str, count: int) -> None:
        self.database.run(f"INSERT INTO {table} (note) VALUES " + ", ".join(["('sold')"] * count))

    def sell_somewhere(self, chosen: random.Random) -> None:
        """At any table but the one that is renamed."""
        self.sell(chosen.choice(self.there[RENAMED + 1 :]), chosen.randint(1, 3))

    def ids(self, table: str) -> list[int]:
        return [number for (number,) in self.database.run(f"SELECT id FROM {table} ORDER BY id")]


def test_kills_while_tables_appear_and_one_is_renamed(
    inline_site: Site, database: Database, row: FaultRow, seeded: random.Random
) -> None:
    site, shop = inline_site, Shop(database)
    row.describe("SIGKILL at random steps, tables appear, one is renamed", where="tables → topics", database="SQLite")
    site.settings.update(SHORT_LEASES)
    for number in range(TABLES):
        shop.open(number)
    [(system, options)] = database.source("", tables=["pay_*"]).items()
    source = {system: {name: value for name, value in options.items() if name != "table"}}
    sink = {"name_servers": site.name_servers, "topic": f"{site.topic}-{{topic}}", "queues": 1}
    site.apply("pay", {"source": source, "sink": {"rocketmq": sink}, "limits": {"range_records": 40}})
    row.strikes()
    renamed = f"pay_{RENAMED}"
    chosen = random.Random(seeded.random())
    with beside(lambda: shop.sell_somewhere(chosen), 0.02):
        for number in range(ROUNDS):
            before, after = (renamed, "away") if number % 2 else ("away", renamed)
            if number:
                database.run(f"ALTER TABLE {before} RENAME TO {after}")
                shop.open(TABLES + number)
            site.fault(seeded.choice(STEPS), passes=seeded.randrange(4))
            attempts.attempt(site, "pay", *(("--window", "3s") if seeded.random() < 0.3 else ()))
    database.run(f"ALTER TABLE away RENAME TO {renamed}")
    shop.sell(renamed, 5)
    attempts.run_until_done(site, "pay")
    attempts.run_until_done(site, "pay")
    row.moves_again()
    row.lost = row.repeated = row.reordered = 0
    for table in shop.there:
        arrived = [json.loads(value)["id"] for value in replace(site, topic=f"{site.topic}-{table}").messages()]
        given, found = Counter(shop.ids(table)), Counter(arrived)
        row.lost += sum((given - found).values())
        row.repeated += sum((found - given).values())
        row.reordered += int(arrived != sorted(arrived))
    receipts = site.json("receipts", "pay", "--last", "1000")["receipts"]
    row.duplicates = sum(one["possible_duplicates"] for one in receipts)
    assert (row.lost, row.repeated, row.reordered, row.duplicates) == (0, 0, 0, 0)
