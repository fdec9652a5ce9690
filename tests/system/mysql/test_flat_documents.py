"""Flat documents of JDBC connectors: from a table to a topic, and from there to another table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mariadb import Database, MariaDB
from tests.site import Site

pytestmark = pytest.mark.server

CONVERTER = """value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
"""


def test_rows_go_through_a_topic_to_another_table(sqlite_site: Site, mariadb: MariaDB) -> None:
    database, site = Database(mariadb), sqlite_site
    database.run("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")
    database.run("INSERT INTO orders VALUES (1, 'a'), (2, 'Zoë')")
    connections = site.home / "conf" / "connections"
    connections.mkdir(parents=True, exist_ok=True)
    (connections / "main.yaml").write_text(json.dumps({"rocketmq": {"name_servers": site.name_servers}}))
    url = f"jdbc:mariadb://127.0.0.1:{mariadb.port}/{database.name}"
    written(
        site.folder / "out.properties",
        f"connector.class=org.apache.rocketmq.connect.jdbc.source.JdbcSourceConnector\nconnection.url={url}\n"
        "connection.user=tester\nmode=incrementing\nincrementing.column.name=id\ntable.whitelist=orders\n"
        f"connect.topicname={site.topic}\n",
    )
    written(
        site.folder / "into.properties",
        f"connector.class=io.confluent.connect.jdbc.JdbcSinkConnector\nconnection.url={url}\n"
        "connection.user=tester\ninsert.mode=upsert\npk.mode=record_value\npk.fields=id\nauto.create=true\n"
        f"table.name.format=copies\nconnect.topicnames={site.topic}\nconsume.from.where=CONSUME_FROM_FIRST_OFFSET\n"
        'waybill.fields={"id": "int64", "note": "text"}\n',
    )
    for name in ("out", "into"):
        site.waybill("apply", f"{name}.properties")
        site.waybill("run", name)
    assert database.run("SELECT id, note FROM copies ORDER BY id") == [(1, "a"), (2, "Zoë")]


def written(path: Path, text: str) -> None:
    path.write_text(text + CONVERTER)
