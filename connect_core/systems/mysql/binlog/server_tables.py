"""What the server says of its tables. Who has no right on a table is told nothing of it; `SHOW VIEW` is enough, and
gives no row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pymysql
from pymysql.cursors import Cursor

from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.statements import changes_by_foreign_key
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.catalog import quoted
from connect_core.systems.mysql.failures import number_of

_ORDINARY = "BASE TABLE"
_WITHOUT_ROWS = ("VIEW", "SYSTEM VIEW")
_GONE = (1146, 1142)
"""The table was dropped meanwhile, or may not be seen."""


class SeenTables(NamedTuple):
    """Those that a document wants, with what each is."""

    kinds: dict[TableName, str]

    @property
    def unfit(self) -> dict[TableName, str]:
        """Those that are no ordinary tables."""
        return {name: kind for name, kind in self.kinds.items() if kind != _ORDINARY}

    @property
    def in_the_log(self) -> list[TableName]:
        """Of these what has rows in the log that are not rows of it, such as old versions, and steps of a sequence."""
        return sorted(name for name, kind in self.unfit.items() if kind not in _WITHOUT_ROWS)


def has_transactions(asking: Cursor, table: TableName) -> bool | None:
    """Whether its engine takes back what is rolled back; None where the table is not seen."""
    asking.execute(
        "SELECT e.TRANSACTIONS FROM information_schema.TABLES t JOIN information_schema.ENGINES e USING (ENGINE)"
        " WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s",
        table,
    )
    found = asking.fetchone()
    return found[0] == "YES" if found else None


def has_small_names(asking: Cursor) -> bool:
    """Whether the server keeps names of tables in small letters: statements in its log have them as they were typed."""
    asking.execute("SELECT @@GLOBAL.lower_case_table_names")
    return (asking.fetchone() or (0,))[0] == 1


def seen_tables(asking: Cursor, options: MysqlChangesOptions) -> SeenTables:
    asking.execute("SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES")
    found = {TableName(*row[:2]): str(row[2]) for row in asking.fetchall()}
    return SeenTables({name: kind for name, kind in found.items() if options.wants(name)})


def changed_by_others(asking: Cursor, seen: SeenTables) -> Iterator[TableName]:
    """Tables whose rows the server changes with those of others, and logs nothing of it. The views of
    information_schema show foreign keys only to who may write."""
    for name, kind in sorted(seen.kinds.items()):
        if kind == _ORDINARY and changes_by_foreign_key(_made_by(asking, name)):
            yield name


def _made_by(asking: Cursor, name: TableName) -> str:
    try:
        asking.execute(f"SHOW CREATE TABLE {quoted(name)}")
    except pymysql.Error as error:
        if number_of(error) not in _GONE:
            raise
        return ""
    return str((asking.fetchone() or ("", ""))[1])
