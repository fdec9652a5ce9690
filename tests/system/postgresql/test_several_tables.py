"""Several tables of either database by one connector, into topics with their names."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from tests import mariadb, postgres_tables
from tests.changing_writers import Database
from tests.site import Site

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


def test_each_table_goes_to_its_topic_and_a_new_one_too(sqlite_site: Site, database: Database) -> None:
    site = sqlite_site
    for table in ("pay_in", "pay_out"):
        database.run(f"CREATE TABLE {table} (id bigint PRIMARY KEY)", f"INSERT INTO {table} VALUES (1), (2)")
    [(system, options)] = database.source("", tables=["pay_*"]).items()
    topic = f"{site.topic}-{{topic}}"
    source = {system: {name: value for name, value in options.items() if name != "table"}}
    site.apply("pay", {"source": source, "sink": {"rocketmq": {"name_servers": site.name_servers, "topic": topic}}})
    site.waybill("run", "pay")
    database.run("CREATE TABLE pay_more (id bigint PRIMARY KEY)", "INSERT INTO pay_more VALUES (7)")
    database.run("INSERT INTO pay_in VALUES (3)")
    site.waybill("run", "pay")
    for table, ids in {"pay_in": [1, 2, 3], "pay_out": [1, 2], "pay_more": [7]}.items():
        written = replace(site, topic=f"{site.topic}-{table}").messages()
        assert Counter(json.loads(value)["id"] for value in written) == Counter(ids)
    database.run("DROP TABLE pay_out", "INSERT INTO pay_in VALUES (4)")
    failed = site.waybill("run", "pay", code=3)
    assert "There is no such table" in failed
    assert len(replace(site, topic=f"{site.topic}-pay_in").messages()) == 4
