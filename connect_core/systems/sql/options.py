"""Options of a database that SQLAlchemy reaches, and of its sink, as a document gives them once its references are
resolved."""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from connect_core.systems.database_urls import file_of
from connect_core.systems.tables.options import RowSinkOptions

MARKERS = "waybill_markers"
_MAX_NAME = 128
"""Characters of an identifier."""
OF_THEIR_OWN = {
    **dict.fromkeys(("postgresql", "postgres"), "postgresql"),
    **dict.fromkeys(("mysql", "mariadb"), "mysql"),
}
"""Dialects, and the systems that are made for them."""
_FORM = re.compile(r"(?P<dialect>\w+)(?:\+\w+)?://", re.ASCII)
_SECRET = re.compile(r"pass|pwd|secret|token|credential|uid|user", re.IGNORECASE)
_ELSEWHERE = frozenset(
    {"host", "hostaddr", "server", "addr", "address", "unix_socket", "dsn", "service", "odbc_connect"}
)
"""In the query of a URL: what may name another server than its host."""


def checked_url(url: str) -> str:
    """Nothing of it is in what is raised: it may hold a password."""
    found = _FORM.match(url)
    if found is None:
        raise ValueError("must be a URL as SQLAlchemy has them: sqlite:///shop.db, or DIALECT+DRIVER://HOST/NAME")
    if own := OF_THEIR_OWN.get(found["dialect"].lower()):
        raise ValueError(f"is a database with a system of its own, which promises more: write `{own}: {{host: …}}`")
    if found["dialect"].lower() == "sqlite":
        if not file_of(url) or ":memory:" in url or file_of(url).startswith("file:"):
            raise ValueError("must name a file, and nothing else: sqlite:////path/shop.db")
        return url
    _check_server(url)
    return url


def _check_server(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise ValueError("is no URL") from None
    if "@" in parts.netloc:
        raise ValueError("must not hold a user or a password: write `user`, and `password` as a reference")
    if not host:
        raise ValueError("names no host: only of SQLite may a database be a file")
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET.search(name):
            raise ValueError(f"must not hold {name}: write `user`, and `password` as a reference")
        if name.lower().replace("_", " ") in {one.replace("_", " ") for one in _ELSEWHERE} or ";" in value:
            raise ValueError(f"must not hold {name}: the host is what comes behind ://")


def checked_name(text: str) -> str:
    if not 0 < len(text) <= _MAX_NAME or "\0" in text:
        raise ValueError(f"must be a name of 1 to {_MAX_NAME} characters")
    return text


def checked_table(text: str) -> str:
    if text.count(".") > 1:
        raise ValueError("must be TABLE or SCHEMA.TABLE")
    for name in text.split("."):
        checked_name(name)
    return text


_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


def plain_name(name: str) -> str:
    """As SQLite compares names: of A to Z it makes no difference whether they are small."""
    return name.translate(_SMALL)


def no_schema(url: str, table: str) -> None:
    if file_of(url) and "." in table:
        raise ValueError("a table of SQLite has no schema: write its name alone")


URL: Any = Field(
    description="The database, as SQLAlchemy has it, without user and password: a file of SQLite on the driver's host, "
    "or a server. PostgreSQL, MySQL and MariaDB have systems of their own",
    examples=["sqlite:///shop.db"],
    json_schema_extra={"kind": "database"},
)


class SqlOptions(BaseModel):
    """A database, and who we are to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ACCESS: ClassVar[frozenset[str]] = frozenset({"user", "password"})
    """How the database is reached, and not which one it is."""

    url: Annotated[str, AfterValidator(checked_url)] = URL
    user: str = Field(default="", description="Of a server: who reads or writes", examples=["waybill"])
    password: str = Field(default="", description="Of that user, by reference", examples=["${env:SHOP_PASSWORD}"])
    lock_timeout_s: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="Of SQLite: seconds for which a statement waits while another program has the file; the run is "
        "tried again",
        examples=[10.0],
        json_schema_extra={"policy": True},
    )

    @property
    def file(self) -> str:
        """Empty of a server."""
        return file_of(self.url)

    @property
    def dialect(self) -> str:
        return self.url.partition(":")[0].partition("+")[0]


class SqlSinkOptions(RowSinkOptions, SqlOptions):
    """A table, and how records become its rows."""

    table: Annotated[str, AfterValidator(checked_table)] = Field(
        description="TABLE, or of a server SCHEMA.TABLE; where rules name others, that of records for which they name "
        "none",
        examples=["orders_here"],
    )
    markers: Annotated[str, AfterValidator(checked_table)] = Field(
        default=MARKERS,
        description="The table in which the sink keeps how far it has come, in the same transactions as rows. It is "
        "made where it is missing. With another one a connector does not know what it has delivered",
        examples=["waybill_markers"],
    )

    @field_validator("key")
    @classmethod
    def _key_has_names(cls, key: list[str]) -> list[str]:
        return [checked_name(name) for name in key]

    @model_validator(mode="after")
    def _tables_of_a_file_have_no_schema(self) -> Self:
        for table in (self.table, self.markers, *self.tables):
            no_schema(self.url, table)
        return self

    @model_validator(mode="after")
    def _markers_are_not_the_target(self) -> Self:
        if self.table.rpartition(".")[2].lower() == self.markers.rpartition(".")[2].lower():
            raise ValueError("table and markers have one name: rows cannot go among the markers")
        return self

    def whole_name(self, table: str) -> str:
        return table
