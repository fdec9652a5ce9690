"""Options of the change stream of MySQL."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Literal

import xxhash
from pydantic import AfterValidator, Field, field_validator

from connect_core.systems.mysql.binlog.table_names import OURS, TableName
from connect_core.systems.mysql.options import MysqlOptions, checked_table
from connect_core.systems.tables.options import LOOKS_EVERY_S, SCHEMAS, UID

_FIRST_ID, _IDS = 1 << 30, 1 << 30
_WILD = frozenset("*?[")


class MysqlChangesOptions(MysqlOptions):
    """Tables, and who reads the log of what happens to them."""

    user: str = Field(
        min_length=1,
        description="Who reads: a user with REPLICATION SLAVE and REPLICATION CLIENT (of MariaDB BINLOG MONITOR), and"
        " with SHOW VIEW on the databases of these tables: that shows what they are, and none of their rows",
        examples=["replicator"],
    )
    tables: list[Annotated[str, AfterValidator(checked_table)]] = Field(
        min_length=1,
        description="Whose changes are read: TABLE or DATABASE.TABLE, or patterns of these with `*`",
        examples=[["orders", "sales.*"]],
    )
    schemas: bool = SCHEMAS
    snapshot: Literal["never", "initial"] = Field(
        default="initial",
        description="initial: the rows that are in the tables when the connector begins come too, each as it was at its"
        " place among the changes. Tables need a primary key for that, and the user may make two tables. never: changes"
        " alone",
        examples=["never"],
    )
    snapshot_rows: int = Field(
        default=2_000,
        ge=1,
        le=100_000,
        description="So many rows of a snapshot are copied at once into the log, from which they come. Until they are"
        " there, who changes one of them waits",
        examples=[500],
        json_schema_extra={"policy": True},
    )
    schema_changes: bool = Field(
        default=False,
        description="Whether statements that make, alter, rename or drop these tables come too, each at its place among"
        " the changes, with the name of the database as topic",
        examples=[True],
    )
    foreign_key_actions: Literal["refuse", "leave_out"] = Field(
        default="refuse",
        description="Whether a table is read whose rows the server changes by a foreign key (ON DELETE CASCADE, SET"
        " NULL, …): its log has nothing of that. leave_out: such changes never come",
        examples=["leave_out"],
    )
    server_id: int | None = Field(
        default=None,
        ge=1,
        lt=2**32 - 1,
        description="The number under which the log is read, and the one above it. No other reader of the server may "
        "have one of them. By default two that follow from the connector",
        examples=[5401],
    )
    every_s: float = LOOKS_EVERY_S
    uid: str = UID

    @field_validator("tables")
    @classmethod
    def _none_is_ours(cls, tables: list[str]) -> list[str]:
        if ours := [one for one in tables if one.rpartition(".")[2] in OURS]:
            raise ValueError(f"{ours[0]} is a table by which rows of snapshots come: it has no changes of its own")
        return tables

    @property
    def reader_id(self) -> int:
        """Of who reads; who only looks has the next one."""
        named = xxhash.xxh32_intdigest(self.uid.encode()) % (_IDS // 2) * 2 + _FIRST_ID
        return self.server_id if self.server_id is not None else named

    def named(self) -> list[tuple[str, str]]:
        """Database and name of each table that is no pattern, each once, in order."""
        return [*dict.fromkeys(self.split(one) for one in self.tables if not _WILD & set(one))]

    def names(self, name: TableName) -> bool:
        """Whether the document has it by its name, and not by a pattern."""
        return name in (self.split(one) for one in self.tables)

    def wants(self, name: TableName) -> bool:
        """Whether the document names this table, and it is none of ours."""
        wanted = (self.split(one) for one in self.tables if name.table not in OURS)
        return any(fnmatchcase(name.database, of) and fnmatchcase(name.table, one) for of, one in wanted)
