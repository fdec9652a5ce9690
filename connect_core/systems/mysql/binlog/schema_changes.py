"""Statements in the log that make, alter, rename or drop tables -> which tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from connect_core.systems.mysql.binlog.lexing import StatementWords
from connect_core.systems.mysql.binlog.log_events import Query
from connect_core.systems.mysql.binlog.table_names import TableName

CREATES, ALTERS, DROPS = "CREATE", "ALTER", "DROP"
_KINDS_OF_INDEX = ("UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE")


class TableChange(NamedTuple):
    does: str
    """As Debezium names it."""
    table: TableName


def table_changes(query: Query) -> list[TableChange]:
    """In the order of the statement; none of a temporary table, and of other statements."""
    words = StatementWords(query.text)
    if words.takes("SET") and not (words.takes("STATEMENT") and words.find("FOR")):
        return []
    first = words.take_word()
    return [*_FIRST[first](words, query.database)] if first in _FIRST else []


def _created(words: StatementWords, database: str) -> Iterator[TableChange]:
    if words.takes("OR"):
        words.takes("REPLACE")
    if words.takes("TABLE"):
        yield from _next(CREATES, words, database)
    else:
        yield from _of_index(words, database)


def _altered(words: StatementWords, database: str) -> Iterator[TableChange]:
    while words.takes("ONLINE", "OFFLINE", "IGNORE"):
        pass
    if not words.takes("TABLE"):
        return
    yield from _next(ALTERS, words, database)
    while words.find("RENAME"):
        if not words.takes("COLUMN", "INDEX", "KEY"):
            words.takes("TO", "AS")
            words.takes_sign("=")
            yield from _next(ALTERS, words, database)


def _dropped(words: StatementWords, database: str) -> Iterator[TableChange]:
    if not words.takes("TABLE", "TABLES"):
        yield from _of_index(words, database)
        return
    yield from _next(DROPS, words, database)
    while words.takes_sign(","):
        yield from _next(DROPS, words, database)


def _renamed(words: StatementWords, database: str) -> Iterator[TableChange]:
    if not words.takes("TABLE", "TABLES"):
        return
    while found := [*_next(ALTERS, words, database)]:
        yield from found
        if words.takes("WAIT"):
            words.take()
        words.takes("NOWAIT")
        words.takes("TO")
        words.takes_sign(",")


def _of_index(words: StatementWords, database: str) -> Iterator[TableChange]:
    while words.takes(*_KINDS_OF_INDEX):
        pass
    if words.takes("INDEX") and words.find("ON"):
        yield from _next(ALTERS, words, database)


def _next(does: str, words: StatementWords, database: str) -> Iterator[TableChange]:
    if words.takes("IF"):
        words.takes("NOT")
        words.takes("EXISTS")
    if table := words.take_table(database):
        yield TableChange(does, table)


_FIRST: dict[str, Callable[[StatementWords, str], Iterator[TableChange]]] = {
    "CREATE": _created,
    "ALTER": _altered,
    "DROP": _dropped,
    "RENAME": _renamed,
}
