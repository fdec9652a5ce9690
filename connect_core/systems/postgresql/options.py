"""Options of PostgreSQL and of its sink, as a document gives them once its references are resolved."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from connect_core.systems.tables.options import DatabaseOptions, TableSinkOptions

MAX_NAME = 63
"""Bytes of an identifier; PostgreSQL cuts longer ones."""
MARKERS = "waybill_markers"
Oid = Annotated[int, Field(ge=1)]


def split_table(text: str) -> tuple[str, str]:
    """Schema and name; the schema is `public` where none is written."""
    schema, _, name = text.rpartition(".")
    return schema or "public", name


def checked_name(text: str) -> str:
    if not text or "\0" in text or len(text.encode()) > MAX_NAME:
        raise ValueError(f"must be a name of 1 to {MAX_NAME} bytes")
    return text


def checked_table(text: str) -> str:
    if text.count(".") > 1:
        raise ValueError("must be TABLE or SCHEMA.TABLE")
    for name in split_table(text):
        checked_name(name)
    return text


class PostgresOptions(DatabaseOptions):
    """A database, and who we are to it."""

    port: int = Field(default=5432, gt=0, lt=65536, description="Its port", examples=[5432])
    database: Annotated[str, AfterValidator(checked_name)] = Field(description="The database", examples=["shop"])

    @property
    def application(self) -> str:
        """The name under which the server lists our connections."""
        return "waybill"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"


class PostgresSinkOptions(TableSinkOptions, PostgresOptions):
    """A table, and how records become its rows."""

    table: Annotated[str, AfterValidator(checked_table)] = Field(
        description="TABLE or SCHEMA.TABLE; where rules name others, that of records for which they name none",
        examples=["orders"],
    )
    markers: Annotated[str, AfterValidator(checked_table)] = Field(
        default=MARKERS,
        description="The table in which the sink keeps how far it has come, in the same transactions as rows. It is "
        "made where it is missing. With another one a connector does not know what it has delivered",
        examples=["ops.waybill_markers"],
    )
    accepts_table: Oid | list[Oid] | None = Field(
        default=None,
        description="The oid of a table that was put in the place of the former one, with all its rows: it is written "
        "on; a list of them, of several. Without this a table that was replaced stops the connector",
        examples=[20000],
        json_schema_extra={"policy": True},
    )

    @field_validator("key")
    @classmethod
    def _key_has_names(cls, key: list[str]) -> list[str]:
        return [checked_name(name) for name in key]

    @model_validator(mode="after")
    def _markers_are_not_the_target(self) -> Self:
        if split_table(self.table)[-1] == split_table(self.markers)[-1]:
            raise ValueError("table and markers have one name: rows cannot go among the markers")
        return self

    def whole_name(self, table: str) -> str:
        return ".".join(split_table(table))

    @property
    def accepted_tables(self) -> frozenset[int]:
        """Their oids."""
        accepted = self.accepts_table
        if accepted is None:
            return frozenset()
        return frozenset(accepted if isinstance(accepted, list) else [accepted])
