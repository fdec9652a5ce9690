"""Times of the last change in SQLite, which has no type for them. Pure.

Two forms count: the text that CURRENT_TIMESTAMP writes, `2026-01-02 03:04:05`, also with a fraction, in UTC; and whole
seconds since 1970. Both compare as the times do. In one column SQLite puts numbers before texts, so each form has a
stretch of its own, which an index finds. A value of another form would be in a window of another time, or in none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from connect_core.systems.sql.types import is_text
from connect_core.systems.tables.passes import TimeWindow

FORMS = "`2026-01-02 03:04:05`, as CURRENT_TIMESTAMP writes it, or whole seconds since 1970"
KINDS = "DATETIME or TIMESTAMP, or of type TEXT or INTEGER"
_LENGTH = 19
"""Of a text without a fraction."""
_SECONDS = range(10**8, 10**11)
"""From 1973 to 5138: what is less is a date (20260102), a year or nothing (0), and what is more counts milliseconds. A
text from before 1973 stands for nothing, too (`0001-01-01 00:00:00`): no program wrote a file of SQLite then."""
_BEHIND_DIGITS = ":"
"""Comes after all texts that begin with a digit, and before bytes."""


def is_time(of: sa.types.TypeEngine[Any]) -> bool:
    """Whether a column of this type may say the time of a change."""
    return bool(_forms(of))


def changed_in(
    column: sa.ColumnElement[Any], of: sa.types.TypeEngine[Any], window: TimeWindow
) -> sa.ColumnElement[Any]:
    """A condition: its time is within."""
    stretches = []
    if sa.Text in _forms(of):
        begin = "" if window.begin is None else _written(window.begin)
        stretches.append(sa.and_(column >= begin, column < _written(window.end)))
    if sa.Integer in _forms(of):
        stretches.append(sa.and_(column >= (window.begin or _SECONDS.start), column < window.end))
    return sa.or_(*stretches)


def has_other_form(column: sa.ColumnElement[Any], of: sa.types.TypeEngine[Any]) -> str:
    """A condition, as SQLite has it: nobody knows which time the value says."""
    name = f'"{str(column.name).replace(chr(34), chr(34) * 2)}"'
    fits = []
    if sa.Text in _forms(of):
        fits.append(_is_moment(name))
    if sa.Integer in _forms(of):
        fits.append(f"typeof({name}) = 'integer' AND {name} BETWEEN {_SECONDS.start} AND {_SECONDS[-1]}")
    return f"({' OR '.join(f'({one})' for one in fits)}) IS NOT TRUE"


def _is_moment(name: str) -> str:
    """The text is the one that SQLite itself writes for its moment, with nothing behind it but a fraction. Without
    `+0 days` some versions give a day that no month has as it is. `+` before the column: else each comparison would try
    to make a number of the other text."""
    begins = f"datetime(substr({name}, 1, {_LENGTH}), '+0 days')"
    has_fraction = f"length({name}) > {_LENGTH + 1} AND rtrim({name}, '0123456789') IS {begins} || '.'"
    whole = f"+{name} IS datetime({name}, '+0 days')"
    within = f"+{name} BETWEEN '{_written(_SECONDS.start)}' AND '{_BEHIND_DIGITS}'"
    return f"{within} AND CASE length({name}) WHEN {_LENGTH} THEN {whole} ELSE {has_fraction} END"


def _forms(of: sa.types.TypeEngine[Any]) -> tuple[Any, ...]:
    """A column with TEXT in its type makes texts of numbers, and one with INT may have them as they are."""
    if isinstance(of, sa.DateTime):
        return sa.Text, sa.Integer
    if isinstance(of, sa.Integer):
        return (sa.Integer,)
    return (sa.Text,) if is_text(of) else ()


def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")
