"""Tables that a document names in another way than the server lists them. Pure."""

from __future__ import annotations

from collections.abc import Collection

from connect_core.errors import ConfigError
from connect_core.systems.tables.named_tables import NamedTables


def named_twice(named: NamedTables, there: Collection[str], table: str) -> ConfigError | None:
    """Why one that is named is not read; None: it may be. A server to which capitals make no difference finds a table
    also by a name that it does not list (`there`): rows would come for each."""
    alike = [name for name in (*there, *named.exactly()) if name.lower() == table.lower()]
    first = next(filter(named.mean, alike), table)
    if table in there or first == table or not set(there) & set(alike):
        return None
    words = f"To the server the table is {first}, which is read, too: its rows would come twice"
    return ConfigError(words, where=table, next_step="Name it once, or exclude one of the names")
