"""JSON of MySQL in its log, which has it in binary, is what the server shows of it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import Position
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.source import MysqlChangesSource
from tests.mariadb import Database, MariaDB

pytestmark = pytest.mark.server

TEXTS = some.text(some.characters(exclude_categories=("Cs",)), max_size=20)
SCALARS = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(-(2**63), 2**64 - 1),
    some.integers(-(2**17), 2**17),
    some.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    some.text("abc", min_size=120, max_size=400),
)
DOCUMENTS = some.recursive(
    SCALARS,
    lambda within: some.lists(within, max_size=6) | some.dictionaries(TEXTS, within, max_size=6),
    max_leaves=25,
)
DEEP = "[" * 99 + "1" + "]" * 99
LARGE = [
    ["x" * 100_000],
    {f"{one:04}": one for one in range(9_000)},
    [*range(-40_000, 40_000, 7)],
    [[2**40 + one for one in range(5_000)], {"a": "é" * 40_000, "b": [True, None, 1.5]}],
    {"k" * 65_535: "v"},
]
"""What has places of four bytes."""
OF_COLUMNS = (
    "CAST('2026-01-31' AS date)",
    "CAST('0000-00-00' AS date)",
    "CAST('-838:59:59' AS time)",
    "CAST('-00:00:00.000001' AS time(6))",
    "CAST('13:45:10.25' AS time(2))",
    "CAST('9999-12-31 23:59:59.999999' AS datetime(6))",
    "CAST('1000-01-01 00:00:00' AS datetime)",
    "TIMESTAMP'2026-01-31 10:00:00.25'",
    "CAST(1.50 AS decimal(10,3))",
    "CAST(-0.05 AS decimal(30,30))",
    "CAST(-12345678901234567890.123456789012 AS decimal(65,20))",
    "CAST(0 AS decimal(5,2))",
    "CAST(-7 AS decimal(18,0))",
    "x'00ff'",
    "b'101'",
    "REPEAT(x'00ff7f', 100)",
    "REPEAT(x'41', 57)",
    "'7'",
    "CAST('' AS binary(0))",
    "ST_GeomFromText('POINT(1 2)')",
    "CAST(1.1 AS float)",
    "18446744073709551615",
    "CAST(2026 AS year)",
)
"""Values of other types, as SQL writes them."""


class Documents:
    """A table of them, read from where the log ends."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.run("CREATE TABLE documents (id bigint AUTO_INCREMENT PRIMARY KEY, body json)")
        self.partition = Partition(database.name)
        usual = {"tables": ["documents"], "every_s": 0.02, "snapshot": "never", "schemas": False}
        self.options = {**database.options, **usual, "uid": database.name}
        self.at: Position | None = None
        self.changes()

    def changes(self) -> list[dict[str, Any]]:
        source = MysqlChangesSource(MysqlChangesOptions.model_validate(self.options))
        [seen] = source.available_offsets({self.partition: self.at}).values()
        assert seen.failure is None, seen.failure
        wanted = range_of(self.partition, seen)
        batches = [*source.read(wanted, limit())] if seen.end > seen.begin else []
        assert not [reject for batch in batches for reject in batch.rejects]
        self.at = Position(0, seen.end, source.evidence(wanted, seen.end))
        return [json.loads(value) for batch in batches for value in batch.records.column("value").to_pylist()]

    def check(self, *values: str) -> None:
        """Of these, as SQL has them."""
        for one in values:
            self.database.run("SET sql_mode = ''", f"INSERT INTO documents (body) VALUES ({one})")
        self.check_rows()

    def check_rows(self) -> None:
        came = {change["after"]["id"]: change["after"]["body"] for change in self.changes()}
        assert came
        first = min(came)
        assert dict(self.database.run(f"SELECT id, body FROM documents WHERE id >= {first}")) == came


@pytest.fixture
def documents(mysql: MariaDB) -> Documents:
    return Documents(Database(mysql))


@pytest.fixture(scope="module")
def many_documents(mysql: MariaDB) -> Documents:
    return Documents(Database(mysql))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(some.lists(DOCUMENTS, min_size=1, max_size=40))
def test_any_document_is_what_the_server_shows(many_documents: Documents, bodies: list[Any]) -> None:
    texts = [(json.dumps(one, ensure_ascii=False),) for one in bodies]
    with closing(many_documents.database.connected()) as connection, connection.cursor() as writing:
        writing.executemany("INSERT INTO documents (body) VALUES (%s)", texts)
    many_documents.check_rows()


def test_large_documents(documents: Documents) -> None:
    with closing(documents.database.connected()) as connection, connection.cursor() as writing:
        for one in (*map(json.dumps, LARGE), DEEP):
            writing.execute("INSERT INTO documents (body) VALUES (%s)", (one,))
    documents.check_rows()


def test_values_of_other_types(documents: Documents) -> None:
    documents.check(*(f"CAST({one} AS json)" for one in OF_COLUMNS), f"JSON_ARRAY({', '.join(OF_COLUMNS)})")


def test_a_document_is_both_before_and_after(documents: Documents) -> None:
    """Also where the server changed a part of it in its place."""
    documents.check("""'{"a": [1, 2], "b": "long enough to be a part"}'""", "NULL")
    documents.database.run("UPDATE documents SET body = JSON_SET(body, '$.b', 'short', '$.a[1]', 70000) WHERE id = 1")
    [change] = documents.changes()
    assert change["before"]["body"] == '{"a": [1, 2], "b": "long enough to be a part"}'
    assert change["after"]["body"] == '{"a": [1, 70000], "b": "short"}'


def test_a_value_that_was_required_and_not_given_is_null(documents: Documents) -> None:
    documents.database.run("ALTER TABLE documents MODIFY body json NOT NULL")
    documents.database.run("INSERT IGNORE INTO documents (body) SELECT NULL")
    documents.check_rows()
