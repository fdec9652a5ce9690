"""A table of MySQL in the suite of sinks that write rows and a marker in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connect_core.errors import Retriable
from connect_core.sdk.batches import ROW
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing import driving
from connect_core.sdk.testing.kits import TransactionContract
from connect_core.sdk.testing.sinks import SimpleCase
from connect_core.systems import sink
from connect_core.systems.mysql.failures import changing
from connect_core.work import Side
from tests.contract.systems.rows import of_rows
from tests.mariadb import Database, MariaDB

pytestmark = pytest.mark.server


class MysqlCase(SimpleCase):
    refused = b"refused"

    def __init__(self, database: Database) -> None:
        self._database = database
        columns = "number bigint AUTO_INCREMENT PRIMARY KEY, k longtext, v longblob CHECK (v <> 'refused')"
        database.run(f"CREATE TABLE t ({columns})")

    def sink(self) -> Sink:
        fields = {"k": "text", "v": "bytes"}
        given = self._database.sink("t", lock_timeout_s=2, row_fields=fields)
        made: Any = sink(Side("mysql", given["mysql"]))
        made.connect = of_rows(made.connect, "k", "v")
        return made  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        return [value for (value,) in self._database.run("SELECT v FROM t ORDER BY number")[behind:]]

    def break_(self) -> None:
        self._database.run("RENAME TABLE t TO elsewhere")


@pytest.mark.parametrize(
    "altered", ["MODIFY value decimal(10,0)", "ENGINE = MyISAM", "ADD COLUMN more varchar(9) NOT NULL DEFAULT ''"]
)
@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_table_that_was_altered_since_it_was_looked_at_is_not_written(
    mariadb: MariaDB, altered: str, mode: str
) -> None:
    """A column of another type rounds."""
    database = Database(mariadb)
    database.run("CREATE TABLE prices (id bigint PRIMARY KEY, value decimal(10,2))")
    fields = {"id": "int64", "value": "decimal(10,2)"}
    columns = [pa.array([1]), pa.array([Decimal("1.00")], pa.decimal128(10, 2))]
    records = driving.records([b"x"]).append_column(ROW, pa.StructArray.from_arrays(columns, [*fields]))
    made: Any = sink(Side("mysql", database.sink("prices", mode=mode, row_fields=fields)["mysql"]))
    made.prepare()
    with made.connect() as connection:
        connection.begin("a")
        connection.write(records)
        connection.rollback()
        database.run(f"ALTER TABLE prices {altered}")
        connection.begin("a")
        with pytest.raises(Retriable, match=r"altered (while it was written|meanwhile)"):
            connection.write(records)
        connection.rollback()
    if "MyISAM" not in altered:
        assert database.run("SELECT * FROM prices") == []


class TestTheTable(TransactionContract):
    steps, deaths = 12, 4

    @pytest.fixture
    def target(self, mariadb: MariaDB) -> MysqlCase:
        return MysqlCase(Database(mariadb))


@pytest.mark.parametrize("told", [1024, 0])
def test_a_value_that_the_server_changes_is_refused_whether_it_tells_of_it_or_not(mysql: MariaDB, told: int) -> None:
    database = Database(mysql)
    database.run("CREATE TABLE prices (value decimal(10,2))")
    with closing(database.connected()) as session, session.cursor() as writing:
        writing.execute(f"SET SESSION max_error_count = {told}")
        writing.execute("INSERT INTO prices VALUES ('1.50')")
        assert changing(writing) is None
        writing.execute("INSERT INTO prices VALUES ('1.505')")
        refused = changing(writing)
    assert refused is not None
    assert refused.kind == "WrongValue"
