"""Statements in the log -> what they do to rows. Pure.

Changes of rows are events of their own. What comes as a statement makes and alters tables, begins and ends
transactions; or it changed rows in a session that has turned binlog_format off, and nobody can say which ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from connect_core.systems.mysql.binlog.log_events import Query
from connect_core.systems.mysql.binlog.table_names import COPIES, TableName

Wants = Callable[[TableName], bool]


class Does(Enum):
    BEGINS = "begins"
    COMMITS = "commits"
    ROLLS_BACK = "rolls back"
    ROLLS_BACK_A_PART = "rolls back a part"
    FINISHES_XA = "commits what was prepared"
    UNDOES_XA = "rolls back what was prepared"
    TRUNCATES = "truncates"
    CHANGES_UNSEEN = "changes rows unseen"
    IS_WITHIN = "is within a transaction"
    NOTHING = "nothing"


class Statement(NamedTuple):
    does: Does
    table: TableName | None = None
    """The one that is truncated."""
    prepared: str = ""
    """Which transaction, as `log_events.prepared` names it."""


_COMMENT = re.compile(r"/\*(?![!M]).*?\*/|^\s*(?:#|-- )[^\n]*\n", re.DOTALL)
_NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_TRUNCATE = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?{_NAME}(?:\s*\.\s*{_NAME})?", re.IGNORECASE)
_XA = re.compile(r"XA\s+(COMMIT|ROLLBACK)\s+X'([0-9a-f]*)'\s*,\s*X'([0-9a-f]*)'\s*,\s*(\d+)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_FIXED = {
    "BEGIN": Does.BEGINS,
    "START": Does.BEGINS,
    "COMMIT": Does.COMMITS,
    "SAVEPOINT": Does.IS_WITHIN,
    "RELEASE": Does.IS_WITHIN,
}
_DML = frozenset(("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "MERGE", "CALL", "DO", "SELECT"))


def statement(query: Query, wants: Wants, databases: frozenset[str]) -> Statement:
    """`databases` are those of wanted tables: a statement in one of them, or that names one, may change their rows."""
    text = _COMMENT.sub(" ", query.text).strip()
    words = _WORD.findall(text.upper())
    first = words[0] if words else ""
    if first in _FIXED:
        return Statement(_FIXED[first])
    if first == "ROLLBACK":
        return Statement(Does.ROLLS_BACK_A_PART if "TO" in words[1:3] else Does.ROLLS_BACK)
    if first == "XA":
        return _of_xa(text)
    if first == "TRUNCATE":
        return _of_truncate(text, query.database, wants)
    if _changes_rows(first, words) and _may_concern(query, databases):
        return Statement(Does.CHANGES_UNSEEN)
    return Statement(Does.NOTHING)


def _of_xa(text: str) -> Statement:
    found = _XA.match(text)
    if not found:
        return Statement(Does.IS_WITHIN)  # XA START, XA END
    name = f"{found[2].lower()},{found[3].lower()},{found[4]}"
    return Statement(Does.UNDOES_XA if found[1].upper() == "ROLLBACK" else Does.FINISHES_XA, prepared=name)


def _of_truncate(text: str, database: str, wants: Wants) -> Statement:
    found = _TRUNCATE.match(text)
    if not found:
        return Statement(Does.CHANGES_UNSEEN)
    first, second = (_unquoted(*found.group(place, place + 1)) for place in (1, 3))
    name = TableName(first, second) if second else TableName(database, first)
    return Statement(Does.TRUNCATES, name) if wants(name) else Statement(Does.NOTHING)


def _unquoted(quoted: str | None, plain: str | None) -> str:
    return quoted.replace("``", "`") if quoted else plain or ""


def _changes_rows(first: str, words: list[str]) -> bool:
    """A table of ours may have a column, or a label, of that name."""
    makes = first == "CREATE" and "TABLE" in words[1:6] and COPIES.upper() not in words[2:3]
    return first in _DML or (makes and "SELECT" in words)


def _may_concern(query: Query, databases: frozenset[str]) -> bool:
    text = query.text.lower()
    return query.database.lower() in databases or any(one in text for one in databases)
