"""Tables that SQLAlchemy reaches in the suite of sinks that write rows and a marker in one transaction."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from connect_core.errors import ConfigError, Retriable
from connect_core.sdk.batches import ROW
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing import driving
from connect_core.sdk.testing.kits import TransactionContract
from connect_core.sdk.testing.sinks import SimpleCase
from connect_core.systems import sink
from connect_core.systems.sql.catalog import SqlColumn, SqlTable
from connect_core.systems.sql.connecting import connected
from connect_core.systems.sql.options import SqlOptions
from connect_core.systems.sql.table_writing import SqlWriter
from connect_core.work import Side
from tests.contract.systems.rows import of_rows
from tests.elsewhere import URL, Elsewhere

FIELDS = {"k": "text", "v": "bytes"}


class FileCase(SimpleCase):
    refused = b"refused"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "shop.db"
        check = "CHECK (v <> CAST('refused' AS BLOB))"
        self.run(f"CREATE TABLE t (number INTEGER PRIMARY KEY AUTOINCREMENT, k TEXT, v BLOB {check})")

    def run(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(statement).fetchall()

    def sink(self) -> Sink:
        given = {"url": f"sqlite:///{self.path}", "table": "t", "lock_timeout_s": 0.3}
        made: Any = sink(Side("sql", given | {"row_fields": FIELDS}))
        made.connect = of_rows(made.connect, "k", "v")
        return made  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        return [value for (value,) in self.run("SELECT v FROM t ORDER BY number")[behind:]]

    def break_(self) -> None:
        self.run("ALTER TABLE t RENAME TO elsewhere")


class ServerCase(SimpleCase):
    refused = b"refused"

    def __init__(self, database: Elsewhere) -> None:
        self._database = database
        database.run("CREATE TABLE t (number bigserial PRIMARY KEY, k text, v bytea CHECK (v <> 'refused'))")

    def sink(self) -> Sink:
        made: Any = sink(Side("sql", {"url": URL, "table": "t", "row_fields": FIELDS}))
        made.connect = of_rows(made.connect, "k", "v")
        return made  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        rows = self._database.run("SELECT v FROM t ORDER BY number")[behind:]
        return [None if value is None else bytes(value) for (value,) in rows]

    def break_(self) -> None:
        self._database.run("ALTER TABLE t RENAME TO elsewhere")


class TestTheTable(TransactionContract):
    steps, deaths = 40, 12

    @pytest.fixture
    def target(self, tmp_path: Path) -> FileCase:
        return FileCase(tmp_path)


@pytest.mark.server
class TestATableOfAServer(TransactionContract):
    steps, deaths, calls = 6, 2, 3

    @pytest.fixture
    def target(self, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> ServerCase:
        return ServerCase(Elsewhere(postgres_url, monkeypatch))


@pytest.mark.parametrize("case", ["file", pytest.param("server", marks=pytest.mark.server)])
def test_a_transaction_waits_for_another_one_with_its_marker(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Also where there is no marker yet: none that could be locked."""
    if case == "server":
        target: Any = ServerCase(Elsewhere(request.getfixturevalue("postgres_url"), monkeypatch))
    else:
        target = FileCase(tmp_path)
    made: Any = target.sink()
    made.prepare()
    with made.connect() as first, made.connect() as second:
        for before, after in ((None, "one"), ("one", "two")):
            assert first.begin("a") == before
            found = list[str | None]()
            waiting = threading.Thread(target=lambda into=found: into.append(second.begin("a")))
            waiting.start()
            waiting.join(0.15)
            assert waiting.is_alive()
            first.commit("a", after)
            waiting.join(10)
            assert found == [after]
            second.rollback()


def test_what_is_committed_is_on_the_disk(tmp_path: Path) -> None:
    """No test can cut the power: what SQLite is told is looked at."""
    options = SqlOptions(url=f"sqlite:///{FileCase(tmp_path).path}")
    with connected(options, "here", "writes") as database:
        said = [database.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "foreign_keys")]
    assert said == [3, 1]  # EXTRA: the folder, too, once the rollback journal is removed


def rows_of(fields: dict[str, pa.DataType], *rows: tuple[Any, ...]) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], of) for place, of in enumerate(fields.values())]
    return driving.records([b"x"] * len(rows)).append_column(ROW, pa.StructArray.from_arrays(columns, [*fields]))


def write(made: Any, records: pa.RecordBatch) -> None:
    with made.connect() as connection:
        connection.begin("a")
        connection.write(records)
        connection.commit("a", "marker")


def test_a_table_that_was_altered_since_it_was_looked_at_is_not_written(tmp_path: Path) -> None:
    """Another type has another affinity, which rounds."""
    case = FileCase(tmp_path)
    case.run("CREATE TABLE prices (value TEXT)")
    given = {"url": f"sqlite:///{case.path}", "table": "prices", "row_fields": {"value": "decimal(30,2)"}}
    made: Any = sink(Side("sql", given))
    made.prepare()
    records = rows_of({"value": pa.decimal128(30, 2)}, (Decimal("1234567890123456789.10"),))
    with made.connect() as connection:
        case.run("DROP TABLE prices")
        case.run("CREATE TABLE prices (value NUMERIC)")
        connection.begin("a")
        with pytest.raises(Retriable, match="altered while it was written"):
            connection.write(records)
        connection.rollback()
    assert case.run("SELECT * FROM prices") == []


ALL = {
    "id": ("int64", pa.int64(), 1),
    "small": ("int16", pa.int16(), -5),
    "name": ("text", pa.string(), "Zoë 'q' :p0 %s"),
    "price": ("decimal(10,2)", pa.decimal128(10, 2), Decimal("12345678.90")),
    "body": ("bytes", pa.binary(), b"\x00\xff"),
    "born": ("date", pa.date32(), date(2026, 1, 2)),
    "f": ("float64", pa.float64(), 0.1),
    "ok": ("bool", pa.bool_(), True),
}


@pytest.mark.server
def test_a_table_that_is_made_on_a_server_keeps_each_field(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Elsewhere(postgres_url, monkeypatch)
    fields = {name: of for name, (of, _, _) in ALL.items()}
    given = {"url": URL, "table": "t", "create_table": True, "mode": "upsert", "key": ["id"], "row_fields": fields}
    made: Any = sink(Side("sql", given))
    made.prepare()
    types = {name: of for name, (_, of, _) in ALL.items()}
    first = tuple(value for _, _, value in ALL.values())
    write(made, rows_of(types, first, (2, *[None] * (len(ALL) - 1))))
    write(made, rows_of(types, (2, *first[1:]), (3, *first[1:]), (3, -9, *first[2:])))
    found = database.run(f"SELECT {', '.join(ALL)} FROM t ORDER BY id")
    kept = [tuple(bytes(one) if isinstance(one, memoryview) else one for one in row) for row in found]
    assert kept == [first, (2, *first[1:]), (3, -9, *first[2:])]


def test_a_key_in_another_spelling_is_refused_on_a_server() -> None:
    """Whose collation takes both for one: the row of the other one would be written over."""
    columns = [SqlColumn("name", sa.String(9), "VARCHAR", True, False, False, of_file=False)]
    table = SqlTable("t", tuple(columns), ("name",), frozenset({frozenset({"name"})}), "", counts=False)
    with sa.create_engine("sqlite://").connect() as database:
        database.exec_driver_sql("CREATE TABLE t (name VARCHAR(9) COLLATE NOCASE PRIMARY KEY)")
        writer = SqlWriter(table, columns, ("name",))
        writer.write(database, rows_of({"name": pa.string()}, ("a",)))
        with pytest.raises(RowsRefused) as refused:
            writer.write(database, rows_of({"name": pa.string()}, ("A",)))
        assert refused.value.kind == "KeyTaken"
        writer.write(database, rows_of({"name": pa.string()}, ("a",)))


@pytest.mark.server
@pytest.mark.parametrize(
    ("column", "field"),
    [
        ("char(5)", "text"),
        ("timestamp", "datetime(us)"),
        ("real", "float32"),
        ("integer", "int64"),
        ("numeric", "decimal(10,2)"),
        ("numeric(9,2)", "decimal(10,2)"),
        ("json", {"a": "text"}),
    ],
)
def test_a_column_of_a_server_that_may_not_keep_a_field_is_refused(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, column: str, field: Any
) -> None:
    database = Elsewhere(postgres_url, monkeypatch)
    database.run(f"CREATE TABLE t (c {column})")
    made: Any = sink(Side("sql", {"url": URL, "table": "t", "row_fields": {"c": field}}))
    with pytest.raises(ConfigError, match="exactly"):
        made.prepare()
