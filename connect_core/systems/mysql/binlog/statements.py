"""Statements in the log -> what they do to rows. Pure.

Changes of rows are events of their own. What comes as a statement makes and alters tables, begins and ends
transactions; or it changed rows in a session that has turned binlog_format off, and nobody can say which ones: a view,
a trigger or a function may lead anywhere. So what is not known to leave rows alone is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from connect_core.systems.mysql.binlog.lexing import StatementWords
from connect_core.systems.mysql.binlog.log_events import Query
from connect_core.systems.mysql.binlog.table_names import TableName

Wants = Callable[[TableName], bool]


class Does(Enum):
    BEGINS = "begins"
    COMMITS = "commits"
    ROLLS_BACK = "rolls back"
    ROLLS_BACK_A_PART = "rolls back a part"
    FINISHES_XA = "commits what was prepared"
    UNDOES_XA = "rolls back what was prepared"
    TRUNCATES = "truncates"
    BEGINS_HISTORY = "keeps versions of rows from here on"
    ENDS_HISTORY = "no longer keeps versions of rows"
    CHANGES_UNSEEN = "changes rows unseen"
    RENAMES = "gives tables other names"
    SAVES = "sets a savepoint"
    IS_WITHIN = "is within a transaction"
    NOTHING = "nothing"


class Statement(NamedTuple):
    does: Does
    table: TableName | None = None
    """The one that is truncated, or that has a history from here on, or no longer."""
    prepared: str = ""
    """Which transaction, as `log_events.prepared` names it."""
    savepoint: str = ""
    """In small letters: the server tells them apart by no more."""


_XA = re.compile(r"\s*XA\s+(COMMIT|ROLLBACK)\s+X'([0-9a-f]*)'\s*,\s*X'([0-9a-f]*)'\s*,\s*(\d+)", re.IGNORECASE)
_LEAVES_ROWS = frozenset(("DROP", "GRANT", "REVOKE", "FLUSH", "OPTIMIZE", "REPAIR", "CHECK", "INSTALL", "UNINSTALL"))
_OF_TABLES = ("TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG")
_UNSEEN, _NOTHING = Statement(Does.CHANGES_UNSEEN), Statement(Does.NOTHING)


def statement(query: Query, wants: Wants) -> Statement:
    words = StatementWords(query.text)
    if words.are_over():
        return _NOTHING  # a comment, as servers put it in place of what a replica would not know
    if words.takes("SET"):
        if not words.takes("STATEMENT"):
            return _NOTHING
        if not words.find("FOR"):
            return _UNSEEN
    first = words.take_word()
    if first in _LEAVES_ROWS:
        return _NOTHING
    return _FIRST[first](words, query, wants) if first in _FIRST else _UNSEEN


def _begins(words: StatementWords, query: Query, wants: Wants) -> Statement:
    words.takes("WORK")
    return Statement(Does.BEGINS) if words.are_over() else _UNSEEN


def _starts(words: StatementWords, query: Query, wants: Wants) -> Statement:
    return Statement(Does.BEGINS)


def _commits(words: StatementWords, query: Query, wants: Wants) -> Statement:
    return Statement(Does.COMMITS)


def _rolls_back(words: StatementWords, query: Query, wants: Wants) -> Statement:
    words.takes("WORK")
    if not words.takes("TO"):
        return Statement(Does.ROLLS_BACK)
    # It may have the name SAVEPOINT itself.
    name = (words.takes("SAVEPOINT") and words.take_name()) or words.take_name() or "savepoint"
    return Statement(Does.ROLLS_BACK_A_PART, savepoint=name.lower())


def _saves(words: StatementWords, query: Query, wants: Wants) -> Statement:
    return Statement(Does.SAVES, savepoint=words.take_name().lower())


def _releases(words: StatementWords, query: Query, wants: Wants) -> Statement:
    return Statement(Does.IS_WITHIN)


def _of_xa(words: StatementWords, query: Query, wants: Wants) -> Statement:
    found = _XA.match(query.text)
    if not found:
        return Statement(Does.IS_WITHIN)  # XA START, XA END
    name = f"{found[2].lower()},{found[3].lower()},{found[4]}"
    return Statement(Does.UNDOES_XA if found[1].upper() == "ROLLBACK" else Does.FINISHES_XA, prepared=name)


def _truncates(words: StatementWords, query: Query, wants: Wants) -> Statement:
    words.takes("TABLE")
    table = words.take_table(query.database)
    if words.takes("WAIT"):
        words.take()
    else:
        words.takes("NOWAIT")
    if table is None or not words.are_over():
        return _UNSEEN
    return Statement(Does.TRUNCATES, table) if wants(table) else _NOTHING


def _creates(words: StatementWords, query: Query, wants: Wants) -> Statement:
    """A table that is made of a query has its rows in the log, unless binlog_format is otherwise."""
    if words.takes("OR"):
        words.takes("REPLACE")
    if not words.takes("TABLE"):
        return _NOTHING  # also a temporary one, which nobody reads
    if words.takes("IF"):
        words.takes("NOT")
        words.takes("EXISTS")
    table = words.take_table(query.database)
    if table is not None and not wants(table):
        return _NOTHING
    while found := words.find("SELECT", "AS", "WITH"):
        if found == "SELECT" or (found == "AS" and words.takes("SELECT", "VALUES", "WITH", "TABLE")):
            return _UNSEEN
        if found == "WITH" and words.takes("SYSTEM"):
            return Statement(Does.BEGINS_HISTORY, table)
    return _NOTHING


def _alters(words: StatementWords, query: Query, wants: Wants) -> Statement:
    while words.takes("ONLINE", "OFFLINE", "IGNORE"):
        pass
    if not words.takes("TABLE"):
        return _NOTHING
    if words.takes("IF"):
        words.takes("EXISTS")
    table = words.take_table(query.database)
    is_read = table is None or wants(table)
    while found := words.find("ADD", "DROP", "WITH", "RENAME"):
        if found == "RENAME":
            if not words.takes("COLUMN", "INDEX", "KEY"):
                return Statement(Does.RENAMES)
        elif is_read and words.takes("SYSTEM") and words.takes("VERSIONING"):
            return Statement(Does.ENDS_HISTORY if found == "DROP" else Does.BEGINS_HISTORY, table)
    return _NOTHING


def changes_by_foreign_key(create: str) -> bool:
    """By the statement that would make a table, whether its rows change with those of another one."""
    words = StatementWords(create)
    while words.find("ON"):
        if words.takes("DELETE", "UPDATE") and words.takes("CASCADE", "SET"):
            return True
    return False


def _renames(words: StatementWords, query: Query, wants: Wants) -> Statement:
    return Statement(Does.RENAMES)


def _analyzes(words: StatementWords, query: Query, wants: Wants) -> Statement:
    """ANALYZE UPDATE … does what it analyses."""
    return _NOTHING if words.takes(*_OF_TABLES) else _UNSEEN


_FIRST: dict[str, Callable[[StatementWords, Query, Wants], Statement]] = {
    "BEGIN": _begins,
    "START": _starts,
    "COMMIT": _commits,
    "ROLLBACK": _rolls_back,
    "SAVEPOINT": _saves,
    "RELEASE": _releases,
    "XA": _of_xa,
    "TRUNCATE": _truncates,
    "CREATE": _creates,
    "ALTER": _alters,
    "ANALYZE": _analyzes,
    "RENAME": _renames,
}
