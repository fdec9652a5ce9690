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


def test_a_table_that_can_have_no_topic_holds_up_no_other(sqlite_site: Site, database: Database) -> None:
    site = sqlite_site
    quote = "`" if isinstance(database, mariadb.Database) else '"'
    odd = f"{quote}pay late{quote}"
    database.run("CREATE TABLE pay_in (id bigint PRIMARY KEY)", "INSERT INTO pay_in VALUES (1)")
    [(system, options)] = database.source("", tables=["pay*"]).items()
    source = {system: {name: value for name, value in options.items() if name != "table"}}
    sink = {"name_servers": site.name_servers, "topic": f"{site.topic}-{{topic}}"}
    site.apply("pay", {"source": source, "sink": {"rocketmq": sink}})
    site.waybill("run", "pay")
    database.run(f"CREATE TABLE {odd} (id bigint PRIMARY KEY)", f"INSERT INTO {odd} VALUES (1)")
    database.run("INSERT INTO pay_in VALUES (2)")
    told = site.waybill("run", "pay", code=2)
    assert f'"pay late" would go to "{site.topic}-pay late", which must be' in told
    pay_in = replace(site, topic=f"{site.topic}-pay_in")
    assert len(pay_in.messages()) == 2
    [aside] = site.json("lag", "pay")["connectors"][0]["aside"]
    assert aside["partition"].endswith(".pay late")
    assert '"pay late" would go to' in probed(site)
    database.run(f"DROP TABLE {odd}", "INSERT INTO pay_in VALUES (3)")
    assert "There is no such table" in site.waybill("run", "pay", code=3)
    assert len(pay_in.messages()) == 3
    database.run("CREATE TABLE pay_more (id bigint PRIMARY KEY)", "INSERT INTO pay_more VALUES (1), (2)")
    database.run("INSERT INTO pay_in VALUES (4)")
    source[system]["exclude"] = ["pay late"]
    existing = {"source": source, "sink": {"rocketmq": {**sink, "create": False}}}
    site.apply("pay", existing)
    told = site.waybill("run", "pay", code=6)
    assert f"The topic does not exist [{site.topic}-pay_more]" in told
    assert len(pay_in.messages()) == 4
    assert f"The topic does not exist [{site.topic}-pay_more]" in probed(site)


def probed(site: Site) -> str:
    with site.start("check", "pay.yaml", "--probe") as process:
        told = process.communicate()
    return "".join(filter(None, told))
