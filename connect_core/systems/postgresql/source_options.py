"""Options of the PostgreSQL source."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from connect_core.systems.postgresql.options import (
    LockTimeout,
    PostgresOptions,
    StatementTimeout,
    checked_name,
    checked_table,
)


class PostgresSourceOptions(PostgresOptions):
    """A table, and the column whose ascending numbers say which rows are new."""

    user: str = Field(min_length=1, description="Who reads", examples=["reader"])
    table: Annotated[str, AfterValidator(checked_table)] = Field(
        description="TABLE or SCHEMA.TABLE. Each row becomes a record once", examples=["orders"]
    )
    incrementing: Annotated[str, AfterValidator(checked_name)] | None = Field(
        default=None,
        description="The column of whole numbers by which new rows are found: each row gets a higher one than those "
        "before it. By default the primary key, if that is one such column",
        examples=["id"],
    )
    every_s: float = Field(
        default=1.0,
        ge=0.01,
        le=3600,
        description="Seconds between two looks for new rows, in a window and with `schedule: {on_change: true}`",
        examples=[1.0],
        json_schema_extra={"policy": True},
    )
    open_transactions_s: float = Field(
        default=5.0,
        ge=0,
        le=600,
        description="Seconds for which a run waits until transactions end that may still bring rows before the newest "
        "one. While they run, it leaves what they hold up to the next run",
        examples=[5.0],
        json_schema_extra={"policy": True},
    )
    statement_timeout_s: StatementTimeout = 30.0
    lock_timeout_s: LockTimeout = 10.0
