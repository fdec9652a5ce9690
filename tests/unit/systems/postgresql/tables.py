"""Tables as the database tells of them."""

from __future__ import annotations

from connect_core.systems.postgresql.catalog import Table, TableColumn


def table_of(**columns: str) -> Table:
    """With columns of these types, and no key."""
    made = tuple(TableColumn(name, kind, False, False, False, False) for name, kind in columns.items())
    return Table(20000, made, (), frozenset(), unlogged=False)
