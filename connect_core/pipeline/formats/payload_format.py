"""What every format of payloads says of itself. Light: documents are checked by it, so Arrow and the libraries that
read payloads are loaded no earlier than `reader` and `writer` are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from connect_core.rows.types import Type
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    import pyarrow as pa

    from connect_core.rows.json_reading import Read
    from connect_core.rows.json_writing import WrittenRows

Lookup: TypeAlias = Callable[[int], object]
"""By the number of a schema in the registry that a document names what its format makes of it. Raises Misfit for one
that is not there or not of the format, and what a registry fails with."""


class Encoded(NamedTuple):
    records: pa.RecordBatch
    """Those that have a form, in order, with their new payloads."""
    unfit: list[tuple[int, str]]
    """A row and why it has none, ascending."""


Reader: TypeAlias = "Callable[[pa.RecordBatch], Read]"
"""Records (RECORD_SCHEMA) -> their rows."""
Writer: TypeAlias = "Callable[[pa.StructArray, pa.RecordBatch], Encoded]"
"""Rows, and the record (RECORD_SCHEMA) that each is of -> these records with the rows as payloads."""


class PayloadFormat:
    """A format of which all options are left out has no fields, reads nothing and writes nothing."""

    reading_options: ClassVar[tuple[str, ...]] = ()
    """The fields of `parse` that go with it."""
    writing_options: ClassVar[tuple[str, ...]] = ()
    """The fields of `encode` that go with it."""
    reads_rows: ClassVar[bool] = False
    """Whether it makes rows of payloads even where a document declares no fields."""
    drops_without_fields: ClassVar[bool] = False
    """Whether payloads may have fields that even their own schema does not have, so that `unknown` says something where
    a document declares no fields."""
    schema_kind: ClassVar[str] = ""
    """What a Schema Registry calls schemas of the format, where it knows such."""
    reads_changes: ClassVar[bool] = False
    """Whether payloads say what happened to a row, and how it was before."""
    writes_changes: ClassVar[bool] = False
    """Whether what it writes says so. Its writer finds `before` among the columns of the records."""
    evolves: ClassVar[bool] = False
    """Whether runs may add fields that payloads have: not where a schema says which there are."""
    is_plain_json: ClassVar[bool] = False
    """Whether what it writes is JSON in which rules find the fields."""

    def check_reading(self, parse: Json) -> None:
        """Of a `parse` with what it leaves out. Raises ValueError."""

    def check_writing(self, encode: Json) -> None:
        """Of an `encode` with what it leaves out. Raises ValueError."""

    def rows(self, parse: Json) -> Type | None:
        """The fields of what is read; None where payloads say it."""
        return None

    def check_rows(self, encode: Json, rows: Type) -> None:
        """Whether rows of this type can be written. Raises ValueError."""

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        """Of a `parse` with `rows`, what it leaves out by default left out."""
        raise ValueError("There is no format in which payloads are read")

    def writer(self, encode: Json, rows: Type) -> Writer:
        """Of an `encode` that takes rows of this type, what it leaves out by default left out."""
        raise ValueError("There is no format in which payloads are written")

    def written_schema(self, encode: Json, rows: Type) -> object:
        """With which a registry knows what is written, of a format that has schemas there."""
        raise ValueError("The format has no schema in a registry")

    def record_name(self, encode: Json, rows: Type) -> str:
        """What that schema calls a record, with its namespace."""
        raise ValueError("The format has no schema in a registry")


def of_values(read: Callable[[pa.Array], Read]) -> Reader:
    """Of a format of which payloads say everything."""
    return lambda records: read(records.column("value"))


def to_values(write: Callable[[pa.StructArray], WrittenRows]) -> Writer:
    """Of a format that changes nothing but payloads."""

    def written(rows: pa.StructArray, records: pa.RecordBatch) -> Encoded:
        from connect_core.pipeline.formats.payloads import with_values, without

        values, unfit = write(rows)
        return Encoded(with_values(without(records, [row for row, _ in unfit]), values), unfit)

    return written
