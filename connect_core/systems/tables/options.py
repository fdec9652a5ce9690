"""Options that the tables of every database have, as a document gives them once its references are resolved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from connect_core.systems.tls import TlsCa, TlsCertificate, TlsFiles, TlsKey


def _seconds(words: str, example: float) -> Any:
    """A limit for which the server waits."""
    description = f"Seconds {words}; the run is tried again"
    return Field(gt=0, le=3600, description=description, examples=[example], json_schema_extra={"policy": True})


StatementTimeout = Annotated[float, _seconds("after which the server ends a statement", 30.0)]
LockTimeout = Annotated[float, _seconds("for which a statement waits for a lock of another session", 10.0)]


class DatabaseOptions(BaseModel):
    """How a database is reached."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ACCESS: ClassVar[frozenset[str]] = frozenset(
        {"user", "password", "tls", "tls_ca", "tls_certificate", "tls_key", "connect_timeout_s"}
    )
    """How the database is reached, and not which one it is."""

    host: str = Field(
        min_length=1,
        description="Where the server is",
        examples=["db.example.com"],
        json_schema_extra={"kind": "address"},
    )
    user: str = Field(min_length=1, description="Who writes", examples=["waybill"])
    password: str = Field(default="", description="Of that user, by reference", examples=["${env:SHOP_PASSWORD}"])
    tls: bool = Field(
        default=False,
        description="Encrypted, with the server's certificate and name checked. Without it a server that can encrypt"
        " does, and may be anyone",
        examples=[True],
    )
    tls_ca: TlsCa = ""
    tls_certificate: TlsCertificate = ""
    tls_key: TlsKey = ""
    connect_timeout_s: int = Field(
        default=5, ge=1, le=60, description="Seconds within which the server must take a connection", examples=[5]
    )

    @model_validator(mode="after")
    def _tls_means_something(self) -> Self:
        self.tls_files.check(tls=self.tls)
        if self.tls and self.host.startswith("/"):
            raise ValueError("tls means nothing for a Unix socket: name the server's host")
        return self

    @property
    def tls_files(self) -> TlsFiles:
        return TlsFiles(self.tls_ca, self.tls_certificate, self.tls_key)


UID: Any = Field(
    default="", description="The connector's uid", examples=["5f2c9a1b"], json_schema_extra={"injected": True}
)


class TableOfSeveral(BaseModel):
    """What one of several tables has of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fields: list[str] = Field(
        default_factory=list,
        description="The fields of records that become its columns; by default all of them",
        examples=[["id", "email"]],
    )
    key: list[str] = Field(
        default_factory=list,
        description="Of upsert: the columns that tell its rows apart; by default those of the sink's `key`",
        examples=[["id"]],
    )


class ServerLimits(BaseModel):
    """For how long a server works or waits for us."""

    statement_timeout_s: StatementTimeout = 30.0
    lock_timeout_s: LockTimeout = 10.0


class RowSinkOptions(BaseModel):
    """How records become rows, however the database is reached."""

    table: str
    tables: dict[str, TableOfSeveral] = Field(
        default_factory=dict,
        description="What tables have of their own, where rules name others than `table`: by the name of each, `table` "
        "too, its `fields` and `key`",
        examples=[{"customers": {"fields": ["id"]}}],
    )
    create_table: bool = Field(
        default=False,
        description="The first run makes the table where it is missing, with a column for each field. One that had "
        "rows of this connector, and is gone, is not made again",
        examples=[True],
        json_schema_extra={"policy": True},
    )
    add_columns: bool = Field(
        default=False,
        description="A run adds columns, which take NULL, for fields that have none",
        examples=[True],
        json_schema_extra={"policy": True},
    )
    mode: Literal["insert", "upsert"] = Field(
        default="insert",
        description="insert: each record is one more row. upsert: a record replaces the row that has its key, or is a "
        "new one; and a change that says so deletes it",
        examples=["upsert"],
    )
    key: list[str] = Field(
        default_factory=list,
        description="Of upsert: the columns that tell rows apart; by default the primary key of the table",
        examples=[["id"]],
    )
    row_fields: dict[str, Any] = Field(
        default_factory=dict,
        description="The fields of records behind the last transform, with their types",
        examples=[{"id": "int64"}],
        json_schema_extra={"injected": True},
    )
    rule_topics: tuple[str, ...] | None = Field(
        default=None,
        description="The tables that rules name",
        examples=[["customers"]],
        json_schema_extra={"injected": True},
    )
    uid: str = UID

    @abstractmethod
    def whole_name(self, table: str) -> str:
        """With the schema or the database that is meant where none is written."""

    def each(self) -> list[Self]:
        """The options of each table alone: of `table` first, then of those that rules name."""
        return self._alone((self.table, *(self.rule_topics or ())))

    def _alone(self, tables: Iterable[str]) -> list[Self]:
        own = {self.whole_name(table): one for table, one in self.tables.items()}
        found: dict[str, Self] = {}
        for table in tables:
            name = self.whole_name(table)
            if name not in found:
                found[name] = self._of_table(table, own.get(name, TableOfSeveral()))
        return list(found.values())

    def _of_table(self, table: str, own: TableOfSeveral) -> Self:
        fields = {name: self.row_fields[name] for name in own.fields or self.row_fields if name in self.row_fields}
        alone: dict[str, Any] = {"table": table, "key": own.key or self.key, "row_fields": fields}
        return self.model_copy(update=alone | {"tables": {}, "rule_topics": None})

    @model_validator(mode="after")
    def _key_goes_with_upsert(self) -> Self:
        for key in (self.key, *(one.key for one in self.tables.values())):
            if key and self.mode != "upsert":
                raise ValueError("key goes with mode: upsert")
            if len(set(key)) != len(key):
                raise ValueError("key names a column twice")
        return self

    @model_validator(mode="after")
    def _new_table_has_a_key(self) -> Self:
        if self.create_table and self.mode == "upsert" and not all(one.key for one in self._all_named()):
            raise ValueError("create_table and mode: upsert need key: the columns of the primary key")
        return self

    @model_validator(mode="after")
    def _names_are_in_records(self) -> Self:
        """Where their fields are known."""
        if not self.row_fields:
            return self
        for table, own in self.tables.items():
            _check_known(own.fields, self.row_fields, f"tables.{table}.fields", "the records")
        for one in self._all_named():
            whose = f"the records that go to {one.table}" if self.tables else "the records"
            _check_known(one.key, one.row_fields, "key", whose)
        return self

    def _all_named(self) -> list[Self]:
        return self._alone((self.table, *self.tables, *(self.rule_topics or ())))


class TableSinkOptions(RowSinkOptions, ServerLimits, DatabaseOptions):
    """Of a database with a server."""


def _check_known(names: Sequence[str], fields: Mapping[str, Any], option: str, whose: str) -> None:
    if missing := [name for name in names if name not in fields]:
        near = get_close_matches(missing[0], fields, n=1)
        meant = f": is it {near[0]}?" if near else ""
        raise ValueError(f"{option} names {missing[0]}, which is no field of {whose}{meant}")


TIMESTAMP: Any = Field(
    default=None,
    description="The column with the time of a row's last change, by the clock of the database: rows that were "
    "changed become records again. By default each row is read once",
    examples=["changed_at"],
)


BULK: Any = Field(
    default=False,
    description="Each run reads the whole table again; in a window, and with `schedule: {on_change: true}`, each "
    "`every_s`. By default each row is read once",
    examples=[True],
)


TABLES: Any = Field(
    default_factory=list,
    description="In place of `table`, several: names, and patterns with `*` and `?`. Each is a partition, and the "
    "topic of its records is its name. Tables that come to match a pattern are read from the next run on",
    examples=[["orders", "pay_*"]],
)
EXCLUDE: Any = Field(
    default_factory=list, description="Tables that `tables` does not mean: names and patterns", examples=[["*_old"]]
)


def checked_query(text: str) -> str:
    """The server judges what it is."""
    query = text.strip()
    if "\0" in query or query.endswith(";"):
        raise ValueError("must be one SELECT, with no semicolon at its end")
    return query


QUERY: Any = Field(
    default="",
    description="In place of `table`, one SELECT without a semicolon at its end: each row of its result becomes a "
    "record. `incrementing` names the column of whole numbers that tells these rows apart. It is used as a derived "
    "table, `FROM (query) AS q WHERE …`",
    examples=["SELECT i.id, o.customer, i.price FROM items i JOIN orders o ON o.id = i.order_id"],
)


class OptionsOfReading(Protocol):
    """What options of every source of tables have."""

    @property
    def table(self) -> str: ...

    @property
    def tables(self) -> Sequence[str]: ...

    @property
    def exclude(self) -> Sequence[str]: ...

    @property
    def query(self) -> str: ...

    @property
    def incrementing(self) -> str | None: ...

    @property
    def timestamp(self) -> str | None: ...

    @property
    def bulk(self) -> bool: ...

    @property
    def model_fields_set(self) -> set[str]: ...


def check_read_in_one_way(given: OptionsOfReading) -> None:
    """Raises ValueError."""
    if sum(map(bool, (given.table, given.tables, given.query))) != 1:
        raise ValueError("name one table as table, or several as tables, or write a query")
    if given.exclude and not given.tables:
        raise ValueError("exclude goes with tables")
    if given.query and not given.incrementing:
        raise ValueError("query needs incrementing: a column of whole numbers that tells rows of its result apart")


def check_timestamp(given: OptionsOfReading) -> None:
    """Raises ValueError."""
    if "delay_s" in given.model_fields_set and not given.timestamp:
        raise ValueError("delay_s goes with timestamp")
    if given.bulk and given.timestamp:
        raise ValueError("bulk reads all rows, and timestamp those that were changed: leave one of them out")


class TableSourceOptions(DatabaseOptions):
    """By which rows a table is read, and when."""

    user: str = Field(min_length=1, description="Who reads", examples=["reader"])
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
    timestamp: str | None = TIMESTAMP
    bulk: bool = BULK
    delay_s: float = Field(
        default=1.0,
        ge=0.05,
        le=86400,
        description="Of `timestamp`: seconds for which a time of a change may be older than the moment at which its "
        "statement has the table. What is younger is read later",
        examples=[1.0],
        json_schema_extra={"policy": True},
    )
    statement_timeout_s: StatementTimeout = 30.0
    lock_timeout_s: LockTimeout = 10.0
    table: str = ""
    tables: list[str] = TABLES
    exclude: list[str] = EXCLUDE
    query: Annotated[str, AfterValidator(checked_query)] = QUERY
    incrementing: str | None = None

    def of_table(self, table: str) -> Self:
        """The options for one of several tables alone."""
        return self.model_copy(update={"table": table, "tables": [], "exclude": []})

    @property
    def patience_s(self) -> float:
        """For so long a run waits for transactions that are open."""
        return self.open_transactions_s + (self.delay_s + 1 if self.timestamp else 0)

    @model_validator(mode="after")
    def _names_tables_in_one_way(self) -> Self:
        check_read_in_one_way(self)
        return self

    @model_validator(mode="after")
    def _delay_goes_with_timestamp(self) -> Self:
        check_timestamp(self)
        return self


SCHEMAS: Any = Field(
    default=True,
    description="Whether each event has its schema, as with schemas.enable of Kafka Connect. Without it events are "
    "small, and nothing tells a reader how many digits a decimal has, nor of which unit a time is",
    examples=[False],
)
LOOKS_EVERY_S: Any = Field(
    default=0.2,
    ge=0.01,
    le=3600,
    description="Seconds between two looks for new changes, with `schedule: {on_change: true}` and in a window whose "
    "workers do not stay",
    examples=[1.0],
    json_schema_extra={"policy": True},
)


def follows_changes(sink: Mapping[str, Any]) -> bool:
    return sink.get("mode") == "upsert"
