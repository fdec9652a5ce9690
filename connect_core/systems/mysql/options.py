"""Options of MySQL and of its sink, as a document gives them once its references are resolved."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from connect_core.systems.tables.options import DatabaseOptions, TableSinkOptions

MAX_NAME = 64
"""Characters of an identifier."""
MARKERS = "waybill_markers"
_HIGHEST = "\uffff"
"""No identifier has a character above."""


def is_name(text: str) -> bool:
    """Whether it can name a table or a column."""
    return 0 < len(text) <= MAX_NAME and "\0" not in text and max(text) <= _HIGHEST and not text.endswith(" ")


def checked_name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"must be a name of 1 to {MAX_NAME} characters, with no blank at its end")
    return text


def checked_table(text: str) -> str:
    if text.count(".") > 1:
        raise ValueError("must be TABLE or DATABASE.TABLE")
    for name in text.split("."):
        checked_name(name)
    return text


class MysqlOptions(DatabaseOptions):
    """A database, and who we are to it."""

    port: int = Field(default=3306, gt=0, lt=65536, description="Its port", examples=[3306])
    database: Annotated[str, AfterValidator(checked_name)] = Field(description="The database", examples=["shop"])

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"

    def split(self, table: str) -> tuple[str, str]:
        """Database and name; the database is that of the connection where none is written."""
        database, _, name = table.rpartition(".")
        return database or self.database, name


class MysqlSinkOptions(TableSinkOptions, MysqlOptions):
    """A table, and how records become its rows."""

    table: Annotated[str, AfterValidator(checked_table)] = Field(
        description="TABLE or DATABASE.TABLE; where rules name others, that of records for which they name none",
        examples=["orders"],
    )
    markers: Annotated[str, AfterValidator(checked_table)] = Field(
        default=MARKERS,
        description="The table in which the sink keeps how far it has come, in the same transactions as rows. It is "
        "made where it is missing. With another one a connector does not know what it has delivered",
        examples=["ops.waybill_markers"],
    )

    @field_validator("key")
    @classmethod
    def _key_has_names(cls, key: list[str]) -> list[str]:
        return [checked_name(name) for name in key]

    @model_validator(mode="after")
    def _markers_are_not_the_target(self) -> Self:
        if self.split(self.table)[-1].lower() == self.split(self.markers)[-1].lower():
            raise ValueError("table and markers have one name: rows cannot go among the markers")
        return self

    def whole_name(self, table: str) -> str:
        return ".".join(self.split(table))
