"""Options of the change stream of PostgreSQL."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from connect_core.systems.postgresql.options import PostgresOptions, checked_name, checked_table, split_table
from connect_core.systems.tables.options import LOOKS_EVERY_S, SCHEMAS, UID, LockTimeout, StatementTimeout

_SlotName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,63}$")]
_WILD = frozenset("*?[")


class PostgresChangesOptions(PostgresOptions):
    """Tables, and the slot that keeps what happened to them until it is settled."""

    user: str = Field(min_length=1, description="Who reads: a role with REPLICATION", examples=["replicator"])
    tables: list[Annotated[str, AfterValidator(checked_table)]] = Field(
        min_length=1,
        description="Whose changes are read: TABLE or SCHEMA.TABLE, or with `publication` patterns of these with `*`",
        examples=[["orders", "sales.customers"]],
    )
    slot: _SlotName | None = Field(
        default=None,
        description="A replication slot that only this connector reads. It is made where it is missing, and stays when"
        " the connector is deleted. By default one that is made by the first run and dropped with the connector",
        examples=["orders_to_search"],
    )
    publication: Annotated[str, AfterValidator(checked_name)] | None = Field(
        default=None,
        description="An existing publication of these tables, or of more. By default one is made of"
        " the tables, which takes their owner, and dropped with the connector",
        examples=["all_tables"],
    )
    schemas: bool = SCHEMAS
    snapshot: Literal["never", "initial"] = Field(
        default="initial",
        description="initial: the rows that are in the tables when the connector begins come too, each as it was at its"
        " place among the changes. Tables need a primary key for that. never: changes alone",
        examples=["never"],
    )
    snapshot_rows: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="So many rows of a snapshot are read at once. They are written into the log, from which they come",
        examples=[2_000],
        json_schema_extra={"policy": True},
    )
    every_s: float = LOOKS_EVERY_S
    statement_timeout_s: StatementTimeout = 300.0
    lock_timeout_s: LockTimeout = 10.0
    uid: str = UID

    @model_validator(mode="after")
    def _patterns_need_a_publication(self) -> Self:
        """Whoever publishes a table without a replica identity makes its updates fail: nobody does that to tables that
        are not there yet."""
        if self.publication is None and (wild := [one for one in self.tables if _WILD & set(one)]):
            raise ValueError(f"{wild[0]} is a pattern: name a publication, such as one FOR ALL TABLES")
        return self

    @property
    def application(self) -> str:
        """The name under which the server lists our connections."""
        return f"waybill {self.uid}".strip()

    @property
    def slot_name(self) -> str:
        return self.slot or f"waybill_{self.uid.lower()}"

    @property
    def publication_name(self) -> str:
        return self.publication or f"waybill_{self.uid.lower()}"

    def named(self) -> list[tuple[str, str]]:
        """Schema and name of each table that is no pattern, each once, in order."""
        return [*dict.fromkeys(split_table(one) for one in self.tables if not _WILD & set(one))]

    def wants(self, schema: str, table: str) -> bool:
        """Whether the document names this table."""
        wanted = (split_table(one) for one in self.tables)
        return any(fnmatchcase(schema, of) and fnmatchcase(table, one) for of, one in wanted)
