"""Which tables a database has, as the names and patterns of a document may mean them.

In SQLite capitals of ASCII make no difference to a name, so each table goes by its name in small letters: under two
spellings its rows would come twice. On a server a name is what the database lists, with its schema."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import sqlalchemy as sa

from connect_core.systems.sql.options import plain_name
from connect_core.systems.tables.named_tables import NamedTables, whole_name
from connect_core.systems.tables.probed_rows import POINT

_VIEW, _VIRTUAL, _OWNED = "no table but a view", "a virtual table", "a table of a virtual one"
_PARTS = frozenset(
    f"_{part}"
    for part in (
        *("config", "content", "data", "docsize", "idx"),
        *("node", "parent", "rowid", "segdir", "segments", "stat"),
    )
)
"""Ends of names of tables in which virtual ones of SQLite itself (FTS, R*Tree) keep what they have."""
_OF_FILE = "SELECT name, type, rootpage FROM sqlite_master WHERE type IN ('table', 'view')"


def tables_there(asking: sa.Connection, named: NamedTables) -> list[str]:
    """Of a server those in schemas that are named."""
    return [whole_name(within, name) for within, name, why_not in _listed(asking, named) if not why_not]


def others_there(asking: sa.Connection, named: NamedTables) -> list[tuple[str, str, str]]:
    """Schema and name of what no pattern means, and why."""
    return [one for one in _listed(asking, named) if one[2]]


def _listed(asking: sa.Connection, named: NamedTables) -> Iterator[tuple[str, str, str]]:
    """With the reason why it is not read; empty: it is."""
    for within, name, why_not in _of_file(asking) if asking.dialect.name == "sqlite" else _of_server(asking, named):
        yield within, name, why_not or (POINT if "." in within + name else "")


def _of_file(asking: sa.Connection) -> Iterator[tuple[str, str, str]]:
    found = [(plain_name(name), kind, page) for name, kind, page in asking.exec_driver_sql(_OF_FILE)]
    virtual = [name for name, kind, page in found if kind == "table" and not page]
    owned = {f"{name}{part}" for name in virtual for part in _PARTS}
    for name, kind, _ in found:
        if name.startswith("sqlite_"):
            continue
        yield "", name, _VIEW if kind == "view" else _VIRTUAL if name in virtual else _OWNED if name in owned else ""


def _of_server(asking: sa.Connection, named: NamedTables) -> Iterator[tuple[str, str, str]]:
    inspector = sa.inspect(asking)
    wanted = [one.rpartition(".")[0] for one in named.wanted]
    for schema in inspector.get_schema_names():
        if any(fnmatchcase(schema, one) for one in wanted):
            yield from ((schema, name, "") for name in inspector.get_table_names(schema))
            yield from ((schema, name, _VIEW) for name in inspector.get_view_names(schema))
