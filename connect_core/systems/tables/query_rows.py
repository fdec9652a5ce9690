"""What is asked of the rows of a query, in either database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_core.errors import ConfigError
from connect_core.systems.tables.probed_rows import MANY


def extent_of(
    asking: Any, source: str, ids: str, condition: str, never_null: Mapping[str, str], where: str
) -> tuple[int | None, int | None]:
    """The lowest and the highest number of the result; None where there is no row. `never_null` are the columns that
    tell rows apart, by name as SQL writes them. Raises ConfigError where one of them is NULL: nobody would read that
    row. The ends are looked for, and not counted out: an index of the column serves that, also within a join."""
    within = f"SELECT {ids} FROM {source} WHERE {ids} IS NOT NULL AND {condition} ORDER BY {ids}"
    nulls = [f"EXISTS (SELECT 1 FROM {source} WHERE {column} IS NULL)" for column in never_null.values()]
    asking.execute(f"SELECT {', '.join([f'({within} LIMIT 1)', f'({within} DESC LIMIT 1)', *nulls])}")
    lowest, highest, *missing = asking.fetchone() or (None, None)
    for name, is_missing in zip(never_null, missing, strict=False):
        if is_missing:
            words = f"Column {name} of the query is NULL in a row, and such rows would never be read"
            step = f"Leave them out in the query (WHERE … IS NOT NULL), or give {name} a value (COALESCE)"
            raise ConfigError(words, where=where, next_step=step)
    return lowest, highest


def equal_numbers(asking: Any, source: str, ids: str) -> int | None:
    """Of the newest rows a number that two of them have."""
    newest = f"SELECT {ids} AS n FROM {source} WHERE {ids} IS NOT NULL ORDER BY {ids} DESC LIMIT {MANY}"
    asking.execute(f"SELECT n FROM ({newest}) r GROUP BY n HAVING COUNT(*) > 1 LIMIT 1")
    [number] = asking.fetchone() or (None,)
    return number


def to_come_of(asking: Any, source: str, in_time: str) -> int:
    """How many rows, up to `MANY`, have a time that no clock can have said yet."""
    asking.execute(f"SELECT COUNT(*) FROM (SELECT 1 FROM {source} WHERE NOT ({in_time}) LIMIT {MANY}) r")
    [number] = asking.fetchone() or (0,)
    return int(number)
