"""Queries of either database for the tests of what reads them: orders, and the items of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Position
from connect_core.systems.mysql.source import rows_of as mysql_rows
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_peeking import newest_rows as newest_of_mysql
from connect_core.systems.mysql.source_probing import probe_source
from connect_core.systems.postgresql.source import rows_of as postgres_rows
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_peeking import newest_rows
from connect_core.systems.postgresql.source_probing import probe
from connect_core.systems.tables.reading import TableRows
from tests import mariadb, postgres_tables

Database = mariadb.Database | postgres_tables.Database
QUERY = Partition("query")
JOIN = "SELECT i.id, o.customer, i.price FROM items i JOIN orders o ON o.id = i.of_order"
TIMED = "SELECT i.id, o.customer, GREATEST(i.at, o.at) AS at FROM items i JOIN orders o ON o.id = i.of_order"


class Shop:
    """Statements are the same in both databases, but for what the constants say."""

    key, moment, now = "id bigserial PRIMARY KEY", "timestamptz NOT NULL DEFAULT now()", "now()"
    rows_of: Any = staticmethod(postgres_rows)
    options_of: Any = PostgresSourceOptions
    probe_of: Any = staticmethod(probe)
    newest_of: Any = staticmethod(newest_rows)

    def __init__(self, database: Database) -> None:
        self.database = database
        database.run(
            f"CREATE TABLE orders ({self.key}, customer varchar(20), at {self.moment})",
            f"CREATE TABLE items ({self.key}, of_order bigint, price int, at {self.moment})",
        )

    def given(self, query: str = JOIN, **more: Any) -> dict[str, Any]:
        usual = {"query": query, "incrementing": "id", "every_s": 0.02, "open_transactions_s": 0.2}
        return {**self.database.options, **usual, **more}

    def source(self, query: str = JOIN, **more: Any) -> TableRows[Any]:
        found: TableRows[Any] = self.rows_of(self.options_of.model_validate(self.given(query, **more)))
        return found

    def bounds(self, at: Position | None = None, query: str = JOIN, **more: Any) -> Bounds:
        return self.source(query, **more).available_offsets({QUERY: at})[QUERY]

    def probed(self, query: str = JOIN, **more: Any) -> dict[str, bool]:
        return {one.what: one.ok for one in self.probe_of(self.given(query, **more))}

    def peeked(self, last: int, query: str = JOIN, **more: Any) -> list[Any]:
        found = self.newest_of(self.options_of.model_validate(self.given(query, **more)), last)
        return [json.loads(value) for value in found.column("value").to_pylist()]

    @contextmanager
    def session(self) -> Iterator[Any]:
        """Another program's, within a transaction."""
        with closing(self.database.connected()) as connection, connection.cursor() as writing:
            writing.execute("BEGIN")
            yield writing

    def sell(self, customer: str, *prices: int) -> None:
        """An order and its items, in one transaction."""
        with self.session() as writing:
            self.order(writing, customer)
            for price in prices:
                self.item(writing, price)
            writing.execute("COMMIT")

    def order(self, writing: Any, customer: str) -> None:
        writing.execute(f"INSERT INTO orders (customer, at) VALUES ('{customer}', {self.now})")

    def item(self, writing: Any, price: int) -> None:
        """Of the newest order that the session sees."""
        writing.execute("SELECT MAX(id) FROM orders")
        [order] = writing.fetchone()
        writing.execute(f"INSERT INTO items (of_order, price, at) VALUES ({order}, {price}, {self.now})")


class ShopOfMysql(Shop):
    key, now = "id bigint AUTO_INCREMENT PRIMARY KEY", "NOW(6)"
    moment = "timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"
    rows_of: Any = staticmethod(mysql_rows)
    options_of: Any = MysqlSourceOptions
    probe_of: Any = staticmethod(probe_source)
    newest_of: Any = staticmethod(newest_of_mysql)


def prices(values: list[bytes | None]) -> list[int]:
    return [json.loads(value or b"{}")["price"] for value in values]
