"""Options of the source."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from connect_core.sdk.values import Json
from connect_core.systems.database_urls import file_of
from connect_core.systems.sql.options import SqlOptions, checked_name, checked_table, no_schema, plain_name
from connect_core.systems.tables.named_tables import NamedTables, names_of
from connect_core.systems.tables.options import (
    BULK,
    EXCLUDE,
    QUERY,
    TABLES,
    TIMESTAMP,
    check_read_in_one_way,
    check_timestamp,
    checked_query,
)

_ANSWERS_S = 5.0


def _checked_table(text: str) -> str:
    """None where there are several."""
    return checked_table(text) if text else text


def _checked_tables(given: list[str]) -> list[str]:
    return [checked_table(one) for one in given]


Tables = Annotated[list[str], AfterValidator(_checked_tables)]


class SqlSourceOptions(SqlOptions):
    """A table, and the column that says which rows are new."""

    table: Annotated[str, AfterValidator(_checked_table)] = Field(
        default="",
        json_schema_extra={"needed": True},
        description="TABLE, or of a server SCHEMA.TABLE. Each row becomes a record once; with `timestamp` whenever it "
        "has changed, with `bulk` in each run. Or write `tables`, or a `query`",
        examples=["orders"],
    )
    tables: Tables = TABLES
    exclude: Tables = EXCLUDE
    query: Annotated[str, AfterValidator(checked_query)] = QUERY
    incrementing: Annotated[str, AfterValidator(checked_name)] | None = Field(
        default=None,
        description="The column of whole numbers by which new rows are found: each row gets a higher one than those "
        "before it; with `timestamp` and `bulk` one that tells rows apart. By default the primary key, if that is one "
        "such column",
        examples=["id"],
    )
    timestamp: Annotated[str, AfterValidator(checked_name)] | None = TIMESTAMP
    bulk: bool = BULK
    delay_s: float = Field(
        default=1.0,
        ge=0.05,
        le=86400,
        description="Of `timestamp`: seconds for which a time of a change may be older than the moment at which its "
        "transaction has the file as the writer. What is younger is read later",
        examples=[1.0],
        json_schema_extra={"policy": True},
    )
    settle_s: float | None = Field(
        default=None,
        ge=0.05,
        le=86400,
        description="Of a server, without `bulk`: seconds within which each transaction that inserts a row ends. A row "
        "is read when the highest number has been there for so long",
        examples=[30.0],
    )
    every_s: float = Field(
        default=1.0,
        ge=0.01,
        le=3600,
        description="Seconds between two looks for new rows, in a window and with `schedule: {on_change: true}`",
        examples=[1.0],
        json_schema_extra={"policy": True},
    )

    @property
    def patience_s(self) -> float:
        """For so long a run waits for transactions that may be open, and a while for slow answers. SQLite has one, if
        any, which matters where rows are found by their times."""
        if self.timestamp:
            return self.lock_timeout_s + self.delay_s + 1
        return 0 if self.file or self.bulk or self.settle_s is None else self.settle_s * 1.1 + _ANSWERS_S

    @model_validator(mode="after")
    def _a_query_is_of_a_file(self) -> Self:
        if self.query and not self.file:
            raise ValueError(
                "query is of SQLite alone: of a server that no system of its own knows, nobody can say which types the "
                "columns of a result have"
            )
        return self

    @model_validator(mode="after")
    def _times_are_those_of_a_file(self) -> Self:
        if self.timestamp and not self.file:
            raise ValueError(
                "timestamp is of SQLite alone: of a server that no system of its own knows, nobody can ask for its "
                "clock in UTC, nor which transactions are open"
            )
        check_timestamp(self)
        return self

    @model_validator(mode="after")
    def _a_delay_is_stated(self) -> Self:
        if self.file and self.settle_s is not None:
            raise ValueError("settle_s is of a server: SQLite has one writer at a time, and no row comes late")
        if not (self.file or self.bulk or self.settle_s):
            raise ValueError(
                "of a server nobody knows which transactions are open: write settle_s, the seconds within which each "
                "one ends, or bulk: true"
            )
        return self

    @model_validator(mode="after")
    def _names_tables_in_one_way(self) -> Self:
        check_read_in_one_way(self)
        return self

    @model_validator(mode="after")
    def _schemas_are_those_of_a_server(self) -> Self:
        """Where one may be left out a table would have two names."""
        for table in (self.table, *self.tables, *self.exclude):
            no_schema(self.url, table)
        for table in (*self.tables, *self.exclude):
            if not self.file and "." not in table:
                raise ValueError(f"of a server, several tables have their schemas: write SCHEMA.{table}")
        return self

    def of_table(self, table: str) -> Self:
        """The options for one of several tables alone."""
        return self.model_copy(update={"table": table, "tables": [], "exclude": []})

    @property
    def named_tables(self) -> NamedTables:
        """Of `tables`."""
        return named_tables(self.url, {"tables": self.tables, "exclude": self.exclude})


def named_tables(url: str, source: Json) -> NamedTables:
    """Which tables these options of a source mean."""

    def split(table: str) -> tuple[str, str]:
        within, _, name = table.rpartition(".")
        return within, plain_name(name) if file_of(url) else name

    return names_of(source, split)
