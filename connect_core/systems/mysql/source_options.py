"""Options of the MySQL source."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from connect_core.systems.mysql.options import MysqlOptions, checked_name, checked_table
from connect_core.systems.tables.options import TIMESTAMP, TableSourceOptions


class MysqlSourceOptions(TableSourceOptions, MysqlOptions):
    """A table, and the columns that say which rows are new, or were changed."""

    table: Annotated[str, AfterValidator(checked_table)] = Field(
        description="TABLE or DATABASE.TABLE. Each row becomes a record once; with `timestamp` whenever it has "
        "changed, with `bulk` in each run",
        examples=["orders"],
    )
    incrementing: Annotated[str, AfterValidator(checked_name)] | None = Field(
        default=None,
        description="The column of whole numbers by which new rows are found: each row gets a higher one than those "
        "before it; with `timestamp` and `bulk` one that tells rows apart. By default the primary key, if that is one "
        "such column",
        examples=["id"],
    )
    timestamp: Annotated[str, AfterValidator(checked_name)] | None = TIMESTAMP
