"""Functions of rows that packages bring, and what they say of themselves."""

from __future__ import annotations

import sys

import pyarrow as pa

from connect_core.errors import VersionMismatch
from connect_core.packages import FUNCTIONS, named
from connect_core.rows.schema import arrow_type, shape_of
from connect_core.rows.types import Type
from connect_core.sdk.row_functions import RowFunction


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


def function(name: str) -> RowFunction:
    """Raises VersionMismatch or ContractBroken where there is none that can be used: no record is to blame."""
    found = named(FUNCTIONS, name, RowFunction)
    if found is None:
        raise VersionMismatch(
            f"No installed package brings the function {name}",
            where=f"entry point {name} of {FUNCTIONS}, {sys.executable}",
            next_step="Install the packages that the host has on which the document was checked",
        )
    return found
