"""Options of the source."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from connect_core.systems.sql.options import SqlOptions, checked_name, checked_table, no_schema
from connect_core.systems.tables.options import BULK

_ANSWERS_S = 5.0


class SqlSourceOptions(SqlOptions):
    """A table, and the column that says which rows are new."""

    table: Annotated[str, AfterValidator(checked_table)] = Field(
        description="TABLE, or of a server SCHEMA.TABLE. Each row becomes a record once; with `bulk` in each run",
        examples=["orders"],
    )
    incrementing: Annotated[str, AfterValidator(checked_name)] | None = Field(
        default=None,
        description="The column of whole numbers by which new rows are found: each row gets a higher one than those "
        "before it; with `bulk` one that tells rows apart. By default the primary key, if that is one such column",
        examples=["id"],
    )
    bulk: bool = BULK
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
        """For so long a run waits for transactions that may be open, and a while for slow answers: SQLite has none."""
        return 0 if self.file or self.bulk or self.settle_s is None else self.settle_s * 1.1 + _ANSWERS_S

    @model_validator(mode="after")
    def _a_delay_is_stated(self) -> Self:
        if not (self.file or self.bulk or self.settle_s):
            raise ValueError(
                "of a server nobody knows which transactions are open: write settle_s, the seconds within which each "
                "one ends, or bulk: true"
            )
        return self

    @model_validator(mode="after")
    def _a_table_of_a_file_has_no_schema(self) -> Self:
        no_schema(self.url, self.table)
        return self
