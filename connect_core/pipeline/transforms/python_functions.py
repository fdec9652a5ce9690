"""Functions of rows that packages bring, and what they say of themselves."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import entry_points

import pyarrow as pa

from connect_core.errors import ContractBroken, Failure, VersionMismatch
from connect_core.origin import know_package
from connect_core.rows.schema import arrow_type, shape_of
from connect_core.rows.types import Type
from connect_core.sdk.row_functions import ROW_FUNCTIONS, RowFunction


def shape_behind(name: str, rows: Type) -> Type:
    """Raises ValueError where the function cannot work on rows of this shape, or must not be used."""
    found = function(name)
    if not found.deterministic:
        raise ValueError(f"{name} does not state that it makes the same of a record each time, so it is not used")
    made = found.fields(schema_of(rows))
    try:
        return shape_of(made)
    except KeyError as kind:
        raise ValueError(f"{name} makes a field of Arrow's type {kind}, which fields do not have") from None


def schema_of(rows: Type) -> pa.Schema:
    return pa.schema(list(arrow_type(rows)))


@cache
def function(name: str) -> RowFunction:
    """Raises VersionMismatch or ContractBroken where there is none that can be used: no record is to blame."""
    where = f"entry point {name} of {ROW_FUNCTIONS}, {sys.executable}"
    entry = next(iter(entry_points(group=ROW_FUNCTIONS, name=name)), None)
    if entry is None:
        raise VersionMismatch(
            f"No installed package brings the function {name}",
            where=where,
            next_step="Install the packages that the host has on which the document was checked",
        )
    try:
        found = entry.load()
    except Exception as error:
        what = Failure.unexpected(error, "loading it").what
        raise ContractBroken(what, where=where, next_step="Its package is to be mended") from None
    if not isinstance(found, RowFunction):
        raise ContractBroken(f"{name} is no RowFunction", where=where, next_step="Its package is to be mended")
    know_package(entry.module, name)
    return found
