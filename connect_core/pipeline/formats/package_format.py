"""A format that a package brings (`sdk.row_formats`), held to what it says. Light: its package is loaded when a
document that names it is checked, and Arrow with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ValidationError

from connect_core.errors import ContractBroken, VersionMismatch
from connect_core.packages import FORMATS, Brought, loaded, named
from connect_core.pipeline.formats.payload_format import Lookup, PayloadFormat, Reader, Writer, of_values, to_values
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.row_formats import Payloads, RowFormat
from connect_core.sdk.row_functions import Changed
from connect_core.sdk.values import Json

if TYPE_CHECKING:
    import pyarrow as pa

    from connect_core.rows.json_reading import Read
    from connect_core.rows.json_writing import WrittenRows


@dataclass(frozen=True)
class PackageFormat(PayloadFormat):
    """By the name of its entry point."""

    name: str
    reading_options: ClassVar[tuple[str, ...]] = ("fields", "options")
    writing_options: ClassVar[tuple[str, ...]] = ("options",)
    reads_rows: ClassVar[bool] = True

    def check_reading(self, parse: Json) -> None:
        found = self._usable("read")
        self._options(found, parse)
        self.rows(parse)

    def check_writing(self, encode: Json) -> None:
        self._options(self._usable("write"), encode)

    def rows(self, parse: Json) -> Type:
        return _shape(self.name, self._fields(parse))

    def check_rows(self, encode: Json, rows: Type) -> None:
        found = self._found()
        found.takes(self._options(found, encode), _schema(rows))

    def reader(self, parse: Json, lookup: Lookup | None) -> Reader:
        found, fields = self._found(), self._fields(parse)
        options, read = self._options(found, parse), _there(found.read, self.name)

        def rows_of(values: pa.Array) -> Read:
            import pyarrow.compute as pc

            from connect_core.rows.json_reading import Read

            made = read(options, fields, pc.fill_null(values, b""))
            _check_rows(self.name, made, fields, len(values))
            unfit = _rejected(made.rejected, "its package rejects it") | _timeless(made.rows)
            return Read(_without(made.rows, unfit).to_struct_array(), sorted(unfit.items()))

        return of_values(rows_of)

    def writer(self, encode: Json, rows: Type) -> Writer:
        found = self._found()
        options, write = self._options(found, encode), _there(found.write, self.name)

        def written(struct: pa.StructArray) -> WrittenRows:
            import pyarrow as pa

            from connect_core.rows.json_writing import WrittenRows

            made = write(options, pa.RecordBatch.from_struct_array(struct))
            _check_payloads(self.name, made, len(struct))
            unfit = _rejected(made.rejected, f"{self.name}: its package rejects it")
            values = pa.RecordBatch.from_arrays([made.values], ["value"])
            return WrittenRows(_without(values, unfit).column(0), sorted(unfit.items()))

        return to_values(written)

    def _found(self) -> RowFormat:
        """Raises VersionMismatch or ContractBroken where there is none that can be used: no record is to blame."""
        found = named(FORMATS, self.name, RowFormat, _wrong)
        if found is None:
            raise VersionMismatch(
                f"No installed package brings the format {self.name}",
                where=f"entry point {self.name} of {FORMATS}, {sys.executable}",
                next_step="Install the packages that the host has on which the document was checked",
            )
        return found

    def _usable(self, way: str) -> RowFormat:
        """For a document. Raises ValueError."""
        try:
            found = self._found()
        except ContractBroken as broken:
            raise ValueError(str(broken)) from None
        if getattr(found, way) is None:
            raise ValueError(f"{self.name} cannot {way}: its package brings no such function")
        if not found.deterministic:
            raise ValueError(
                f"{self.name} does not state that it makes the same of a record each time, so it is not used"
            )
        return found

    def _options(self, found: RowFormat, part: Json) -> BaseModel:
        """Raises ValueError with the first fault."""
        try:
            return found.options.model_validate(part.get("options") or {})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, ("options", *first["loc"])))
            raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from None

    def _fields(self, parse: Json) -> pa.Schema:
        found = self._found()
        declared = parse.get("fields")
        return found.fields(self._options(found, parse), _schema(struct_of(declared)) if declared else None)


def row_format(one: Brought) -> RowFormat:
    """Raises ContractBroken."""
    return loaded(one, RowFormat, _wrong)


def _wrong(found: RowFormat) -> str:
    if found.read is None and found.write is None:
        return "it brings neither read nor write"
    found.options.model_rebuild()
    return ""


def _there(function: Callable[..., Any] | None, name: str) -> Callable[..., Any]:
    """The document that names it was checked with this function: another version of its package lacks it."""
    if function is None:
        raise _broken(name, "no longer has such a function")
    return function


def _schema(rows: Type) -> pa.Schema:
    import pyarrow as pa

    from connect_core.rows.schema import arrow_type

    return pa.schema(list(arrow_type(rows)))


def _shape(name: str, fields: pa.Schema) -> Type:
    from connect_core.rows.schema import shape_of

    try:
        return shape_of(fields)
    except KeyError as kind:
        raise ValueError(f"{name} makes a field of Arrow's type {kind.args[0]}, which fields do not have") from None


def _check_rows(name: str, made: object, fields: pa.Schema, rows: int) -> None:
    """Raises ContractBroken."""
    if not isinstance(made, Changed):
        raise _broken(name, f"gave {type(made).__name__}, not Changed")
    if not made.rows.schema.equals(fields):
        raise _broken(name, "gave other fields than it says")
    _check_count(name, made.rejected, len(made.rows), rows)


def _check_payloads(name: str, made: object, rows: int) -> None:
    """Raises ContractBroken."""
    import pyarrow as pa

    if not isinstance(made, Payloads):
        raise _broken(name, f"gave {type(made).__name__}, not Payloads")
    if made.values.type != pa.binary():
        raise _broken(name, f"gave payloads of Arrow's type {made.values.type}, not binary")
    _check_count(name, made.rejected, len(made.values), rows)


def _check_count(name: str, rejected: pa.Array | None, made: int, rows: int) -> None:
    if made != rows or (rejected is not None and len(rejected) != rows):
        raise _broken(name, f"gave {made} rows of {rows}")


def _broken(name: str, what: str) -> ContractBroken:
    return ContractBroken(
        f"The format {name} {what}",
        where=f"entry point {name} of {FORMATS}",
        next_step="Nothing of the batch was delivered. Its package is to be mended",
    )


def _rejected(flags: pa.Array | None, why: str) -> dict[int, str]:
    return {} if flags is None else {row: why for row, one in enumerate(flags.to_pylist()) if one}


def _timeless(rows: pa.RecordBatch) -> dict[int, str]:
    from connect_core.rows.moments import rows_of_no_time

    found: dict[int, str] = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        why = f"{field.name} is a time beyond its day"
        found |= dict.fromkeys(map(int, rows_of_no_time(field, column).nonzero()[0]), why)
    return found


def _without(rows: pa.RecordBatch, unfit: dict[int, str]) -> pa.RecordBatch:
    from connect_core.pipeline.formats.payloads import without

    return without(rows, list(unfit))
