"""Rows -> the values of an INSERT, column by column, and what a column would change without a word. Pure.

The session has NO_BACKSLASH_ESCAPES: in a text only the quotation mark means something else than itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rows.json_writing import decimal_texts, json_texts, moment_texts
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.mysql.catalog import MysqlColumn


def tuples(cells: Sequence[pa.Array]) -> pa.Array:
    """`(1,'a',NULL)` of each row."""
    return joined("", "(", joined(",", *cells), ")")


def joined(between: str, *parts: pa.Array | str) -> pa.Array:
    """Texts of each row in one, however long a column of them is."""
    large = [pa.scalar(one, pa.large_string()) if isinstance(one, str) else one for one in (*parts, between)]
    return pc.binary_join_element_wise(*large)


def cell(field: pa.Field, values: pa.Array) -> pa.Array:
    """The literals of a column."""
    return pc.fill_null(_literals(field, values).cast(pa.large_string()), "NULL")


def _literals(field: pa.Field, values: pa.Array) -> pa.Array:
    of = field.type
    if pa.types.is_boolean(of):
        return values.cast(pa.int8()).cast(pa.string())
    if pa.types.is_floating(of):
        return _floats(values)
    if pa.types.is_decimal(of):
        return decimal_texts(values)
    if pa.types.is_binary(of):
        return pa.array([None if one is None else f"x'{one.hex()}'" for one in values.to_pylist()], pa.large_string())
    if pa.types.is_integer(of):
        return values.cast(pa.string())
    return _quoted(_texts(field, values))


def _texts(field: pa.Field, values: pa.Array) -> pa.Array:
    if pa.types.is_nested(field.type):
        return json_texts(values, field)
    return moment_texts(values) if pa.types.is_timestamp(field.type) else values.cast(pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(texts.cast(pa.large_string()), "'", "''")
    return joined("", "'", escaped, "'")


def _floats(values: pa.Array) -> pa.Array:
    """With an exponent: without one it would be a decimal, which has fewer digits behind the point."""
    texts = values.cast(pa.float64()).cast(pa.large_string())
    return pc.if_else(pc.match_substring(texts, "e"), texts, joined("", texts, "e0"))


def check_values(field: pa.Field, values: pa.Array, column: MysqlColumn) -> None:
    """Raises RowsRefused for a value that the server would change, and say nothing or too little."""
    if column.required and values.null_count:
        raise RowsRefused("NullRefused", f"Column {column.name} takes no NULL")
    if pa.types.is_floating(field.type) and _any(pc.invert(pc.is_finite(values))):
        raise RowsRefused("OutOfRange", f"Column {column.name} has neither NaN nor infinity")
    if pa.types.is_binary(field.type) and column.word == "binary":
        if _any(pc.not_equal(pc.binary_length(values), column.length)):
            raise RowsRefused("WrongLength", f"Column {column.name} would fill bytes up to {column.kind}")
    elif pa.types.is_string(field.type):
        _check_texts(values, column)


def _check_texts(values: pa.Array, column: MysqlColumn) -> None:
    if column.word in ("varchar", "char") and _any(pc.greater(pc.utf8_length(values), column.length)):
        raise RowsRefused("TooLong", f"A text is longer than {column.kind} of column {column.name}")
    if column.word == "char" and _any(pc.ends_with(values, " ")):
        raise RowsRefused("WrongValue", f"Column {column.name} is {column.kind}, which cuts blanks at the end")
    if column.word == "json" and not all(map(_is_kept, values.drop_null().to_pylist())):
        words = f"Column {column.name} is json, which would keep another number, or one of two equal names"
        raise RowsRefused("WrongValue", words)
    if column.word == "enum" and _any(pc.invert(pc.is_in(values.drop_null(), pa.array(column.texts, values.type)))):
        raise RowsRefused("WrongValue", f"Column {column.name} does not know one of its texts")


def _is_kept(text: str) -> bool:
    """Whether MySQL keeps what a JSON text means: its numbers are doubles, or have 64 bits, and of two members with one
    name it keeps one. What is no JSON it refuses itself."""
    try:
        json.loads(text, parse_float=_double, parse_int=_whole, object_pairs_hook=_members)
    except _Unkept:
        return False
    except (ValueError, RecursionError):
        return True
    return True


class _Unkept(Exception):
    """A part of a JSON text that MySQL does not keep."""


def _double(text: str) -> None:
    if Decimal(text) != Decimal(repr(float(text))):
        raise _Unkept


def _whole(text: str) -> None:
    if not -(2**63) <= int(text) < 2**64:
        raise _Unkept


def _members(found: list[tuple[str, object]]) -> None:
    if len({name for name, _ in found}) < len(found):
        raise _Unkept


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())
