"""Rows of tables that come among their changes, chunk by chunk: of which tables they are still to come, and behind
which key. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from connect_core.errors import ConfigError
from connect_core.sdk.values import Json

Key = tuple[str, ...]
"""Of a row, as texts."""
Place = tuple[str, str]
"""Schema or database, and name of a table."""


class SnapshotProgress(NamedTuple):
    """Of which tables rows are still to come, and of the first one behind which key."""

    tables: tuple[Place, ...] = ()
    after: Key | None = None

    def behind(self, last: Key | None) -> SnapshotProgress:
        """When rows up to this key have come; None: when the first table has no more."""
        return SnapshotProgress(self.tables if last else self.tables[1:], last)

    def later(self) -> SnapshotProgress:
        """When the first table is read behind the others, from its begin."""
        return SnapshotProgress((*self.tables[1:], *self.tables[:1]))

    def with_more(self, tables: tuple[Place, ...]) -> SnapshotProgress:
        """A table that is being read is read once more behind the others."""
        return self._replace(tables=(*self.tables, *tables))

    def as_json(self) -> Json:
        return {"tables": [[*one] for one in self.tables], "after": None if self.after is None else [*self.after]}

    @classmethod
    def parse(cls, given: Json) -> SnapshotProgress:
        after = given["after"]
        return cls(tuple((schema, table) for schema, table in given["tables"]), None if after is None else (*after,))


def asked_of(
    tables: Sequence[str], split: Callable[[str], Place], wants: Callable[[str, str], bool], where: str, named: str
) -> list[Place]:
    """The tables of a request. Raises ConfigError for one that the connector does not read; `named` are its own."""
    asked = [split(one) for one in tables]
    if unknown := [one for one in asked if not wants(*one)]:
        raise ConfigError(
            f"The connector does not read table {'.'.join(unknown[0])}",
            where=where,
            next_step=f"Name one of its tables: {named}",
        )
    return asked
