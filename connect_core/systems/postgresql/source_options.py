"""Options of the PostgreSQL source."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from connect_core.systems.postgresql.options import PostgresOptions, checked_name, checked_table, split_table
from connect_core.systems.tables.named_tables import NamedTables, names_of
from connect_core.systems.tables.options import EXCLUDE, TABLES, TIMESTAMP, TableSourceOptions


def _checked_table(text: str) -> str:
    """None where there are several."""
    return checked_table(text) if text else text


def _checked_tables(given: list[str]) -> list[str]:
    return [checked_table(one) for one in given]


Tables = Annotated[list[str], AfterValidator(_checked_tables)]


class PostgresSourceOptions(TableSourceOptions, PostgresOptions):
    """A table, and the columns that say which rows are new, or were changed."""

    table: Annotated[str, AfterValidator(_checked_table)] = Field(
        default="",
        json_schema_extra={"needed": True},
        description="TABLE or SCHEMA.TABLE. Each row becomes a record once; with `timestamp` whenever it has "
        "changed, with `bulk` in each run. Or write `tables`, or a `query`",
        examples=["orders"],
    )
    tables: Tables = TABLES
    exclude: Tables = EXCLUDE
    incrementing: Annotated[str, AfterValidator(checked_name)] | None = Field(
        default=None,
        description="The column of whole numbers by which new rows are found: each row gets a higher one than those "
        "before it; with `timestamp` and `bulk` one that tells rows apart. By default the primary key, if that is one "
        "such column; `timestamp` and `bulk` take any other primary key as well",
        examples=["id"],
    )
    timestamp: Annotated[str, AfterValidator(checked_name)] | None = TIMESTAMP

    @property
    def named_tables(self) -> NamedTables:
        """Of `tables`."""
        return names_of({"tables": self.tables, "exclude": self.exclude}, split_table)
