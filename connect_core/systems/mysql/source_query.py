"""What the server says of a query that is read: whether it takes it, which columns its result has, and which tables it
reads. Nothing but the server reads the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.mysql.catalog import read_table
from connect_core.systems.mysql.failures import is_forbidden, meaning, number_of
from connect_core.systems.mysql.fitting import check_engine
from connect_core.systems.mysql.metadata_locks import Place, tables_of_transaction
from connect_core.systems.mysql.readable import TEXT_OR_BYTES, RowReader
from connect_core.systems.mysql.source_catalog import WHOLE, MysqlSourceTable, check_server
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.tables.queries import (
    PARTITION,
    missing_column,
    no_moment,
    not_allowed,
    not_computed,
    not_taken,
    not_whole,
    origin_of,
    relation,
    unfit_column,
)

_WORDS = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.BIT: "bit",
    FIELD_TYPE.DECIMAL: "decimal",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp",
    FIELD_TYPE.JSON: "json",
    **dict.fromkeys(
        (
            FIELD_TYPE.NULL,
            FIELD_TYPE.VARCHAR,
            FIELD_TYPE.VAR_STRING,
            FIELD_TYPE.STRING,
            FIELD_TYPE.ENUM,
            FIELD_TYPE.SET,
            FIELD_TYPE.TINY_BLOB,
            FIELD_TYPE.BLOB,
            FIELD_TYPE.MEDIUM_BLOB,
            FIELD_TYPE.LONG_BLOB,
        ),
        TEXT_OR_BYTES,
    ),
}
_OF_TEXT = (
    *(1052, 1054, 1055, 1056, 1060, 1064, 1065, 1066, 1109, 1111, 1140, 1221, 1222, 1235, 1241, 1247, 1248, 1250),
    *(1267, 1270, 1271, 1295, 1305, 1318, 1327, 1582, 1583, 1584, 1630, 1792),
)
"""What the server finds in the text: syntax, names, functions, collations; and that it would write (1792)."""
_VIEW = "VIEW"


class _Column(NamedTuple):
    name: str
    word: str


@contextmanager
def query_understood(where: str) -> Iterator[None]:
    """Raises what driver and worker know instead of what the driver of the database raises. What is wrong with the text
    is the document's, and what is wrong with a row the data's."""
    try:
        yield
    except pymysql.Error as error:
        raise _meaning(error, where) from None


def _meaning(error: pymysql.Error, where: str) -> WaybillError:
    number, said = number_of(error), " ".join(str(error.args[-1]).split())
    if number in _OF_TEXT:
        return not_taken(said, where)
    if is_forbidden(error):
        return not_allowed(said, "GRANT SELECT on it, EXECUTE on a function", where)
    known = meaning(error, where)
    return not_computed(known.kind, where) if isinstance(known, RowsRefused) else known


@contextmanager
def query_as_it_is(asking: Cursor, options: MysqlSourceOptions) -> Iterator[MysqlSourceTable]:
    """What the query reads is neither dropped nor changed until this ends: whoever has looked into a table holds a
    metadata lock."""
    asking.execute("PREPARE waybill_query FROM %s", (options.query,))
    asking.execute("DEALLOCATE PREPARE waybill_query")
    asking.execute("START TRANSACTION READ ONLY")
    yield _read(asking, options, f"{options.address}/{PARTITION}")
    asking.execute("COMMIT")


def _read(asking: Cursor, options: MysqlSourceOptions, where: str) -> MysqlSourceTable:
    is_mariadb = check_server(asking, where, order_matters=not options.bulk)
    source, ids, time = relation(options.query), options.incrementing or "", options.timestamp or ""
    asking.execute(f"SELECT * FROM {source} LIMIT 0")
    columns = [_column(one, where) for one in asking.description or ()]
    _check_columns({column.name: column.word for column in columns}, ids, time, where)
    places = () if options.bulk else _places(asking, options, where)
    origin = origin_of(f"{options.query}/{ids}/{time}", options.database)
    rows = RowReader(columns, (ids,), frozenset())
    return MysqlSourceTable(source, places, origin, ids, False, rows, is_mariadb, time, is_query=True)


def _column(described: tuple[Any, ...], where: str) -> _Column:
    name, kind, *_ = described
    if kind not in _WORDS:
        raise unfit_column(name, f"of a type that the server calls {kind}", where)
    return _Column(name, _WORDS[kind])


def _check_columns(words: dict[str, str], ids: str, time: str, where: str) -> None:
    if ids not in words:
        raise missing_column(ids, "incrementing", where)
    if words[ids] not in WHOLE:
        raise not_whole(ids, words[ids], f"CAST({ids} AS SIGNED)", where)
    if time and time not in words:
        raise missing_column(time, "timestamp", where)
    if time and words[time] not in ("timestamp", "datetime"):
        raise no_moment(time, words[time], "timestamp or datetime", where)


def _places(asking: Cursor, options: MysqlSourceOptions, where: str) -> tuple[Place, ...]:
    """The tables that the query reads. Raises ConfigError where the writers of one of them are not seen."""
    found = tables_of_transaction(asking, where)
    for place in found:
        named = f"{options.host}:{options.port}/{'.'.join(place)}"
        table = read_table(asking, place)
        if table is None:
            words = f"The query reads table {'.'.join(place)}, of which {options.user} sees nothing"
            raise ConfigError(words, where=where, next_step="GRANT SELECT on it, so that its engine is known")
        if table.kind != _VIEW:
            check_engine(table, named)
    if not found:
        step = "Read a table, or write bulk: true, and each run reads all rows"
        raise ConfigError("The query reads no table whose writers the server shows", where=where, next_step=step)
    return tuple(found)
