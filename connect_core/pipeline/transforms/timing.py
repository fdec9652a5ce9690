"""Texts of a form become moments, and moments texts, column by column. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.transforms.casting import cast
from connect_core.pipeline.transforms.columns import Column
from connect_core.pipeline.transforms.paths import Path, written
from connect_core.pipeline.transforms.time_steps import Form, FormatTimes, ParseTimes, literal_of
from connect_core.pipeline.transforms.working import Work
from connect_core.rows.schema import arrow_field
from connect_core.rows.types import Type

_MOMENT = Type("timestamp", unit="ms")
_DIGITS: Mapping[str, int] = {"yyyy": 4, "MM": 2, "dd": 2, "HH": 2, "mm": 2, "ss": 2, "SSS": 3}
_OTHERWISE = {"MM": "01", "dd": "01", "HH": "00", "mm": "00", "ss": "00", "SSS": "000", "XXX": "Z"}
"""What a form without this part means."""
_READ = ("yyyy", "-", "MM", "-", "dd", "T", "HH", ":", "mm", ":", "ss", ".", "SSS", "XXX")
"""The form that casts read."""
_WRITE: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "yyyy": pc.year,
    "MM": pc.month,
    "dd": pc.day,
    "HH": pc.hour,
    "mm": pc.minute,
    "ss": pc.second,
    "SSS": pc.millisecond,
}


def parse_times(step: ParseTimes, work: Work) -> None:
    for path, form in step.forms:
        work.change(path, partial(_parsed, path, form, work))


def _parsed(path: Path, form: Form, work: Work, field: pa.Field, column: pa.Array) -> Column:
    found = pc.extract_regex(column, rf"\A{''.join(map(_pattern, form))}\z")
    pieces = [_piece(found, form, part) for part in _READ]
    made = cast(pc.binary_join_element_wise(*pieces, ""), "text", _MOMENT)
    if made.null_count != column.null_count:
        unfit = pc.and_(made.is_null(), column.is_valid()).to_numpy(zero_copy_only=False)
        work.reject(unfit, f"parse_time of {written(path)}: this text is no time of its form")
    return arrow_field(field.name, _MOMENT), made


def _pattern(part: str) -> str:
    if (text := literal_of(part)) is not None:
        return re.escape(text)
    return f"(?P<{part}>{'Z|[+-][0-9]{2}:[0-9]{2}' if part == 'XXX' else f'[0-9]{{{_DIGITS[part]}}}'})"


def _piece(found: pa.StructArray, form: Form, part: str) -> pa.Array | str:
    """Null where the text is not of the form."""
    return pc.struct_field(found, part) if part in form else _OTHERWISE.get(part, part)


def format_times(step: FormatTimes, work: Work) -> None:
    for path, form in step.forms:
        work.change(path, partial(_formatted, form))


def _formatted(form: Form, field: pa.Field, column: pa.Array) -> Column:
    """What the form does not say is cut."""
    pieces = [_written(part, column) for part in form]
    made = pc.binary_join_element_wise(*pieces, "")
    made = pc.if_else(column.is_valid(), made, pa.scalar(None, pa.string()))
    return pa.field(field.name, pa.string()), made


def _written(part: str, column: pa.Array) -> pa.Array:
    if part in _WRITE:
        return pc.utf8_lpad(_WRITE[part](column).cast(pa.string()), _DIGITS[part], "0")
    text = literal_of(part)
    return pa.repeat(pa.scalar("Z" if text is None else text), len(column))
